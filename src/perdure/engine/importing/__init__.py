"""Taking in what other programs remember: conversations, memories, graphs and notes."""
