"""Briefing records: the lines that a briefing chooses from, as payloads of index records.

Each statement of a memory, and each sentence of a session that probably lasts, is one row, so a
briefing reads only the nodes that it shows. The record of a note of a project, and of one that is
always loaded, has all that is needed to show it while its file is unchanged.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import accumulate, groupby

from perdure.context.reader import StoredNode
from perdure.engine.briefing import sentence_rows
from perdure.engine.directives import LONGEST, Directive, directive_in
from perdure.engine.learn.evidence import Support, enforced_in, support_of
from perdure.engine.learn.extractors import rule_for
from perdure.engine.learn.judge import is_fragment
from perdure.engine.learn.prose import (
    LIKELY,
    LONGEST_OWN,
    ScoredSentence,
    matched,
    scored,
    sentence_id,
    sentences,
)
from perdure.engine.learn.statements import Statement, cid_of
from perdure.engine.occasions import FEWEST_STEPS, LONGEST_STEPS, condition_in, names_in
from perdure.engine.recall.result import RULES, hit_of, render_hit
from perdure.engine.tool_calls import (
    FAILED_MARK,
    CommandOutcome,
    FailureFix,
    fix_name,
    outcome_in,
    pairs_in,
)
from perdure.index.sql import SHOWN_FILES
from perdure.model import ContextNode, IndexRecord
from perdure.model.anchors import session_anchors
from perdure.model.node import NOTED, VALID_FROM, VALID_UNTIL
from perdure.model.speech import SpeechKind, speech_of
from perdure.model.transcript import parse
from perdure.model.uri import KIND_TITLES, PROFILE, kind_of
from perdure.model.values import JSON, comparison_key, shortened
from perdure.patterns import later
from perdure.safety.injection import instructions_in
from perdure.times import read_time

ALWAYS_LOAD, PHASES = "always_load", "phases"
_LONGEST_NOTE = 20_000
"""Characters. A longer note has no entry: it exceeds the usual budgets."""


LASTING, OF_PERSON = 2, 3
"""Values of `always` for records that only briefings use: lasting sentences, the person."""
_PERSONAL = frozenset({"preference", "pattern", "rule"})


def is_always_loaded(node: ContextNode) -> bool:
    """Whether a node is always loaded: a profile, or one with `always_load: true`."""
    return node.category == PROFILE or _is_true(node.declared(ALWAYS_LOAD))


def _is_true(value: JSON) -> bool:
    return value is True or (isinstance(value, str) and value.casefold() in {"true", "yes"})


def is_noted(node: ContextNode) -> bool:
    return not node.place.session and (bool(node.project) or is_always_loaded(node))


def with_note(records: list[IndexRecord], stored: StoredNode) -> list[IndexRecord]:
    """Return the records of a node; the first one has the note, if the node is shown unasked."""
    if not records:
        return records
    node = stored.node
    if is_noted(node):
        note = note_of(stored)
    elif node.category in _PERSONAL and not node.place.session:
        note = {NOTED: "", "always": OF_PERSON, "category": node.category}
    else:
        return records
    first, *others = records
    return [first.with_payload(note), *others]


def note_of(stored: StoredNode) -> dict[str, JSON]:
    """Return all that is needed to show a note while its files are unchanged."""
    node, files = stored.node, [stored.files[name] for name in SHOWN_FILES]
    until = read_time(node.metadata.get(VALID_UNTIL))
    note: dict[str, JSON] = {
        NOTED: node.project,
        "always": int(is_always_loaded(node)),
        "key": node.place.key,
        "owner": node.owner_space,
        "category": node.category,
        "phases": phases_of(node),
        "until": until.isoformat() if until else None,
    }
    texts = [text for text in files if isinstance(text, str)]
    if len(texts) == len(files) and not node.problems and len(node.content) <= _LONGEST_NOTE:
        note |= {
            "sha256": sha256("\0".join(texts).encode()).hexdigest(),
            "entry": render_hit(hit_of(stored)),
            "rules": RULES,
        }
    return note


def phases_of(node: ContextNode) -> list[str]:
    phases = node.declared(PHASES)
    names = phases.split(",") if isinstance(phases, str) else phases
    if not isinstance(names, list | tuple):
        return []
    return [name.strip() for name in names if isinstance(name, str) and name.strip()]


_FEWEST, _LONGEST = 4, 240
"""The fewest words and the most characters of a sentence that is repeated."""
_STEP = later(r"\s*\d{1,2}[.)]\s+\S")
_ATTACHED = later(r"^(?:@\S+\s+)+")
_OBJECTING = later(
    r"^(?:no|nope|wait|actually|hey|stop)\b|\bwhy (?:did|are|were|have|do|does|is)(?:n'?t)? you\b"
    r"|\byou (?:did ?n[o']?t|missed|forgot|updated|should|need to|were supposed|never|keep)\b"
    r"|\b(?:did(?:n'?t)?|have(?:n'?t)?) you\b|\bwhat about\b|\bfix (?:this|it|that)\b"
    r"|\bi (?:only |just |already )?(?:asked|told|wanted|said|meant)\b|\bi did(?:n'?t| not)\b",
    re.IGNORECASE,
)
_BINDING = frozenset(
    {"widening", "every", "prohibition", "contrast", "obligation", "correction", "rule_word"}
)
_ORDERED, _ASKING = frozenset({"making", "one_off"}), frozenset({"asking", "question"})
_ALWAYS = later(
    r"\b(?:always|never|from now on|in future|next time|going forward)\b", re.IGNORECASE
)
_PRODUCT = later(r"(?:the )?CODE (?:\w+ )?(?:should|must|needs?|takes?)\b", re.IGNORECASE)
"""The beginning of a sentence about what the code should do, and not about how to work."""
_DICTATING = later(
    r"\b(?:explain|specif(?:y|ies)|say|state|mention|document|record)(?:ing|s)? "
    r"(?:that|how|when)\b",
    re.IGNORECASE,
)
_RISKY = later(r"[<>|]\s*\w*sh\b|://|\b(?:curl|wget)\b")


def is_repeatable(text: str) -> bool:
    """Whether a sentence of a user objects, or says how to work, and is not a request."""
    plain = _ATTACHED.sub("", text)
    if len(plain.split()) < _FEWEST or len(text) > _LONGEST:
        return False
    seen = matched(plain)
    is_stated = _DICTATING.search(plain) or _ALWAYS.search(plain)
    if (_ORDERED & seen and not is_stated) or _PRODUCT.match(plain):
        return False
    if _OBJECTING.search(plain):
        return True
    is_asked = bool(_ASKING & seen) and not is_stated
    return not is_asked and bool(_BINDING & seen or condition_in(plain))


def occasions_in(content: str, sentences: Sequence[ScoredSentence]) -> list[JSON]:
    """Return the repeatable sentences of a message, and the procedures that it dictates.

    They are shown as the words of the user, with their day, and are not stored as rules.
    """
    found: list[JSON] = [[text, "rule", 1.0] for text in procedures_in(content)]
    stated = (each for each in sentences if is_repeatable(each.sentence.plain))
    found += [
        [" ".join(each.sentence.text.split()), "rule", round(each.score, 3)] for each in stated
    ]
    return found


def procedures_in(content: str) -> Iterator[str]:
    """Yield procedures that a user dictates: numbered steps below a condition, each as one line.

    They may be in a fence: a text that an agent should write into a file is the user's own, unless
    the message is so long that it is pasted.
    """
    speech = speech_of("user", content)
    is_own = speech.kind is SpeechKind.USER and len(speech.text) <= LONGEST_OWN
    lead, steps = "", list[str]()
    for line in [*(speech.text if is_own else "").split("\n"), "end"]:
        if _STEP.match(line):
            steps.append(" ".join(line.split()))
        elif line.strip():
            if len(steps) >= FEWEST_STEPS and lead.endswith(":") and condition_in(lead):
                procedure = _procedure(lead, steps)
                if not (instructions_in(procedure) or _RISKY.search(procedure)):
                    yield procedure
            lead, steps = " ".join(line.split()), []


def first_step(procedure: str) -> str:
    """Return the key of the words of the first step."""
    return comparison_key(re.split(r"\s\d{1,2}[.)]\s", procedure)[1])


def _procedure(lead: str, steps: Sequence[str]) -> str:
    line = lead
    for step in steps:
        if len(line) + len(step) > LONGEST_STEPS:
            return f"{line} …"
        line = f"{line} {step}"
    return line


LONGEST_LINE = 132
"""Characters of one line; a longer sentence is a description."""
_STATEMENT = re.compile(r"^- (.+)$", re.MULTILINE)


def with_stated(records: list[IndexRecord], node: ContextNode) -> list[IndexRecord]:
    """Return the records of a node; the first one has the lines that a briefing may show."""
    if not records or NOTED not in records[0].payload or node.place.session:
        return records
    lines = lines_of(node)
    names: set[str] = set()
    for row in lines:
        text = str(row["bare"])
        names.update((directive_in(text, str(row["kind"])) or Directive()).keys, names_in(text))
    more: dict[str, JSON] = {"names": [*sorted(names)]} if names else {}
    return [records[0].with_payload({"stated": [*lines], **more}), *records[1:]]


def lines_of(node: ContextNode) -> list[dict[str, JSON]]:
    """Return the statements of a memory, or its abstract, with what a briefing needs to choose."""
    given, until = node.metadata.get("kind"), node.valid_until
    dates = (read_time(node.metadata.get(name)) for name in (VALID_FROM, "date"))
    date = next((each for each in dates if each), node.date)
    shared: dict[str, JSON] = {
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
        {name: value for name, value in {**shared, **row}.items() if value not in (None, [])}
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
"""Characters of the last request of the user."""
KnownRecords = Callable[[Sequence[str]], Mapping[str, IndexRecord]]
"""Returns the records that an index has, by their ids."""


def with_lasting(
    records: list[IndexRecord], node: ContextNode, known: KnownRecords | None = None
) -> list[IndexRecord]:
    """Return the records of a session, each with the best score of its sentences.

    In a project, the first record of a message has its lasting sentences, and that of the last
    message of the user has the request, for briefings. Scores of an unchanged text are copied from
    the `known` records.
    """
    if not node.place.session:
        return records
    spoken = [at for at, each in enumerate(records) if each.payload.get("role") == "user"]
    before = known([records[at].id for at in spoken]) if known is not None and spoken else {}
    marked = list(records)
    groups = groupby(spoken, key=lambda at: records[at].payload["message"])
    messages = [list(spots) for _, spots in groups]
    for spots in messages:
        _mark(marked, spots, node.project, before)
    if node.project:
        texts = ((spots[0], _own_words(records, spots)) for spots in reversed(messages))
        last, asked = next((each for each in texts if each[1]), (-1, ""))
        if asked:
            ended = shortened(" ".join(asked.split()), _LONGEST_END)
            marked[last] = _noted(marked[last], node.project, {"ended": ended})
        _add_fixes(marked, node)
    marked = _without_foreign(marked, node.metadata.get("foreign"))
    for origin in session_anchors(node.metadata):
        more: dict[str, JSON] = {"origin": origin.as_json()}
        marked = [each.with_payload(more) if NOTED in each.payload else each for each in marked]
    return marked


def _without_foreign(records: list[IndexRecord], foreign: JSON) -> list[IndexRecord]:
    """Return records without the sentences that are not the user's own."""
    if not isinstance(foreign, Mapping) or not foreign:
        return records

    def own(rows: JSON) -> list[JSON]:
        return [[*row] for row in sentence_rows(rows, 0.0) if sentence_id(row[0]) not in foreign]

    marked = []
    for each in records:
        found = {name: own(each.payload[name]) for name in _PROPOSED if name in each.payload}
        marked.append(each.with_payload(found) if found else each)
    return marked


_PROPOSED = ("sentences", "directed", "occasions")


def _add_fixes(records: list[IndexRecord], node: ContextNode) -> None:
    """Add the failures that a command fixed, each to the record of the nearest message."""
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
        if message.role == "user" and speech_of("user", message.content).kind is SpeechKind.USER:
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
    """Score the sentences of the message with the records at `spots`, and add the best ones."""
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
"""The least score of a directive; most sentences below it are pasted."""


def directed_in(message: Sequence[ScoredSentence]) -> list[JSON]:
    """Return the sentences of a message with a directive."""
    found: list[JSON] = []
    for each in message:
        score = each.score + (rule_for(each.sentence.plain) is not None)
        if score >= _FORBIDS and directive_in(each.sentence.text):
            found.append([" ".join(each.sentence.text.split()), each.kind, round(score, 3)])
    return found


def _names_in(rows: JSON, names_of: Callable[[str], Iterable[str]]) -> set[str]:
    texts = (text for text, _, _ in sentence_rows(rows, 0.0))
    return {name for text in texts for name in names_of(text)}


def best_of(message: Sequence[ScoredSentence], texts: Sequence[str]) -> list[JSON]:
    ends = [*accumulate(len(text) + 1 for text in texts)]
    best = [0.0] * len(texts)
    for each in message:
        at = bisect_right(ends, each.sentence.start)
        best[at] = max(best[at], round(each.score, 3))
    return list(best)


def likely_in(message: Sequence[ScoredSentence]) -> list[JSON]:
    lasting: list[JSON] = []
    for each in message:
        score = each.score + (rule_for(each.sentence.plain) is not None)
        text = _as_line(each.sentence.text)
        if score >= LIKELY and _is_shown(text):
            lasting.append([text, each.kind, round(score, 3)])
    return lasting


_REFERRING = re.compile(r"\b(?:option|step|phase|lines?|#)\s?#?\d|:$", re.IGNORECASE)
"""References to something that only the session has: an option, a line, what follows."""


_CLAUSE_END = re.compile(r"[;:](?=\s)| (?=\()| [\u2013\u2014-] ")
_SHORTEST_CLAUSE = 24


def _as_line(text: str) -> str:
    """Return a sentence as one line; of a longer one, as many whole clauses as fit."""
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
