"""What is derived from nodes so that they can be found: texts, vectors, and who makes them."""
