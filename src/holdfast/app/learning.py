"""Who learns from sessions: rules."""

from holdfast.engine.extract.rules.entity_event import EntityEventExtractor
from holdfast.engine.extract.rules.preference import PreferenceExtractor
from holdfast.engine.extract.rules.procedure import ProcedureExtractor
from holdfast.engine.extract.rules.profile import ProfileExtractor
from holdfast.engine.merge.comparing import compare
from holdfast.engine.saving.learning import Learning


def learning_for() -> Learning:
    extractors = (
        ProfileExtractor(),
        PreferenceExtractor(),
        EntityEventExtractor(),
        ProcedureExtractor(),
    )
    return Learning(extractors, compare)
