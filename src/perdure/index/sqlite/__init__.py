"""The index of one account in a file of SQLite: its tables, transactions and vectors."""
