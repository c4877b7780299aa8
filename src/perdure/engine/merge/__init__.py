"""When what is remembered anew is what was remembered before."""
