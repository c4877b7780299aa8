"""From a conversation to memories."""
