"""What is worth keeping of what users say, and how it is kept: statements with evidence."""
