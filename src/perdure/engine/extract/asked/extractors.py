"""All extractors that ask a model."""

from perdure.engine.extract.asked.entity_event import EntityEventExtractor
from perdure.engine.extract.asked.preference import PreferenceExtractor
from perdure.engine.extract.asked.procedure import ProcedureExtractor
from perdure.engine.extract.asked.profile import ProfileExtractor
from perdure.engine.extract.contract import CandidateExtractor
from perdure.engine.llm.contract import LLM


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
