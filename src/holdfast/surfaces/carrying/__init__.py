"""`holdfast export` and `holdfast migrate`, and what `holdfast import` does with a whole memory."""
