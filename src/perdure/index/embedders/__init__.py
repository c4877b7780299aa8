"""Who makes vectors of texts. Each is imported only where it is chosen."""
