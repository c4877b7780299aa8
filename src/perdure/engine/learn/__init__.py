"""Learning: statements that users make in sessions, each stored with its evidence."""
