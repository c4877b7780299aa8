"""Notes that are shown without being asked for: those of a project, and those always loaded.

What an index keeps of one is all that it takes to show it: its place, the hash of its content, and
the text as it may be put before a model. So whoever starts up again and again, and only wants to
see them, needs neither read nor check each of them anew, as long as its file is the same.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from itertools import accumulate, groupby

from perdure.context.reading import Stored
from perdure.engine.learn.net import LIKELY, scored
from perdure.engine.learn.prose import sentences
from perdure.engine.learn.rules import rule_for
from perdure.engine.recall.packing import RULES, entry
from perdure.engine.recall.result import hit_of
from perdure.index.account.schema import SHOWN_FILES
from perdure.model import ContextNode, IndexRecord
from perdure.model.record import VALID_UNTIL
from perdure.model.uri import PROFILE
from perdure.model.values import JSON, read_moment, shortened

ALWAYS_LOAD, PHASES = "always_load", "phases"
NOTED = "noted"
"""The project that a note is of, in the payload of a record; empty if it is for all of them."""
_MOST_LETTERS = 20_000
"""A longer note is not kept ready: it fits into no usual budget."""


def is_always_loaded(node: ContextNode) -> bool:
    """Whether a node is of use to any question: a profile, or what says `always_load: true`."""
    return node.category == PROFILE or _is_true(node.declared(ALWAYS_LOAD))


def _is_true(value: JSON) -> bool:
    return value is True or (isinstance(value, str) and value.casefold() in {"true", "yes"})


def is_noted(node: ContextNode) -> bool:
    return not node.place.session and (bool(node.project) or is_always_loaded(node))


def with_note(records: list[IndexRecord], stored: Stored) -> list[IndexRecord]:
    """Return the records of a node; if it is to be shown unasked, the first of them says how."""
    if not records:
        return records
    if is_noted(stored.node):
        note = note_of(stored)
    elif stored.node.category in _PERSONAL and not stored.node.place.session:
        note = {NOTED: "", "always": OF_PERSON}
    else:
        return records
    first, *others = records
    return [first.with_payload(note), *others]


_LONGEST_END = 240
"""Characters that are kept of what the user asked last."""
KnownRecords = Callable[[Sequence[str]], Mapping[str, IndexRecord]]
"""Returns the records that an index has, by their ids."""
LASTING, OF_PERSON = 2, 3
"""In place of `always`: for the briefing only, what may last, and what is about the person."""
_PERSONAL = frozenset({"preference", "pattern", "rule"})


def with_lasting(
    records: list[IndexRecord], node: ContextNode, known: KnownRecords | None = None
) -> list[IndexRecord]:
    """Return the records of a session; each says how likely its sentences are to last.

    In a project, the first record of a message has those that are likely enough, and the last
    message of the user that it is: that is what the briefing is made of. What the `known` records
    say of the same text is not found out again.
    """
    if not node.place.session:
        return records
    spoken = [at for at, each in enumerate(records) if each.payload.get("role") == "user"]
    before = known([records[at].id for at in spoken]) if known is not None and spoken else {}
    made = list(records)
    groups = groupby(spoken, key=lambda at: records[at].payload["message"])
    messages = [list(spots) for _, spots in groups]
    for spots in messages:
        _mark(made, spots, node.project, before)
    if node.project:
        texts = ((spots[0], _own_words(records, spots)) for spots in reversed(messages))
        last, asked = next((each for each in texts if each[1]), (-1, ""))
        if asked:
            ended = shortened(" ".join(asked.split()), _LONGEST_END)
            made[last] = _noted(made[last], node.project, {"ended": ended})
    return made


def _own_words(records: Sequence[IndexRecord], spots: Sequence[int]) -> str:
    found = sentences("\n".join(records[at].text for at in spots))
    return found[0].text if found else ""


def _mark(
    records: list[IndexRecord],
    spots: Sequence[int],
    project: str,
    before: Mapping[str, IndexRecord],
) -> None:
    """Score the sentences of a message that is in the records at `spots`, and note the best."""
    known = [before.get(records[at].id) for at in spots]
    if all(old and old.text == records[at].text for at, old in zip(spots, known, strict=True)):
        scores = [old.payload.get("lasting", 0.0) for old in known if old]
        lasting = known[0].payload.get("sentences") if known[0] else None
    else:
        scores, lasting = scores_of([records[at].text for at in spots])
    for at, score in zip(spots, scores, strict=True):
        if score:
            records[at] = records[at].with_payload({"lasting": score})
    if project and lasting:
        records[spots[0]] = _noted(records[spots[0]], project, {"sentences": lasting})


def scores_of(texts: Sequence[str]) -> tuple[list[JSON], list[JSON]]:
    """Return how likely each part of a message is to last, and the sentences that may."""
    ends = [*accumulate(len(text) + 1 for text in texts)]
    best = [0.0] * len(texts)
    lasting: list[JSON] = []
    for each in scored("\n".join(texts)):
        at = bisect_right(ends, each.sentence.start)
        best[at] = max(best[at], round(each.score, 3))
        score = each.score + (rule_for(each.sentence.plain) is not None)
        if score >= LIKELY:
            lasting.append([each.sentence.text, each.kind, round(score, 3)])
    return list(best), lasting


def _noted(record: IndexRecord, project: str, more: Mapping[str, JSON]) -> IndexRecord:
    when = record.payload["date"]
    return record.with_payload({NOTED: project, "always": LASTING, "updated_at": when, **more})


def note_of(stored: Stored) -> dict[str, JSON]:
    """Return all that it takes to show a note.

    It is presentable as long as its content and meta are what they were.
    """
    node, said = stored.node, [stored.files[name] for name in SHOWN_FILES]
    note: dict[str, JSON] = {
        NOTED: node.project,
        "always": int(is_always_loaded(node)),
        "key": node.place.key,
        "owner": node.owner_space,
        "category": node.category,
        "phases": phases_of(node),
        "until": _time(node.metadata, VALID_UNTIL),
    }
    texts = [text for text in said if isinstance(text, str)]
    if len(texts) == len(said) and not node.problems and len(node.content) <= _MOST_LETTERS:
        note |= {
            "sha256": sha256("\0".join(texts).encode()).hexdigest(),
            "entry": entry(hit_of(stored)),
            "rules": RULES,
        }
    return note


def phases_of(node: ContextNode) -> list[str]:
    said = node.declared(PHASES)
    names = said.split(",") if isinstance(said, str) else said
    if not isinstance(names, list | tuple):
        return []
    return [name.strip() for name in names if isinstance(name, str) and name.strip()]


def _time(metadata: Mapping[str, JSON], name: str) -> str | None:
    time = read_moment(metadata.get(name))
    return None if time is None else time.isoformat()
