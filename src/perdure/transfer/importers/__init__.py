"""One module for each format of other programs."""
