"""The embedding model as files on this machine.

To find it costs nothing; `installing`, which gets, builds and checks it, is imported by whoever
installs.
"""

from perdure.index.models.installed import InstalledModel, demand, find

__all__ = ["InstalledModel", "demand", "find"]
