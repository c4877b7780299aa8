"""The contract of extractors as a suite that any implementation can run, and how to score them."""

from tests.support.extract.suite import DATES, ExtractorSuite

__all__ = ["DATES", "ExtractorSuite"]
