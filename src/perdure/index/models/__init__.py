"""The embedding model as files on this machine; only who installs it imports `installing`."""
