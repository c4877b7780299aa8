"""The contract of merge policies as a suite that any implementation can run."""

from tests.support.merge.suite import ALONE, JOINS, MergePolicySuite

__all__ = ["ALONE", "JOINS", "MergePolicySuite"]
