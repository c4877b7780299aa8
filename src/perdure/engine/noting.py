"""Notes that are shown without being asked for: those of a project, and those always loaded.

What an index keeps of one is all that it takes to show it: its place, the hash of its content, and
the text as it may be put before a model. So whoever starts up again and again, and only wants to
see them, needs neither read nor check each of them anew, as long as its file is the same.
"""

from hashlib import sha256

from perdure.context.reading import Stored
from perdure.engine.recall.result import hit_of
from perdure.engine.recall.token_budget import RULES, render_hit
from perdure.index.account.schema import SHOWN_FILES
from perdure.model import ContextNode, IndexRecord
from perdure.model.record import NOTED, VALID_UNTIL
from perdure.model.uri import PROFILE
from perdure.model.values import JSON
from perdure.times import read_moment

ALWAYS_LOAD, PHASES = "always_load", "phases"
_MOST_LETTERS = 20_000
"""A longer note is not kept ready: it fits into no usual budget."""


LASTING, OF_PERSON = 2, 3
"""In place of `always`: for the briefing only, what may last, and what is about the person."""
_PERSONAL = frozenset({"preference", "pattern", "rule"})


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
    node = stored.node
    if is_noted(node):
        note = note_of(stored)
    elif node.category in _PERSONAL and not node.place.session:
        note = {NOTED: "", "always": OF_PERSON, "category": node.category}
    else:
        return records
    first, *others = records
    return [first.with_payload(note), *others]


def note_of(stored: Stored) -> dict[str, JSON]:
    """Return all that it takes to show a note, as long as its content and meta stay the same."""
    node, said = stored.node, [stored.files[name] for name in SHOWN_FILES]
    until = read_moment(node.metadata.get(VALID_UNTIL))
    note: dict[str, JSON] = {
        NOTED: node.project,
        "always": int(is_always_loaded(node)),
        "key": node.place.key,
        "owner": node.owner_space,
        "category": node.category,
        "phases": phases_of(node),
        "until": until.isoformat() if until else None,
    }
    texts = [text for text in said if isinstance(text, str)]
    if len(texts) == len(said) and not node.problems and len(node.content) <= _MOST_LETTERS:
        note |= {
            "sha256": sha256("\0".join(texts).encode()).hexdigest(),
            "entry": render_hit(hit_of(stored)),
            "rules": RULES,
        }
    return note


def phases_of(node: ContextNode) -> list[str]:
    said = node.declared(PHASES)
    names = said.split(",") if isinstance(said, str) else said
    if not isinstance(names, list | tuple):
        return []
    return [name.strip() for name in names if isinstance(name, str) and name.strip()]
