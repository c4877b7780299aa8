"""`perdure forget`."""
