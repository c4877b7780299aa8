"""`holdfast forget`."""
