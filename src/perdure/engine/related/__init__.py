"""Notes that should be linked, and are not: found and told, never linked."""
