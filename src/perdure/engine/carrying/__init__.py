"""A whole memory on its way: into a folder, out of one, and from one backend to another."""
