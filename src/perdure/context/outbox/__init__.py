"""Events on their way to the index."""
