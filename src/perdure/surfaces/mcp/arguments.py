"""What tools are given, each with what it means and how much of it there may be."""

from typing import Annotated

from pydantic import AfterValidator, Field

from perdure.model.uri import MAX_KEY_BYTES
from perdure.model.values import MAX_CONTENT, visible

LONGEST_QUERY = 4_000
MOST_TOKENS = 20_000
_LONGEST_NAME = 100
_LONGEST_REASON = 200
_LONGEST_TIME = 40


def _without_controls(text: str) -> str:
    if visible(text) != text:
        raise ValueError("it holds a control character. Fix: leave it out")
    return text


def _in_one_line(text: str) -> str:
    if _without_controls(text) != " ".join(text.splitlines()) or "\t" in text:
        raise ValueError("it has more than one line, or a tab. Fix: write it in one line")
    return text


Prose = AfterValidator(_without_controls)
Line = AfterValidator(_in_one_line)

Query = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST_QUERY,
        description="What you want to know, as a question or in a few words. Times such as "
        "'last March' are understood.",
    ),
    Prose,
]
TopK = Annotated[int, Field(ge=1, le=100, description="How many hits at the most.")]
Budget = Annotated[
    int,
    Field(
        ge=100,
        le=MOST_TOKENS,
        description="The answer has no more tokens than this; what does not fit is left out.",
    ),
]
At = Annotated[
    str,
    Field(
        max_length=_LONGEST_TIME,
        description="Memory as it was then: 2026-03-01, 2026-03-01T10:00:00Z, or a position of "
        "the log. Empty is now.",
    ),
    Line,
]
ValidAt = Annotated[
    str,
    Field(
        max_length=_LONGEST_TIME,
        description="Only what held at this time, whenever it was written: 2026-03-01 or "
        "2026-03-01T10:00:00Z. Empty asks what holds now.",
    ),
    Line,
]
Filter = Annotated[
    str,
    Field(
        max_length=_LONGEST_NAME,
        description="Only memories of this category, such as preference. Empty is all.",
    ),
    Line,
]
Text = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_CONTENT,
        description="What to remember, in Markdown: one thing, in words that are understood "
        "without the conversation. No secrets.",
    ),
]
Category = Annotated[
    str,
    Field(
        min_length=1,
        max_length=_LONGEST_NAME,
        pattern=r"^[a-z0-9_-]+$",
        description="What it is: preference, profile, event, entity, procedure, note, or a word "
        "of your own.",
    ),
]
Slug = Annotated[
    str,
    Field(
        max_length=_LONGEST_NAME,
        pattern=r"^[a-z0-9_-]*$",
        description="Its name in the category, such as indentation. With one that is there "
        "already, the text becomes its next version. Empty makes one from the text. A profile has "
        "none.",
    ),
]
Name = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_KEY_BYTES,
        description="The URI of a memory, as recall and list give it (ctx://...), or its short "
        "form, such as preference/indentation.",
    ),
    Line,
]
Folder = Annotated[
    str,
    Field(
        max_length=MAX_KEY_BYTES,
        description="A category, such as preference, or sessions, resources, skills, or a URI. "
        "Empty lists the categories of the user's memories.",
    ),
    Line,
]
Reason = Annotated[
    str,
    Field(max_length=_LONGEST_REASON, description="Why; it stands in the history."),
    Line,
]
Offset = Annotated[
    int,
    Field(
        ge=0,
        le=2 * MAX_CONTENT,
        description="From which character on; next_offset of a cut answer.",
    ),
]
Limit = Annotated[int, Field(ge=1, le=200, description="How many at the most.")]
After = Annotated[
    str,
    Field(max_length=MAX_KEY_BYTES, description="The last URI of the answer before, to go on."),
    Line,
]
Archived = Annotated[bool, Field(description="What was forgotten and can be taken back, instead.")]
Delete = Annotated[
    bool,
    Field(
        description="Remove it instead of putting it away. Only if the user asks for just that; "
        "what it said stays in the history."
    ),
]
MaskSecrets = Annotated[
    bool,
    Field(description="Keep the text without the secrets that are in it, instead of refusing it."),
]
