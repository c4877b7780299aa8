"""What may last: lines that a briefing chooses from, kept in the index with all that it takes.

Each statement of a memory, and each sentence of a session that is likely to last, is there as one
row; so a briefing reads the nodes that it shows, and no others.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, groupby

from perdure.engine.learn.changes import is_fragment
from perdure.engine.learn.evidence import Support, support_of
from perdure.engine.learn.net import LIKELY, scored
from perdure.engine.learn.prose import sentences
from perdure.engine.learn.rules import rule_for
from perdure.engine.learn.statements import Statement, cid_of
from perdure.engine.noting import LASTING
from perdure.model import ContextNode, IndexRecord
from perdure.model.anchors import session_anchors
from perdure.model.record import NOTED, VALID_FROM, VALID_UNTIL
from perdure.model.uri import KIND_TITLES, kind_of
from perdure.model.values import JSON, read_moment, shortened

LONGEST_LINE = 132
"""Characters of one line; a longer sentence is a description rather than a remark."""
_STATEMENT = re.compile(r"^- (.+)$", re.MULTILINE)


def with_stated(records: list[IndexRecord], node: ContextNode) -> list[IndexRecord]:
    """Return the records of a node; the first says what a briefing may show of it."""
    if not records or NOTED not in records[0].payload or node.place.session:
        return records
    return [records[0].with_payload({"stated": lines_of(node)}), *records[1:]]


def lines_of(node: ContextNode) -> list[JSON]:
    """Return the statements of a memory, or how it begins, with what it takes to choose them."""
    given, until = node.metadata.get("kind"), read_moment(node.metadata.get(VALID_UNTIL))
    dates = (read_moment(node.metadata.get(name)) for name in (VALID_FROM, "date"))
    date = next((each for each in dates if each), node.updated_at)
    common: dict[str, JSON] = {
        "kind": str(given) if given in KIND_TITLES else kind_of(node.category),
        "date": date.isoformat(),
        "until": until.isoformat() if until else None,
        "pinned": node.declared("pinned") in {True, "true", "yes"} or None,
    }
    support = support_of(node)
    stated = _STATEMENT.findall(node.content) or [node.abstract or node.content]
    rows = (_line_of(each, support.get(cid_of(each), Support(by="user"))) for each in stated)
    return [
        {name: value for name, value in {**common, **row}.items() if value not in (None, [])}
        for row in rows
    ]


def _line_of(stated: str, support: Support) -> dict[str, JSON]:
    statement = Statement.read(stated)
    likely = max((each.score for each in scored(statement.text)), default=0.0)
    return {
        "text": shortened(" ".join(stated.split()), LONGEST_LINE),
        "bare": shortened(" ".join(statement.text.split()), LONGEST_LINE),
        "doubted": statement.doubted.isoformat() if statement.doubted else None,
        "likely": None if support.by else round(likely, 3),
        "evidence": [[*mention.key] for mention in support.mentions],
        "quotes": [each.quote for mention in support.mentions for each in mention.evidence],
        "anchors": [each.as_json() for each in support.all_anchors],
    }


_LONGEST_END = 240
"""Characters that are kept of what the user asked last."""
KnownRecords = Callable[[Sequence[str]], Mapping[str, IndexRecord]]
"""Returns the records that an index has, by their ids."""


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
    for origin in session_anchors(node.metadata):
        more: dict[str, JSON] = {"origin": origin.as_json()}
        made = [each.with_payload(more) if NOTED in each.payload else each for each in made]
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
        if score >= LIKELY and _is_shown(each.sentence.text):
            kind = each.kind if each.kind in KIND_TITLES else "fact"
            lasting.append([" ".join(each.sentence.text.split()), kind, round(score, 3)])
    return list(best), lasting


_REFERRING = re.compile(r"\b(?:option|step|phase|lines?|#)\s?#?\d|:$", re.IGNORECASE)
"""What refers to something that only that session has: an option, a line, what follows."""


def _is_shown(text: str) -> bool:
    """Whether a sentence can be understood without its session."""
    return len(text) <= LONGEST_LINE and not (_REFERRING.search(text) or is_fragment(text))


def _noted(record: IndexRecord, project: str, more: Mapping[str, JSON]) -> IndexRecord:
    when = record.payload["date"]
    return record.with_payload({NOTED: project, "always": LASTING, "updated_at": when, **more})
