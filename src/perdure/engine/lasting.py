"""What may last: lines that a briefing chooses from, kept in the index with all that it takes.

Each statement of a memory, and each sentence of a session that is likely to last, is there as one
row; so a briefing reads the nodes that it shows, and no others.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby

from perdure.engine.briefing import sentence_rows
from perdure.engine.directives import LONGEST, Directive, directive_in
from perdure.engine.learn.evidence import Support, enforced_in, support_of
from perdure.engine.learn.judge import is_fragment
from perdure.engine.learn.prose import LIKELY, Candidate, scored, sentences
from perdure.engine.learn.review import id_of
from perdure.engine.learn.rules import rule_for
from perdure.engine.learn.statements import Statement, cid_of
from perdure.engine.noting import LASTING
from perdure.engine.occasions import names_in
from perdure.engine.repeatable import occasions_in
from perdure.engine.shell_failures import (
    FAILED_MARK,
    CommandOutcome,
    FailureFix,
    fix_name,
    outcome_in,
    pairs_in,
)
from perdure.model import ContextNode, IndexRecord
from perdure.model.anchors import session_anchors
from perdure.model.record import NOTED, VALID_FROM
from perdure.model.speech import Kind, speech_of
from perdure.model.transcript import parse
from perdure.model.uri import KIND_TITLES, kind_of
from perdure.model.values import JSON, shortened
from perdure.times import read_moment

LONGEST_LINE = 132
"""Characters of one line; a longer sentence is a description rather than a remark."""
_STATEMENT = re.compile(r"^- (.+)$", re.MULTILINE)


def with_stated(records: list[IndexRecord], node: ContextNode) -> list[IndexRecord]:
    """Return the records of a node; the first says what a briefing may show of it."""
    if not records or NOTED not in records[0].payload or node.place.session:
        return records
    lines = lines_of(node)
    names = {key for row in lines for key in (*_directive(row).keys, *names_in(str(row["bare"])))}
    more: dict[str, JSON] = {"names": [*sorted(names)]} if names else {}
    return [records[0].with_payload({"stated": [*lines], **more}), *records[1:]]


def _directive(row: Mapping[str, JSON]) -> Directive:
    found = directive_in(str(row["bare"]), str(row["kind"]))
    return found or Directive()


def lines_of(node: ContextNode) -> list[dict[str, JSON]]:
    """Return the statements of a memory, or how it begins, with what it takes to choose them."""
    given, until = node.metadata.get("kind"), node.valid_until
    dates = (read_moment(node.metadata.get(name)) for name in (VALID_FROM, "date"))
    date = next((each for each in dates if each), node.date)
    common: dict[str, JSON] = {
        "kind": str(given) if given in KIND_TITLES else kind_of(node.category),
        "date": date.isoformat() if date else None,
        "until": until.isoformat() if until else None,
        "pinned": node.declared("pinned") in {True, "true", "yes"} or None,
    }
    support, enforced = support_of(node), enforced_in(node)
    stated = _STATEMENT.findall(node.content) or [node.abstract or node.content]
    rows = (
        _line_of(each, support.get(cid_of(each), Support(by="user")))
        | {"enforced": cid_of(each) in enforced or None}
        for each in stated
    )
    return [
        {name: value for name, value in {**common, **row}.items() if value not in (None, [])}
        for row in rows
    ]


def _line_of(stated: str, support: Support) -> dict[str, JSON]:
    statement = Statement.read(stated)
    likely = max((each.score for each in scored(statement.text)), default=0.0)
    return {
        "text": shortened(" ".join(stated.split()), LONGEST_LINE),
        "bare": shortened(" ".join(statement.text.split()), LONGEST),
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
        _add_fixes(made, node)
    made = _without_foreign(made, node.metadata.get("foreign"))
    for origin in session_anchors(node.metadata):
        more: dict[str, JSON] = {"origin": origin.as_json()}
        made = [each.with_payload(more) if NOTED in each.payload else each for each in made]
    return made


def _without_foreign(records: list[IndexRecord], foreign: JSON) -> list[IndexRecord]:
    """Return records that propose no sentence whose words stem from others than the user."""
    if not isinstance(foreign, Mapping) or not foreign:
        return records

    def own(rows: JSON) -> list[JSON]:
        given = rows if isinstance(rows, list | tuple) else ()
        return [row for row in given if isinstance(row, list | tuple) and _id(row) not in foreign]

    made = []
    for each in records:
        found = {name: own(each.payload[name]) for name in _PROPOSED if name in each.payload}
        made.append(each.with_payload(found) if found else each)
    return made


_PROPOSED = ("sentences", "directed", "occasions")


def _id(row: Sequence[JSON]) -> str:
    return id_of(str(row[0])) if row else ""


def _add_fixes(records: list[IndexRecord], node: ContextNode) -> None:
    """Note the failures of a session that a command fixed, each with a message near by."""
    if FAILED_MARK not in node.content:
        return
    spots = [(each.payload.get("message"), at) for at, each in enumerate(records)]
    places = [(message, at) for message, at in spots if isinstance(message, int)]
    by_spot: dict[int, list[FailureFix]] = {}
    for pair in pairs_in(list(_outcomes(node))) if places else ():
        _, at = min(places, key=lambda place: abs(place[0] - pair.message))
        by_spot.setdefault(at, []).append(pair)
    for at, pairs in by_spot.items():
        known = records[at].payload.get("names")
        names = {*(known if isinstance(known, list | tuple) else ())}
        names |= {fix_name(pair.signature) for pair in pairs}
        fixes: list[JSON] = [[pair.signature, pair.failed, pair.fix] for pair in pairs]
        more: dict[str, JSON] = {"names": sorted(map(str, names)), "fixes": fixes}
        records[at] = _noted(records[at], node.project, more)


def _outcomes(node: ContextNode) -> Iterator[CommandOutcome]:
    for each in parse(node.content):
        message = each.message
        if message.role == "user" and speech_of("user", message.content).kind is Kind.USER:
            yield CommandOutcome(each.index)
        elif message.role == "tool" and (found := outcome_in(message.content)):
            yield CommandOutcome(each.index, found[1], found[0])


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
    noted: dict[str, JSON] = {}
    if all(old and old.text == records[at].text for at, old in zip(spots, known, strict=True)):
        scores = [old.payload.get("lasting", 0.0) for old in known if old]
        first = known[0].payload if known[0] else {}
        noted = {name: first.get(name) for name in _PROPOSED}
    else:
        texts = [records[at].text for at in spots]
        found = scored("\n".join(texts))
        scores = best_of(found, texts)
        if project:
            rows = likely_in(found), directed_in(found), occasions_in("\n".join(texts), found)
            noted = dict(zip(_PROPOSED, rows, strict=True))
    for at, score in zip(spots, scores, strict=True):
        if score:
            records[at] = records[at].with_payload({"lasting": score})
    if not project:
        return
    names = _names_in(noted["directed"], lambda text: directive_in(text).keys)
    noted["names"] = [*sorted(names | _names_in(noted["occasions"], names_in))]
    if more := {name: value for name, value in noted.items() if value}:
        records[spots[0]] = _noted(records[spots[0]], project, more)


_FORBIDS = 0.1
"""The least score of a sentence that forbids what it names; below it, most are pasted."""


def directed_in(message: Sequence[Candidate]) -> list[JSON]:
    """Return the sentences of a message that name what a tool call may use."""
    found: list[JSON] = []
    for each in message:
        given = directive_in(each.sentence.text)
        score = each.score + (rule_for(each.sentence.plain) is not None)
        if given and score >= _FORBIDS:
            kind = each.kind if each.kind in KIND_TITLES else "fact"
            found.append([" ".join(each.sentence.text.split()), kind, round(score, 3)])
    return found


def _names_in(rows: JSON, names_of: Callable[[str], Iterable[str]]) -> set[str]:
    texts = (text for text, _, _ in sentence_rows(rows, 0.0))
    return {name for text in texts for name in names_of(text)}


def best_of(message: Sequence[Candidate], texts: Sequence[str]) -> list[JSON]:
    ends = [*accumulate(len(text) + 1 for text in texts)]
    best = [0.0] * len(texts)
    for each in message:
        at = bisect_right(ends, each.sentence.start)
        best[at] = max(best[at], round(each.score, 3))
    return list(best)


def likely_in(message: Sequence[Candidate]) -> list[JSON]:
    lasting: list[JSON] = []
    for each in message:
        score = each.score + (rule_for(each.sentence.plain) is not None)
        text = _as_line(each.sentence.text)
        if score >= LIKELY and _is_shown(text):
            kind = each.kind if each.kind in KIND_TITLES else "fact"
            lasting.append([text, kind, round(score, 3)])
    return lasting


_REFERRING = re.compile(r"\b(?:option|step|phase|lines?|#)\s?#?\d|:$", re.IGNORECASE)
"""What refers to something that only that session has: an option, a line, what follows."""


_CLAUSE_END = re.compile(r"[;:](?=\s)| (?=\()| [\u2013\u2014-] ")
_SHORTEST_CLAUSE = 24


def _as_line(text: str) -> str:
    """Return a sentence as one line; of one that is longer, as many whole clauses as fit."""
    line = " ".join(text.split())
    if len(line) <= LONGEST_LINE:
        return line
    ends = [end.start() for end in _CLAUSE_END.finditer(line, _SHORTEST_CLAUSE, LONGEST_LINE)]
    return f"{line[: ends[-1]]} …" if ends else line


def _is_shown(text: str) -> bool:
    """Whether a sentence can be understood without its session."""
    return len(text) <= LONGEST_LINE and not (_REFERRING.search(text) or is_fragment(text))


def _noted(record: IndexRecord, project: str, more: Mapping[str, JSON]) -> IndexRecord:
    when = record.payload["date"]
    return record.with_payload({NOTED: project, "always": LASTING, "updated_at": when, **more})
