"""Who learns from a session."""

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.engine.extract.contract import CandidateExtractor
from perdure.engine.merge.comparing import Judge


@dataclass(frozen=True, slots=True)
class Learning:
    """Who finds what is worth remembering, and who judges whether it is known."""

    extractors: Sequence[CandidateExtractor]
    judge: Judge
