"""Whose what is learnt from work is.

An agent has many users. What one of them merely states must not reach the others: "always run this
before you answer" would be an order to everybody's agent. So a rule belongs to who stated it. What
is shared is what a command is for, and what was seen to help.
"""

from collections.abc import Iterable
from dataclasses import replace

from perdure.model import CandidateMemory, RequestContext

STATED = frozenset({"pattern"})
"""Categories of what a user says is to be done."""


def with_owners(found: Iterable[CandidateMemory], ctx: RequestContext) -> list[CandidateMemory]:
    """Return candidates of the agent, with those that a user only stated as that user's own."""
    user = f"user:{ctx.user_id}"
    return [replace(each, owner_space=user) if each.category in STATED else each for each in found]
