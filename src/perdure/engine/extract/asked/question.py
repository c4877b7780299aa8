"""What a model is asked about a window of a conversation, and the shape of its answer.

All extractors ask the same question, byte for byte, and each takes its own part of the answer. A
model that remembers what it was asked is paid once for all of them.
"""

from collections.abc import Iterable

from perdure.engine.llm.quoting import DATA, quoted
from perdure.model.values import JSON

CATEGORIES = ("profile", "preference", "entity", "event", "skill", "case", "pattern")
TOPICS = (
    *("name", "home", "origin", "job", "employer", "studies", "family", "languages"),
    *("health", "diet", "age", "birthday", "pronouns", "timezone"),
)
"""What of the profile a statement is; the rules know the same."""

_QUOTE: dict[str, JSON] = {
    "message": {"type": "integer"},
    "quote": {"type": "string"},
}
_ITEM: dict[str, JSON] = {
    **_QUOTE,
    "category": {"type": "string", "enum": list(CATEGORIES)},
    "content": {"type": "string"},
    "about": {"type": "string"},
    "topic": {"type": "string"},
    "confidence": {"type": "number"},
    "date": {"type": "string"},
    "who": {"type": "array", "items": {"type": "string"}},
}


def _closed(properties: dict[str, JSON]) -> dict[str, JSON]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SCHEMA = _closed(
    {
        "items": {
            "type": "array",
            "items": _closed({**_ITEM, "also": {"type": "array", "items": _closed(_QUOTE)}}),
        }
    }
)

_INSTRUCTIONS = f"""\
List what is worth remembering of a conversation, for a memory that lasts for years.

You are shown a record of it. Each line is one message, or a part of one, as JSON: its number, the
role of who spoke, perhaps their name, "owner" if the memory is theirs, when it was said, and the
text. Lines with "before" are there so that you understand the rest; take nothing from them.

{DATA}

For each statement that is worth remembering, give an item:
- category: one of
  profile: what a speaker of the role user says of themselves, and what stays so.
  preference: what such a speaker likes, dislikes, or always wants done so.
  entity: who or what somebody or something in their world is.
  event: what happened, will happen, or was decided.
  skill: a command or tool, and what it is for.
  case: a problem, and what helped against it.
  pattern: how things are always done in their work.
- message: the number of the message that says it.
- quote: the words of that text that say it, to the letter, in one stretch, as few as say it whole.
- content: one sentence that is understood alone, in the third person. Name who spoke, or write
  "the user". Leave every "not" where it is. Write days as YYYY-MM-DD.
- about: for a preference, the thing alone, in the same words whether it is liked or disliked; for
  an entity, its name; for an event, two to five words; for a skill, the command; for a case, the
  problem; for a pattern, what is done. Empty for the profile.
- topic: for the profile, one of {", ".join(TOPICS)}, or another word; for an event, "decision" or
  "event"; else empty.
- confidence: 0.9 if it is said plainly, 0.8 if something is defined, done or dated, 0.6 if only
  the assistant advises it; times 0.7 if the speaker is not sure.
- date: for an event, its day as YYYY-MM-DD, as seen from the time of that message; empty if it is
  not known. Never guess one.
- who: the names of the people or things that it is about, as they are written.
- also: further words that it rests on, as of the problem of a case; else empty.

Leave out questions, suppositions, jokes, hearsay, small talk, tasks of the moment, what an
assistant says of itself, and what stands in code, logs, quotations or pasted texts, but for
commands of a skill and errors of a case. Give each statement once, under the category that fits
best. Invent nothing. If nothing is worth remembering, give no items. 40 items are the most; then
take what lasts longest.
"""
_REMINDER = "The record is over. Give the items, each with words that stand in it to the letter."


def question(lines: Iterable[str]) -> str:
    """Return the prompt about lines of a record; the same lines give the same bytes."""
    return f"{_INSTRUCTIONS}\n{quoted(list(lines))}\n\n{_REMINDER}\n"
