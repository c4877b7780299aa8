"""The moments of a session: what an agent gets at each event of a hook, and which memories it has.

A new moment is a function here, an entry of `MOMENTS`, and an event of the clients that have it. An
agent waits, so a moment first takes the fast path: it asks the index alone, opens nothing that can
write, and loads little. Where that can't answer, the moment opens the memory.
"""

import os
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from perdure.agents.hook_input import HookInput
from perdure.agents.hook_log import AnswerSource, ShownTexts
from perdure.agents.pending_sessions import PendingSessions, start_checking, start_draining
from perdure.app.memory_reader import MemoryReader, open_reader
from perdure.context.node_files import FORGOTTEN, text_at, user_file
from perdure.dataclass import dataclass, field, replace
from perdure.engine.emissions import EmittedLine, key_of
from perdure.errors import DamageError, StorageError
from perdure.harness.project import identity_at, top_of
from perdure.index.sql import LEXICAL, read_payloads_naming
from perdure.model.project_aliases import ProjectIdentity
from perdure.sqlite import ReadOnlyDatabase
from perdure.storage.contract import Layout

if TYPE_CHECKING:
    from perdure import Hint, Hit, Memory, RecallResult
    from perdure.engine.briefing import Briefing, ProjectScope
    from perdure.engine.prompts import PromptLine
    from perdure.engine.reminders import Reminder
    from perdure.engine.tool_calls import AgentAction
    from perdure.model import RequestContext
    from perdure.model.anchors import AnchorChecker
    from perdure.model.values import JSON

_PROMPT_CHARACTERS = 2_000
_PROMPT_WORDS = 2
_HITS = 24
_SUBAGENT_TOKENS = 120
_BINDING_KINDS = ("rule", "rejected")
_OPENING_PROMPTS = 2
"""After this many prompts of a session, only lines that surely matter are shown."""
_REMINDERS = 2


@dataclass(frozen=True, slots=True)
class Emission:
    """What an agent gets at one moment; an empty text for nothing."""

    text: str = ""
    items: tuple[EmittedLine, ...] = ()
    reason: str = ""
    """Why it is shown: one of `REASONS`, which quote nothing."""
    blocks: bool = False
    """Whether the tool call is refused: the user enforces the rule."""


NOTHING = Emission()


@dataclass(frozen=True, slots=True)
class Moment:
    """One call of a hook: the agent, its input, and the home."""

    agent: str
    home: Path
    given: HookInput
    seen: AnswerSource = field(default_factory=AnswerSource, compare=False)

    @property
    def may_only_block(self) -> bool:
        """Whether the client accepts a refusal, but no text (Gemini CLI, before a tool)."""
        return self.given.event == "BeforeTool"

    @property
    def has_memory(self) -> bool:
        return (self.home / "histories").is_dir()

    def read_shown(self, prefix: str = "") -> ShownTexts:
        """Read what the session was shown."""
        session = self.given.session_id or "unnamed"
        return ShownTexts(self.home / "hooks" / "shown", self.agent, session, prefix)

    @property
    def session(self) -> str:
        """The name of the stored session; empty if the agent named none."""
        if not self.given.session_id:
            return ""
        from perdure.model.uri import stable_name

        return stable_name(self.agent, self.given.session_id)

    @contextmanager
    def memory(self) -> "Iterator[Memory]":
        """Open the memory of the folder's project, with the reach of an agent of its user."""
        from perdure.app import caller_for, open_memory

        project = identity_at(self.given.cwd) if self.given.cwd else ""
        caller = caller_for(os.environ, role="member")
        with open_memory(os.environ, caller, project=project, checks_in_background=True) as memory:
            yield memory
            self.seen.account, self.seen.user = caller.account_id, caller.user_id
            self.seen.project, self.seen.position = memory.project, memory.position

    def briefing(self, **options: Any) -> "Briefing":  # noqa: ANN401 - as `Memory.briefing` has them
        """Return the briefing for the folder, from the index alone if possible."""
        from perdure.engine.uses import unused_in

        def ask(scope: "ProjectScope", hints: "tuple[Hint, ...]") -> "Briefing":
            return replace(scope.briefing(**options, leaves_out=unused_in(self.home)), hints=hints)

        found = answer_from_index(self.given.cwd, self.seen, ask)
        if found is None:
            with self.memory() as memory:
                found = memory.briefing(**options)
        self.note_hints(found.hints)
        return found

    def note_hints(self, hints: "Iterable[Hint]") -> None:
        """Record whether edits were not checked, and start the process that checks them."""
        self.seen.behind = any(hint.kind.value == "edits unchecked" for hint in hints)
        if self.seen.behind:
            start_checking(self.home, os.environ)


# ---------------------------------------------------------------- at the start
def at_start(moment: Moment) -> Emission:
    """Return the briefing for a folder, without what its instruction files contain.

    Its lines are not shown again later. After compaction, a recap follows.
    """
    recap = _recap(moment)
    if not moment.has_memory:
        return Emission(recap, reason="the context was compacted")
    home, shown = moment.home, moment.read_shown()
    with suppress(StorageError, OSError):  # on a read-only disk nothing can be captured
        if PendingSessions(home):  # an earlier process was killed
            start_draining(home, os.environ)
    if moment.given.source == "resume" and shown.has_briefing:  # its context still has it
        return NOTHING
    from perdure.agents.instruction_files import instruction_files
    from perdure.agents.pending_sessions import capture_warning
    from perdure.agents.status_line import note_memories

    known = instruction_files(moment.given.cwd, moment.agent)
    found = moment.briefing(known=known)
    shown.brief(text for text in (*(item.text for item in found.items), found.last) if text)
    note_memories(home, moment.given.cwd, found.memories)
    lines = (*found.items, *([found.end] if found.end else []))
    items = (EmittedLine(item.uri, item.message, key_of(item.text)) for item in lines)
    warning = capture_warning(home, moment.agent, moment.given.session_id)
    behind = "\n".join(f"(Memory may be behind: {hint.text})" for hint in found.hints)
    texts = (found.text, recap, warning, behind)
    text = "\n".join(each.strip("\n") for each in texts if each.strip())
    text = f"{text}\n" if text else ""
    return Emission(text, tuple(items), "the session starts")


def _recap(moment: Moment) -> str:
    """Return what the session did before its context was compacted; empty at any other start."""
    if moment.given.source != "compact" or not moment.given.transcript:
        return ""
    from perdure.agents.recap import recap

    given = moment.given
    return recap(moment.agent, Path(given.transcript), given.session_id, given.cwd)


# ---------------------------------------------------------------- at a prompt
def at_prompt(moment: Moment) -> Emission:
    if not moment.home.is_dir() or moment.given.subagent:  # a subagent's prompt is not the user's
        return NOTHING
    from perdure.model.speech import speech_of

    prompt = speech_of("user", moment.given.prompt).text  # Gemini CLI puts the briefing in front
    if not is_worth_asking(prompt):
        return NOTHING
    if not moment.has_memory:  # the first session may state something lasting
        return Emission(hint_for(prompt, moment.read_shown()), reason="may state something lasting")
    return recall_for(prompt, moment)


def recall_for(prompt: str, moment: Moment) -> Emission:
    """Return a few lines that are relevant to a prompt; an empty text for none.

    Lines that the session, the prompt or the folder's instruction files contain are left out, and
    those that were shown before: the agent has them. If the user may have stated something lasting,
    one line asks about it.
    """
    from perdure.agents.instruction_files import instruction_files
    from perdure.engine.instruction_lines import Instructions
    from perdure.engine.prompts import relevant_lines, with_repeated
    from perdure.model.values import comparison_key

    cwd, known, shown = moment.given.cwd, moment.session, moment.read_shown()
    goes_on = shown.prompted() >= _OPENING_PROMPTS
    own_words = f" {comparison_key(prompt)} "
    instructions = cache(lambda: Instructions(instruction_files(cwd, moment.agent)))

    def is_known(text: str) -> bool:
        return (
            text in shown or f" {comparison_key(text)} " in own_words or instructions().cover(text)
        )

    def answer(
        memory: "Memory | ProjectScope", result: "RecallResult"
    ) -> "tuple[RecallResult, list[PromptLine]]":
        news = [hit for hit in result.hits if not known or not _is_of(hit, known)]
        check = memory.checked
        lines = relevant_lines(news, result.words, is_known, goes_on=goes_on, check=check)
        return result, with_repeated(lines, memory.repeated(prompt, session=known), is_known)

    query = prompt[:_PROMPT_CHARACTERS]
    found = answer_from_index(
        cwd,
        moment.seen,
        lambda scope, hints: answer(scope, recall_by_words(scope, query, _HITS, hints)),
        by_words=True,
    )
    if found is None:
        with moment.memory() as memory:
            found = answer(memory, memory.recall(query, top_k=_HITS, projects="own"))
    result, lines = found
    moment.note_hints(result.hints)
    shown.add(line.key for line in lines)
    hint = "" if result.says_forgotten else hint_for(prompt, shown)
    text = "\n".join([*(line.text for line in lines), *([hint] if hint else [])])
    items = (EmittedLine(line.uri, line.message, key_of(line.key)) for line in lines if line.uri)
    return Emission(text, tuple(items), "fits the prompt")


def hint_for(prompt: str, shown: ShownTexts) -> str:
    """Return one line if a prompt may state something lasting and no hint was shown lately."""
    from perdure.engine.learn.prose import prompt_hint
    from perdure.model.values import comparison_key

    hint = prompt_hint(prompt)
    return hint if hint and shown.may_hint(comparison_key(hint)) else ""


def _is_of(hit: "Hit", session: str) -> bool:
    """Whether a hit is of a session, or has evidence in that session only."""
    return session == hit.session_id or {session} == {name for name, _ in hit.evidence}


def is_worth_asking(prompt: str) -> bool:
    """Whether a prompt may be a question or a task: not a slash command, nor a single word."""
    words = prompt.split()
    return len(words) >= _PROMPT_WORDS and not words[0].startswith(("/", "!", "#"))


# ---------------------------------------------------------------- at a tool call
def before_tool(moment: Moment) -> Emission:
    """Return the rule that is about what a tool call uses, once per session.

    If the user enforces the rule, the call is refused, every time.
    """
    from perdure.agents.hook_input import action_of

    action = action_of(moment.given)
    if action is None:
        return NOTHING
    # A briefing does not count at tool calls, and a subagent has a context of its own.
    shown = moment.read_shown(f"at action {moment.given.subagent}: ")
    if not moment.has_memory or not may_remind(action, moment.given.cwd, shown):
        return NOTHING
    from perdure.engine.reminders import reminder_of

    with moment.memory() as memory:
        found = list(memory.reminders(action, known=shown))
        repeated = memory.repeated(action, session=moment.session)
        found += (reminder_of(each) for each in repeated if each.bare not in moment.read_shown())
    found = [each for each in found if each.enforced or each.text not in shown]
    if moment.may_only_block:  # the others are shown with the result
        found = [each for each in found if each.enforced]
    return _reminded(found, shown)


def _reminded(found: "list[Reminder]", shown: ShownTexts) -> Emission:
    """Return the enforced rule, else up to two broken ones, else up to two others."""
    from perdure.model.values import comparison_key

    found = [*{comparison_key(each.text): each for each in reversed(found)}.values()][::-1]
    refused = [each for each in found if each.enforced][:1]
    broken = [each for each in found if each.breaks]
    chosen = refused or broken[:_REMINDERS] or found[:_REMINDERS]
    if not chosen:
        return NOTHING
    shown.add(each.text for each in chosen)
    items = (EmittedLine(each.uri, each.message, key_of(each.text)) for each in chosen)
    text = "\n".join(each.line for each in chosen)
    reason = "forbids" if chosen[0].breaks else "is about"
    return Emission(text, tuple(items), f"{reason} what the tool call uses", bool(refused))


def after_tool(moment: Moment) -> Emission:
    """Return the command that fixed the same failure before, once per session."""
    if not moment.has_memory or moment.given.tool.startswith("mcp__"):
        return NOTHING
    from perdure.agents.hook_input import failed_call

    failed = failed_call(moment.agent, moment.given)
    if failed is None:
        return NOTHING
    from perdure.engine.tool_calls import fix_name, fix_text, signature

    name, shown = signature(failed.output), moment.read_shown()
    if not name or fix_name(name) in shown or not may_fix(fix_name(name), moment.given.cwd):
        return NOTHING
    with moment.memory() as memory:
        fix = memory.fix_for(failed.command, failed.output)
    if fix is None:
        return NOTHING
    shown.add([fix_name(name)])
    item = EmittedLine(fix.uri, fix.message, key_of(fix_text(fix.command)))
    return Emission(fix.line, (item,), "failed the same way")


# ---------------------------------------------------------------- a subagent
def for_subagent(moment: Moment) -> Emission:
    """Return the project's rules and prohibitions, for a subagent."""
    if not moment.has_memory:
        return NOTHING
    from perdure.agents.instruction_files import instruction_files

    known = instruction_files(moment.given.cwd, moment.agent)
    found = moment.briefing(budget_tokens=_SUBAGENT_TOKENS, known=known, kinds=_BINDING_KINDS)
    items = (EmittedLine(item.uri, item.message, key_of(item.text)) for item in found.items)
    return Emission(found.text, tuple(items), "a subagent starts")


MOMENTS: dict[str, Callable[[Moment], Emission]] = {
    "session-start": at_start,
    "user-prompt-submit": at_prompt,
    "pre-tool-use": before_tool,
    "post-tool-use": after_tool,
    "subagent-start": for_subagent,
}


# ---------------------------------------------------------------- the fast path
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
