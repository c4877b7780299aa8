"""Recall: finds and ranks the memories that answer a question, now or as of a state."""
