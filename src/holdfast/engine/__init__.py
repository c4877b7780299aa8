"""The verbs of memory."""
