"""Perdure at work on half a year of a small team's conversations."""
