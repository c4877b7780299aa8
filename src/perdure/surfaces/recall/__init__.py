"""Finding memories, and looking after the index that finds them."""
