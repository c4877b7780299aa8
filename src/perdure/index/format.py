"""What an index holds of a node, as a number."""

FORMAT = 2
"""Changes when the same node would give other records."""
