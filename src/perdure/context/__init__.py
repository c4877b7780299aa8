"""Canonical state on the seam: nodes, relations, and what is on its way to the index."""
