"""Export, import and migration of memories."""
