"""The contract of a format as a suite that any implementation can run."""

from perdure.testing.importing.suite import JSON_FILES, FormatSuite

__all__ = ["JSON_FILES", "FormatSuite"]
