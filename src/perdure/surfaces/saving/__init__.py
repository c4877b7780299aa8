"""The verbs of who has something to remember, and of who asks why it is remembered."""
