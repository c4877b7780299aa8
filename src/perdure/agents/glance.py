"""A glance at the index: whether memory may have something to say to a tool call.

It opens nothing that could write, and loads little: at nearly every call the answer is no.
"""

import os
import time
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from perdure.app.reading import Reading, open_to_read
from perdure.context.aliases import user_file
from perdure.context.files import FORGOTTEN, found_at
from perdure.dataclass import replace
from perdure.errors import DamageError, StorageError
from perdure.harness.projects import identity_at, top_of
from perdure.index.account.schema import LEXICAL, read_naming
from perdure.model.aliases import Identity
from perdure.sqlite import ReadOnlyFile
from perdure.storage.contract import Layout

if TYPE_CHECKING:
    from perdure.agents.shown import AnsweredFrom
    from perdure.engine.actions import Action
    from perdure.engine.briefing import Scope
    from perdure.engine.recall.result import Hint, RecallResult
    from perdure.model import RequestContext
    from perdure.model.anchors import Checkout
    from perdure.model.values import JSON

Answer = TypeVar("Answer")
_MOST = 200


def may_remind(action: "Action", cwd: str, shown: Container[str]) -> bool:
    """Whether a rule may be about a tool call; if nobody can tell, it may."""
    reading = open_to_read(os.environ)
    if reading.waiting(1) != []:  # the index is behind
        return True
    from perdure.engine.occasions import of_action

    names, fits = of_action(action)
    found = _payloads(reading, cwd, action.keys | names)
    if not found:
        return found is None
    from perdure.engine.directives import directive_in
    from perdure.engine.matching import matches

    return any(
        (is_enforced or text not in shown)
        and (matches(directive_in(text, kind), action) or fits(text))
        for payload in found
        for text, kind, is_enforced in _stated(payload)
    )


def recall_by_words(
    scope: "Scope", query: str, top_k: int, hints: "tuple[Hint, ...]"
) -> "RecallResult":
    """Return what is known to the project of the folder, and about the person."""
    from perdure.engine.recall.answer import recall
    from perdure.engine.recall.question import Question
    from perdure.engine.recall.result import Sources

    asked = Question(text=query, top_k=top_k, project=scope.names[0], projects=scope.projects)
    result = recall(Sources(scope.reader, scope.index, why_words=None), asked, scope.ctx)
    return replace(result, hints=(*result.hints, *hints))


def at_a_glance(
    cwd: str,
    answered: "AnsweredFrom",
    ask: "Callable[[Scope, tuple[Hint, ...]], Answer]",
    *,
    by_words: bool = False,
) -> "Answer | None":
    """Return what the index alone answers, and note whose it is; None if it can't do.

    So it is if the index is behind, if an edit is to be recorded first, and if anything fails. A
    search `by_words` can't do either where meanings are compared, or something was forgotten.
    """
    from perdure.app import caller_for
    from perdure.context.reading import NodeReader
    from perdure.engine.briefing import Scope
    from perdure.index.stores.sqlite import SqliteIndex

    reading = open_to_read(os.environ)
    databases, caller = reading.databases(), caller_for(os.environ, role="member")
    is_current = reading.waiting(1) == [] and not (reading.folder / "erasing").is_dir()
    if not is_current or len(databases) != 1:
        return None
    folder = databases[0].parent
    if by_words and not (folder.name.startswith(LEXICAL) and _has_all(reading, caller)):
        return None
    identity, aliases = identity_at(cwd) if cwd else Identity(""), reading.aliases()
    project = aliases.project(identity) if identity.slug else ""
    opened = SqliteIndex(str(folder), kind=ReadOnlyFile)
    with suppress(DamageError, StorageError), closing(opened) as index:
        hints = _edits(reading, index.places(caller.account_id))
        if hints is None:
            return None
        names = (project, *aliases.names(project)) if project else ("",)
        tree = _checkout(identity.folder, reading.config.home)
        found = ask(Scope(NodeReader(reading.backend), index, caller, names, tree), hints)
        answered.account, answered.user = caller.account_id, caller.user_id
        answered.project, answered.position = project, index.cursor(caller.account_id)
        if index.is_undisturbed(caller.account_id):
            return found
    return None


def _has_all(reading: Reading, caller: "RequestContext") -> bool:
    """Whether the caller never forgot anything, which would have to be left out."""
    file = user_file(caller.account_id, caller.user_id, FORGOTTEN)
    return found_at(file, reading.backend) is None


def _checkout(folder: str, home: Path) -> "Checkout | None":
    if top_of(folder) is None:
        return None
    from perdure.harness.checkout import working_tree

    return working_tree(folder, home / "hooks" / "ancestry.json")


def _edits(reading: Reading, indexed: int) -> "tuple[Hint, ...] | None":
    """Return why edits may be missed; None if one may have to be recorded.

    Before the first look, nothing but the index tells how many texts there are.
    """
    from perdure.engine.edits import INLINE_TEXTS, background_hint, look_at_notes
    from perdure.storage.seen import SEEN, Seen

    if not reading.config.check_seconds:  # then the owner is to be notified
        return None
    deadline = time.monotonic() + reading.config.check_seconds
    with suppress(StorageError), Seen(str(reading.folder / SEEN)) as texts:
        known = texts.size(INLINE_TEXTS + 1)
        if (known or indexed) > INLINE_TEXTS:
            return (background_hint(texts),)
        if known and isinstance(reading.layout, Layout):
            checked = look_at_notes(reading.layout, texts, deadline)
            if not (checked.found or checked.rows or checked.gone or checked.left):
                return ()
    return None


def may_fix(signature: str, cwd: str) -> bool:
    """Whether a failure of this signature may have been fixed before; as `may_remind`."""
    reading = open_to_read(os.environ)
    return reading.waiting(1) != [] or _payloads(reading, cwd, [signature]) != []


def _payloads(reading: Reading, cwd: str, names: Collection[str]) -> "list[dict[str, JSON]] | None":
    """Return what is noted for the project of a folder that has one of these names."""
    identity = identity_at(cwd) if cwd else ""
    aliases = reading.aliases()
    project = aliases.project(identity) if identity else ""
    projects = (project, *aliases.names(project), "") if project else ("",)
    databases = reading.databases()
    if len(databases) != 1:  # a new model's index is being made, or there is none
        return None
    return read_naming(databases[0], projects, names, _MOST)


def _stated(payload: "Mapping[str, JSON]") -> Iterator[tuple[str, str, bool]]:
    """Yield the statements and sentences of a note: text, kind, and whether it is enforced."""
    for name in ("stated", "directed", "occasions"):
        rows = payload.get(name)
        for row in rows if isinstance(rows, list) else ():
            match row:
                case {"bare": str() as text, "kind": str() as kind}:
                    yield text, "" if "likely" in row else kind, row.get("enforced") is True
                case [str() as text, *_]:
                    yield text, "", False
