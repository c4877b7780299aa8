"""The fast path of hooks: answers from the index alone.

It opens nothing that can write, and loads little: for most tool calls there is nothing to show.
Where it can't answer, the moment opens the memory.
"""

import os
import time
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from perdure.app.memory_reader import MemoryReader, open_reader
from perdure.context.node_files import FORGOTTEN, text_at, user_file
from perdure.dataclass import replace
from perdure.errors import DamageError, StorageError
from perdure.harness.project import identity_at, top_of
from perdure.index.sql import LEXICAL, read_payloads_naming
from perdure.model.project_aliases import ProjectIdentity
from perdure.sqlite import ReadOnlyDatabase
from perdure.storage.contract import Layout

if TYPE_CHECKING:
    from perdure.agents.hook_log import AnswerSource
    from perdure.engine.briefing import ProjectScope
    from perdure.engine.recall.result import Hint, RecallResult
    from perdure.engine.tool_calls import AgentAction
    from perdure.model import RequestContext
    from perdure.model.anchors import AnchorChecker
    from perdure.model.values import JSON

Answer = TypeVar("Answer")
_PAYLOADS = 200


def may_remind(action: "AgentAction", cwd: str, shown: Container[str]) -> bool:
    """Whether a rule may be about a tool call; True if the index can't tell."""
    reader = open_reader(os.environ)
    if reader.waiting(1) != []:  # the index is behind
        return True
    from perdure.engine.occasions import of_action

    names, fits = of_action(action)
    found = _payloads(reader, cwd, action.keys | names)
    if not found:
        return found is None
    from perdure.engine.directives import directive_in, matches

    return any(
        (is_enforced or text not in shown)
        and (matches(directive_in(text, kind), action) or fits(text))
        for payload in found
        for text, kind, is_enforced in _stated(payload)
    )


def recall_by_words(
    scope: "ProjectScope", query: str, top_k: int, hints: "tuple[Hint, ...]"
) -> "RecallResult":
    """Search the notes of the folder's project and of the person by words."""
    from perdure.engine.recall.answer import recall
    from perdure.engine.recall.question import Question
    from perdure.engine.recall.result import Sources

    question = Question(text=query, top_k=top_k, project=scope.names[0], projects=scope.projects)
    result = recall(Sources(scope.reader, scope.index, why_words=None), question, scope.ctx)
    return replace(result, hints=(*result.hints, *hints))


def answer_from_index(
    cwd: str,
    answered: "AnswerSource",
    ask: "Callable[[ProjectScope, tuple[Hint, ...]], Answer]",
    *,
    by_words: bool = False,
) -> "Answer | None":
    """Return the answer of `ask` from the index alone, and its source; None if it can't be used.

    It can't if the index is behind, if an edit has to be recorded first, or if anything fails; for
    a search `by_words`, also where recall uses vectors, or the caller has forgotten something.
    """
    from perdure.app import caller_for
    from perdure.context.reader import NodeReader
    from perdure.engine.briefing import ProjectScope
    from perdure.index.sqlite_index import SqliteIndex

    reader = open_reader(os.environ)
    databases, caller = reader.databases(), caller_for(os.environ, role="member")
    is_current = reader.waiting(1) == [] and not (reader.folder / "erasing").is_dir()
    if not is_current or len(databases) != 1:
        return None
    folder = databases[0].parent
    if by_words and not (
        folder.name.startswith(LEXICAL) and _has_forgotten_nothing(reader, caller)
    ):
        return None
    identity, aliases = identity_at(cwd) if cwd else ProjectIdentity(""), reader.aliases()
    project = aliases.project(identity) if identity.slug else ""
    opened = SqliteIndex(str(folder), kind=ReadOnlyDatabase)
    with suppress(DamageError, StorageError), closing(opened) as index:
        hints = _edits(reader, index.count_uris(caller.account_id))
        if hints is None:
            return None
        names = (project, *aliases.names(project)) if project else ("",)
        tree = _checkout(identity.folder, reader.config.home)
        found = ask(ProjectScope(NodeReader(reader.backend), index, caller, names, tree), hints)
        answered.account, answered.user = caller.account_id, caller.user_id
        answered.project, answered.position = project, index.cursor(caller.account_id)
        if index.is_undisturbed(caller.account_id):
            return found
    return None


def _has_forgotten_nothing(reader: MemoryReader, caller: "RequestContext") -> bool:
    """Whether the caller has no list of forgotten statements, which would have to be left out."""
    file = user_file(caller.account_id, caller.user_id, FORGOTTEN)
    return text_at(file, reader.backend) is None


def _checkout(folder: str, home: Path) -> "AnchorChecker | None":
    if top_of(folder) is None:
        return None
    from perdure.harness.working_tree import working_tree

    return working_tree(folder, home / "hooks" / "ancestry.json")


def _edits(reader: MemoryReader, indexed: int) -> "tuple[Hint, ...] | None":
    """Return hints that edits were not checked; None if one may have to be recorded.

    Before the first check, only the index knows how many texts there are.
    """
    from perdure.engine.edits import INLINE_TEXTS, background_hint, look_at_notes
    from perdure.storage.stamps import STAMPS_FILE, StampTable

    if not reader.config.check_seconds:  # the full recall reports that
        return None
    deadline = time.monotonic() + reader.config.check_seconds
    with suppress(StorageError), StampTable(str(reader.folder / STAMPS_FILE)) as texts:
        known = texts.size(INLINE_TEXTS + 1)
        if (known or indexed) > INLINE_TEXTS:
            return (background_hint(texts),)
        if known and isinstance(reader.layout, Layout):
            checked = look_at_notes(reader.layout, texts, deadline)
            if not (checked.found or checked.rows or checked.gone or checked.left):
                return ()
    return None


def may_fix(signature: str, cwd: str) -> bool:
    """Whether a failure with this signature may have been fixed before; as `may_remind`."""
    reader = open_reader(os.environ)
    return reader.waiting(1) != [] or _payloads(reader, cwd, [signature]) != []


def _payloads(
    reader: MemoryReader, cwd: str, names: Collection[str]
) -> "list[dict[str, JSON]] | None":
    """Return the payloads of the project of a folder that have one of these names."""
    identity = identity_at(cwd) if cwd else ""
    aliases = reader.aliases()
    project = aliases.project(identity) if identity else ""
    projects = (project, *aliases.names(project), "") if project else ("",)
    databases = reader.databases()
    if len(databases) != 1:  # a new index is being built, or there is none
        return None
    return read_payloads_naming(databases[0], projects, names, _PAYLOADS)


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
