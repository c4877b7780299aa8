"""The embedders, each imported only where it is used."""
