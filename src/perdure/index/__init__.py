"""Derived search data: records of nodes, their words and vectors in SQLite, and the embedders."""
