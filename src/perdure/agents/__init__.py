"""What coding agents call: hooks at the turns of a session, and entries in their config files."""
