"""Where records are kept: in a file for each account."""
