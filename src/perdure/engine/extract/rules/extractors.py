"""All extractors that go by rules."""

from perdure.engine.extract.contract import CandidateExtractor
from perdure.engine.extract.rules.entity_event import EntityEventExtractor
from perdure.engine.extract.rules.preference import PreferenceExtractor
from perdure.engine.extract.rules.procedure import ProcedureExtractor
from perdure.engine.extract.rules.profile import ProfileExtractor


def extractors() -> tuple[CandidateExtractor, ...]:
    """Return one for each kind of memory."""
    return (
        ProfileExtractor(),
        PreferenceExtractor(),
        EntityEventExtractor(),
        ProcedureExtractor(),
    )
