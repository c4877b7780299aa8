"""All extractors that ask a model."""

from holdfast.engine.extract.asked.entity_event import EntityEventExtractor
from holdfast.engine.extract.asked.preference import PreferenceExtractor
from holdfast.engine.extract.asked.procedure import ProcedureExtractor
from holdfast.engine.extract.asked.profile import ProfileExtractor
from holdfast.engine.extract.contract import CandidateExtractor
from holdfast.engine.llm.contract import LLM


def extractors(llm: LLM) -> tuple[CandidateExtractor, ...]:
    """Return one for each kind of memory, in the order in which they are asked.

    All ask the same questions. A model that remembers its answers is paid for them once.
    """
    return (
        ProfileExtractor(llm),
        PreferenceExtractor(llm),
        EntityEventExtractor(llm),
        ProcedureExtractor(llm),
    )
