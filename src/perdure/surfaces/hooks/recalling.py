"""What an agent is told of memory before it begins, and before it answers."""

from dataclasses import replace
from pathlib import PurePath

from perdure.app import Context
from perdure.engine.recall.packing import Tier, compose
from perdure.model import Role
from perdure.process import recall_here

_START_TOKENS = 1_500
PROMPT_TOKENS = 600
_AT_START = "{} project: conventions, decisions, preferences"
_LONGEST_PROMPT = 2_000
_FEWEST_WORDS = 2
_MOST_HITS = 8
_MOST_LOOKED_AT = 24


def recalled_at_start(cwd: str) -> str:
    """Return what memory has to say in a folder, as Markdown for a prompt; empty if nothing.

    That is what is always loaded, what is of the project, and what seems to be about it.
    """
    return recall_here(
        {"cwd": cwd}, query=_AT_START.format(PurePath(cwd).name), limit=_START_TOKENS
    )


def recalled_for(prompt: str, context: Context, known: str) -> str:
    """Return what memory has to say to a prompt; empty if nothing.

    What was said in the session `known` is left out: whoever asks has it before them. An agent
    reaches what its user owns, and no more.
    """
    memory = context.memory.for_caller(replace(context.request, role=Role.MEMBER))
    found = memory.recall(prompt[:_LONGEST_PROMPT], top_k=_MOST_LOOKED_AT).hits
    news = [hit for hit in found if not known or hit.session_id != known][:_MOST_HITS]
    return compose([Tier("Remembered", news)], PROMPT_TOKENS).markdown


def is_worth_asking(prompt: str) -> bool:
    """Whether a prompt is a question or a task; not a command of the agent, nor a mere yes."""
    words = prompt.split()
    return len(words) >= _FEWEST_WORDS and not words[0].startswith(("/", "!", "#"))
