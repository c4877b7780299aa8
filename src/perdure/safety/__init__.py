"""What may be remembered and shown: no hidden characters, no secrets, no injected instructions."""
