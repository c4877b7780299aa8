"""Extractors that ask a language model. Of those that go by rules they know nothing."""
