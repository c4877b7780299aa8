"""Telling coding agents of memory, in their own config files, and taking that back."""
