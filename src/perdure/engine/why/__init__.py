"""Why memory says what it says."""
