"""Files of other programs, one module for each kind."""
