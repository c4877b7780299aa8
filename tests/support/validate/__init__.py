"""Texts with labels, and how well validation tells secrets and instructions in them."""
