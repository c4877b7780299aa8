"""Extractors that go by rules, and need no model. The four never import each other."""
