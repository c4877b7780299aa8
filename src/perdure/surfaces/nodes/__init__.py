"""The verbs of the command line for nodes, and for those who own them."""
