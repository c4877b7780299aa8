"""Indexing: keeps an index in step with the log, and chooses the index that answers."""
