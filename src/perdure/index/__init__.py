"""Derived search data: records of nodes, their words and vectors, and the embedders."""
