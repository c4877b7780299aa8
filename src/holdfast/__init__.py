"""Memory for AI agents that its owner can read, edit, search, rewind and prove."""
