"""The index in SQLite: its SQL, databases of accounts, rows, vectors, and the index itself."""
