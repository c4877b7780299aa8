"""Routing as a suite that any backend can run.

class TestMyBackend(RoutingConformance):
    promises = frozenset()

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        return MyBackend(place / "store")
"""

from tests.support.harness.registering import RoutingConformance

__all__ = ["RoutingConformance"]
