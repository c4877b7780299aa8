"""How the logical texts of nodes lie in a backend."""
