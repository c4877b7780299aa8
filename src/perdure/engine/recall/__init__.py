"""Finding the right memory, now or as of any day."""
