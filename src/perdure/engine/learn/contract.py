"""What an extractor promises."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from perdure.model import CandidateMemory, RequestContext


@runtime_checkable
class CandidateExtractor(Protocol):
    """Finds in a conversation what may be worth remembering. It writes nothing."""

    def extract(
        self, messages: Sequence[Mapping[str, object]], ctx: RequestContext
    ) -> list[CandidateMemory]:
        """Return candidates in the order in which they were said.

        A message has a role and content, perhaps a name and a time; what has not is
        `InvalidValueError`. Any text is taken, in any language and of any length. Each candidate
        carries a confidence, and evidence that `evidence.verified` confirms. The same messages give
        the same candidates; a message that has nothing to do with another changes nothing of what
        is found there, wherever it stands.
        """
        ...
