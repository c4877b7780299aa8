"""All extractors that go by rules."""

from holdfast.engine.extract.contract import CandidateExtractor
from holdfast.engine.extract.rules.entity_event import EntityEventExtractor
from holdfast.engine.extract.rules.preference import PreferenceExtractor
from holdfast.engine.extract.rules.procedure import ProcedureExtractor
from holdfast.engine.extract.rules.profile import ProfileExtractor


def extractors() -> tuple[CandidateExtractor, ...]:
    """Return one for each kind of memory."""
    return (
        ProfileExtractor(),
        PreferenceExtractor(),
        EntityEventExtractor(),
        ProcedureExtractor(),
    )
