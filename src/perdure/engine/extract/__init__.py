"""From what was said to what may be worth remembering, each with the words that say it."""
