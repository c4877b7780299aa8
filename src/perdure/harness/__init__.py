"""Projects: which one a folder is of, the repositories that are known, plans and other state."""
