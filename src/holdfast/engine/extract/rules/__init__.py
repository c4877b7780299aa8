"""Extractors that go by rules, and need no model. They never import each other."""
