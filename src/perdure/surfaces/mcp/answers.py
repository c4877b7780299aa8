"""What tools answer with. A client gets the schema of each."""

from typing import Literal

from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, ConfigDict, Field

from perdure.engine.recall.packing import INTRODUCTION


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


def answered(answer: Answer, text: str | None = None) -> CallToolResult:
    """Return an answer as programs read it, and as a text for a model."""
    told = answer.model_dump_json() if text is None else text
    return CallToolResult(
        content=[TextContent(type="text", text=told)],
        structured_content=answer.model_dump(mode="json"),
    )
