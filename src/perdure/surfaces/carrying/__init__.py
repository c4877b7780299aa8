"""`perdure export` and `perdure migrate`, and what `perdure import` does with a whole memory."""
