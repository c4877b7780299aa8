"""What an agent is given at each moment of a session, and what that rests on."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.agents.hook_input import HookInput
from perdure.agents.pending import Pending, start_checking, start_draining
from perdure.agents.shown import AnsweredFrom, Shown
from perdure.dataclass import dataclass, field, replace
from perdure.engine.emissions import Emitted, key_of
from perdure.errors import StorageError

if TYPE_CHECKING:
    from perdure import Hint, Hit, Memory, RecallResult
    from perdure.engine.briefing import Briefing, Scope
    from perdure.engine.prompts import Line
    from perdure.engine.reminding import Reminder

_LONGEST_PROMPT = 2_000
_FEWEST_WORDS = 2
_MOST_LOOKED_AT = 24
_SUBAGENT = 120
_BINDING = ("rule", "rejected")
_OPENING_PROMPTS = 2
"""After so many prompts of a session, memory speaks only if it is sure to matter."""


@dataclass(frozen=True, slots=True)
class Emission:
    """What an agent is given at one moment; empty if there is nothing to give."""

    text: str = ""
    items: tuple[Emitted, ...] = ()
    reason: str = ""
    """Why it was given: one of `REASONS`, which quote nothing."""
    blocks: bool = False
    """Whether the tool call is refused, because the user enforces the rule."""


NOTHING = Emission()


@dataclass(frozen=True, slots=True)
class Moment:
    """One call of a hook: who calls, with what, and where memory is."""

    agent: str
    home: Path
    given: HookInput
    seen: AnsweredFrom = field(default_factory=AnsweredFrom, compare=False)

    @property
    def may_only_block(self) -> bool:
        """Whether the client takes a refusal now, and no text (Gemini CLI, before a tool)."""
        return self.given.event == "BeforeTool"

    @property
    def has_memory(self) -> bool:
        return (self.home / "histories").is_dir()

    @property
    def shown(self) -> Shown:
        """What the session was shown; read again each time."""
        return Shown(self.home / "hooks" / "shown", self.agent, self.given.session_id or "unnamed")

    @property
    def session(self) -> str:
        """The name under which memory keeps the session; empty if it is not known."""
        if not self.given.session_id:
            return ""
        from perdure.model.uri import stable_name

        return stable_name(self.agent, self.given.session_id)

    @contextmanager
    def memory(self) -> "Iterator[Memory]":
        """Open the memory of the folder's project for an agent: it reaches what its user owns."""
        from perdure.app import caller_for, open_memory
        from perdure.harness.projects import identity_at

        project = identity_at(self.given.cwd) if self.given.cwd else ""
        caller = caller_for(os.environ, role="member")
        with open_memory(os.environ, caller, project=project, checks_in_background=True) as memory:
            yield memory
            self.seen.account, self.seen.user = caller.account_id, caller.user_id
            self.seen.project, self.seen.position = memory.project, memory.position

    def briefing(self, **asked: Any) -> "Briefing":  # noqa: ANN401 - as `Memory.briefing` has them
        """Return the briefing for the folder; its memory is opened only if a glance can't do."""
        from perdure.agents.glance import at_a_glance
        from perdure.engine.uses import unused_in

        def ask(scope: "Scope", hints: "tuple[Hint, ...]") -> "Briefing":
            return replace(scope.briefing(**asked, leaves_out=unused_in(self.home)), hints=hints)

        found = at_a_glance(self.given.cwd, self.seen, ask)
        if found is None:
            with self.memory() as memory:
                found = memory.briefing(**asked)
        self.note_hints(found.hints)
        return found

    def note_hints(self, hints: "Iterable[Hint]") -> None:
        """Note whether the answer may not know of edits; then they are looked for from now on."""
        self.seen.behind = any(hint.kind.value == "edits unchecked" for hint in hints)
        if self.seen.behind:
            start_checking(self.home, os.environ)


# ---------------------------------------------------------------- at the start
def at_start(moment: Moment) -> Emission:
    """Return the briefing for a folder, without what its own instructions say.

    What it has is not shown again later. After compaction, it is followed by a recap.
    """
    recap = _recap(moment)
    if not moment.has_memory:
        return Emission(recap, reason="the context was compacted")
    home, shown = moment.home, moment.shown
    with suppress(StorageError, OSError):  # on a read-only disk there is nothing to go on with
        if Pending(home):  # a process before was killed over these
            start_draining(home, os.environ)
    if moment.given.source == "resume" and shown.has_briefing:  # its context has it already
        return NOTHING
    from perdure.agents.instruction_files import instruction_files
    from perdure.agents.pending import capture_warning
    from perdure.agents.statusline import note_memories

    known = instruction_files(moment.given.cwd, moment.agent)
    found = moment.briefing(known=known)
    shown.brief(text for text in (*(item.text for item in found.items), found.last) if text)
    note_memories(home, moment.given.cwd, found.memories)
    lines = (*found.items, *([found.end] if found.end else []))
    items = (Emitted(item.uri, item.message, key_of(item.text)) for item in lines)
    warning = capture_warning(home, moment.agent, moment.given.session_id)
    behind = "\n".join(f"(Memory may be behind: {hint.text})" for hint in found.hints)
    parts = (found.text, recap, warning, behind)
    text = "\n".join(part.strip("\n") for part in parts if part.strip())
    text = f"{text}\n" if text else ""
    return Emission(text, tuple(items), "the session starts")


def _recap(moment: Moment) -> str:
    """Return what the session did before its context was compacted; empty if it was not."""
    if moment.given.source != "compact" or not moment.given.transcript:
        return ""
    from perdure.agents.recap import recap

    given = moment.given
    return recap(moment.agent, Path(given.transcript), given.session_id, given.cwd)


# ---------------------------------------------------------------- at a prompt
def at_prompt(moment: Moment) -> Emission:
    if not moment.home.is_dir() or moment.given.subagent:  # no person wrote that prompt
        return NOTHING
    from perdure.model.speech import speech_of

    prompt = speech_of("user", moment.given.prompt).text  # Gemini CLI puts the briefing before it
    if not is_worth_asking(prompt):
        return NOTHING
    if not moment.has_memory:  # its first session may state what lasts
        return Emission(hint_for(prompt, moment.shown), reason="may state something lasting")
    return recalled_for(prompt, moment)


def recalled_for(prompt: str, moment: Moment) -> Emission:
    """Return what memory has to say to a prompt, in a few lines; empty if nothing.

    What the session, the prompt itself or the instructions of the folder say, and what was shown,
    is left out: the agent has it. If the user may have stated something lasting, one line asks
    about it.
    """
    from perdure.agents.glance import at_a_glance, recall_by_words
    from perdure.agents.instruction_files import instruction_files
    from perdure.engine.instructions import Instructions
    from perdure.engine.prompts import relevant_lines, with_repeated
    from perdure.model.values import words_key

    cwd, known, shown = moment.given.cwd, moment.session, moment.shown
    goes_on = shown.prompted() >= _OPENING_PROMPTS
    asked = f" {words_key(prompt)} "
    instructions = cache(lambda: Instructions(instruction_files(cwd, moment.agent)))

    def is_known(text: str) -> bool:
        return text in shown or f" {words_key(text)} " in asked or instructions().say(text)

    def answer(
        memory: "Memory | Scope", result: "RecallResult"
    ) -> "tuple[RecallResult, list[Line]]":
        news = [hit for hit in result.hits if not known or not _is_of(hit, known)]
        check = memory.checked
        lines = relevant_lines(news, result.words, is_known, goes_on=goes_on, check=check)
        return result, with_repeated(lines, memory.repeated(prompt, session=known), is_known)

    query, most = prompt[:_LONGEST_PROMPT], _MOST_LOOKED_AT
    found = at_a_glance(
        cwd,
        moment.seen,
        lambda scope, hints: answer(scope, recall_by_words(scope, query, most, hints)),
        by_words=True,
    )
    if found is None:
        with moment.memory() as memory:
            found = answer(memory, memory.recall(query, top_k=most, projects="own"))
    result, lines = found
    moment.note_hints(result.hints)
    shown.add(line.key for line in lines)
    hint = "" if result.says_forgotten else hint_for(prompt, shown)
    text = "\n".join([*(line.text for line in lines), *([hint] if hint else [])])
    items = (Emitted(line.uri, line.message, key_of(line.key)) for line in lines if line.uri)
    return Emission(text, tuple(items), "fits the prompt")


def hint_for(prompt: str, shown: Shown) -> str:
    """Return one line if a prompt may state something lasting; empty if not, or shown before."""
    from perdure.engine.learn.prose import prompt_hint
    from perdure.model.values import words_key

    hint = prompt_hint(prompt)
    return hint if hint and shown.may_hint(words_key(hint)) else ""


def _is_of(hit: "Hit", session: str) -> bool:
    """Whether a hit is of a session, or rests on nothing else."""
    return session == hit.session_id or {session} == {name for name, _ in hit.evidence}


def is_worth_asking(prompt: str) -> bool:
    """Whether a prompt is a question or a task; not a command of the agent, nor a mere yes."""
    words = prompt.split()
    return len(words) >= _FEWEST_WORDS and not words[0].startswith(("/", "!", "#"))


# ---------------------------------------------------------------- at a tool call
_AT_ACTION = "at action "
"""Begins the keys of what was shown at a tool call: a briefing does not make it known."""
_MOST_REMINDERS = 2


def before_tool(moment: Moment) -> Emission:
    """Return the rule that names what a tool call is about to use, once in a session.

    The call is refused if the user enforces the rule, and that each time.
    """
    from perdure.agents.calls import action_of
    from perdure.agents.glance import may_remind

    action = action_of(moment.given)
    if action is None:
        return NOTHING
    shown = _ShownAtAction(moment.shown, moment.given.subagent)
    if not moment.has_memory or not may_remind(action, moment.given.cwd, shown):
        return NOTHING
    from perdure.engine.reminding import reminder_of

    with moment.memory() as memory:
        found = list(memory.reminders(action, known=shown))
        repeated = memory.repeated(action, session=moment.session)
        found += (reminder_of(each) for each in repeated if each.bare not in moment.shown)
    found = [each for each in found if each.enforced or each.text not in shown]
    if moment.may_only_block:  # what else is found is given with the result
        found = [each for each in found if each.enforced]
    return _reminded(found, shown)


def _reminded(found: "list[Reminder]", shown: "_ShownAtAction") -> Emission:
    """Return the first rule, and one more if it is another and broken too."""
    from perdure.model.values import words_key

    found = [*{words_key(each.text): each for each in reversed(found)}.values()][::-1]
    refused = [each for each in found if each.enforced][:1]
    broken = [each for each in found if each.breaks]
    chosen = refused or broken[:_MOST_REMINDERS] or found[:_MOST_REMINDERS]
    if not chosen:
        return NOTHING
    shown.add(each.text for each in chosen)
    items = (Emitted(each.uri, each.message, key_of(each.text)) for each in chosen)
    text = "\n".join(each.line for each in chosen)
    reason = "forbids" if chosen[0].breaks else "is about"
    return Emission(text, tuple(items), f"{reason} what the tool call uses", bool(refused))


class _ShownAtAction:
    """What a session was shown at tool calls; a subagent has a context of its own."""

    def __init__(self, shown: Shown, subagent: str) -> None:
        self._shown = shown
        self._head = f"{_AT_ACTION}{subagent}: "

    def __contains__(self, text: object) -> bool:
        return f"{self._head}{text}" in self._shown

    def add(self, texts: Iterable[str]) -> None:
        self._shown.add(f"{self._head}{each}" for each in texts)


def after_tool(moment: Moment) -> Emission:
    """Return the command that followed the same failure before and worked, once in a session."""
    if not moment.has_memory or moment.given.tool.startswith("mcp__"):
        return NOTHING
    from perdure.agents.calls import failed_call

    failed = failed_call(moment.agent, moment.given)
    if failed is None:
        return NOTHING
    from perdure.agents.glance import may_fix
    from perdure.engine.shell_failures import fix_name, fix_text, signature

    name, shown = signature(failed.output), moment.shown
    if not name or fix_name(name) in shown or not may_fix(fix_name(name), moment.given.cwd):
        return NOTHING
    with moment.memory() as memory:
        fix = memory.fix_for(failed.command, failed.output)
    if fix is None:
        return NOTHING
    shown.add([fix_name(name)])
    item = Emitted(fix.uri, fix.message, key_of(fix_text(fix.command)))
    return Emission(fix.line, (item,), "failed the same way")


# ---------------------------------------------------------------- a subagent
def for_subagent(moment: Moment) -> Emission:
    """Return the project's rules and prohibitions, for an agent that another agent starts."""
    if not moment.has_memory:
        return NOTHING
    from perdure.agents.instruction_files import instruction_files

    known = instruction_files(moment.given.cwd, moment.agent)
    found = moment.briefing(budget_tokens=_SUBAGENT, known=known, kinds=_BINDING)
    items = (Emitted(item.uri, item.message, key_of(item.text)) for item in found.items)
    return Emission(found.text, tuple(items), "a subagent starts")


MOMENTS: dict[str, Callable[[Moment], Emission]] = {
    "session-start": at_start,
    "user-prompt-submit": at_prompt,
    "pre-tool-use": before_tool,
    "post-tool-use": after_tool,
    "subagent-start": for_subagent,
}
