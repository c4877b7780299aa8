"""What tools take and return. A client gets the schema of each."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from perdure import INTRODUCTION
from perdure.model.uri import MAX_KEY_BYTES
from perdure.model.values import MAX_CONTENT, visible

_LONGEST_QUERY = 4_000
_MOST_TOKENS = 20_000
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


_Prose = AfterValidator(_without_controls)
_Line = AfterValidator(_in_one_line)

Query = Annotated[
    str,
    Field(
        min_length=1,
        max_length=_LONGEST_QUERY,
        description="What you want to know, as a question or in a few words. Times such as "
        "'last March' are understood.",
    ),
    _Prose,
]
TopK = Annotated[int, Field(ge=1, le=100, description="How many hits at the most.")]
Budget = Annotated[
    int,
    Field(
        ge=100,
        le=_MOST_TOKENS,
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
    _Line,
]
ValidAt = Annotated[
    str,
    Field(
        max_length=_LONGEST_TIME,
        description="Only what held at this time, whenever it was written: 2026-03-01 or "
        "2026-03-01T10:00:00Z. Empty asks what holds now.",
    ),
    _Line,
]
Filter = Annotated[
    str,
    Field(
        max_length=_LONGEST_NAME,
        description="Only memories of this category, such as preference. Empty is all.",
    ),
    _Line,
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
    _Line,
]
Folder = Annotated[
    str,
    Field(
        max_length=MAX_KEY_BYTES,
        description="A category, such as preference, or sessions, resources, skills, or a URI. "
        "Empty lists the categories of the user's memories.",
    ),
    _Line,
]
Reason = Annotated[
    str,
    Field(max_length=_LONGEST_REASON, description="Why; it stands in the history."),
    _Line,
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
    _Line,
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


# ---------------------------------------------------------------- answers
class Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Remembered(Answer):
    """An answer that quotes memories."""

    notice: str = Field(default=INTRODUCTION, description="How to take the texts below.")


class Hit(Answer):
    uri: str
    title: str
    text: str = Field(description="The passage that was found.")
    where: str = Field(description="Which message or lines of the memory; empty if it is all.")
    category: str
    date: str = Field(description="The day that it is about, or of; empty if nobody knows.")
    holds: bool = Field(description="False if something superseded it; then say so.")
    validity: str = Field(description="From when to when it holds, in words.")
    speaker: str
    session_id: str
    cid: str = Field(description="Names just this version of the text.")
    score: float


class Recalled(Remembered):
    hits: tuple[Hit, ...] = Field(description="The best first.")
    left_out: int = Field(description="How many hits did not fit into the budget.")
    index_lag: int = Field(description="How many changes the answer does not know of; 0 is none.")
    notes: tuple[str, ...] = Field(description="What to know about this answer.")


class Saved(Answer):
    uri: str
    version: int
    written: bool = Field(description="False if memory said just that already.")
    created: bool = Field(description="False if it is the next version of what was there.")
    changed: bool = Field(
        description="Whether it was not kept to the letter, because that could do harm."
    )


class Read(Remembered):
    uri: str
    title: str
    category: str
    text: str
    version: int
    created_at: str
    updated_at: str
    offset: int
    next_offset: int | None = Field(description="Where to go on if it was cut; null at its end.")
    problems: tuple[str, ...] = Field(description="What an edit by hand broke, if anything.")


class Entry(Answer):
    uri: str
    name: str = Field(description="The short form, which every tool takes too.")
    kind: Literal["memory", "folder"]
    says: str = Field(description="How it begins; for a folder, how much is in it.")
    updated_at: str
    version: int


class Listed(Remembered):
    folder: str
    entries: tuple[Entry, ...]
    total: int = Field(description="How many there are in all.")
    more_after: str = Field(description="Give this as `after` to go on; empty at the end.")


class Forgotten(Answer):
    uri: str
    state: Literal["archived", "deleted"]
    changed: bool = Field(description="False if it was so already.")
    undo: str = Field(description="How the user takes it back.")


class Version(Answer):
    version: int
    time: str = Field(description="Give this as `at` to `read` to see it.")
    actor: str
    origin: str = Field(description="save, merge, restore, or external: edited by hand.")
    reason: str
    cid: str = Field(description="Empty if it was removed then.")


class Versions(Remembered):
    uri: str
    total: int
    versions: tuple[Version, ...] = Field(description="The newest first.")


class Quote(Answer):
    session: str
    message: int
    speaker: str
    quote: str
    holds: bool = Field(description="Whether the words are still where they were said.")
    trouble: str


class Statement(Answer):
    text: str
    origin: Literal["said", "written"] = Field(
        description="said: learned from a conversation; written: by hand, or by `remember`."
    )
    since: str
    confidence: float | None
    holds: bool = Field(description="Whether all its evidence is still there.")
    evidence: tuple[Quote, ...]
    out_of_reach: int = Field(description="How much more evidence you may not see.")


class Former(Answer):
    uri: str
    text: str
    reason: str
    valid_until: str


class Explained(Remembered):
    uri: str
    title: str
    kind: str
    version: int
    holds: bool
    source: str = Field(description="The program that it was imported from; empty if from none.")
    statements: tuple[Statement, ...]
    superseded: tuple[Former, ...]
    superseded_by: tuple[str, ...] = Field(description="What holds in its place.")
    left_out: int = Field(description="How many statements did not fit into the budget.")
