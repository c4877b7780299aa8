"""The façade: every verb that a door offers is a method of `Memory`."""

import threading
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from perdure import engine
from perdure.artifacts import CID, IndexState
from perdure.context.aliases import read_aliases, user_file
from perdure.context.files import CONTENT, FORGOTTEN, found_at
from perdure.dataclass import replace
from perdure.errors import (
    AccessDeniedError,
    ClosedError,
    ConfigError,
    DamageError,
    EmbeddingError,
    ForgottenError,
    InvalidUriError,
    InvalidValueError,
    LockTimeout,
    NodeNotFoundError,
    StorageError,
)
from perdure.files import locked
from perdure.model import ContextNode, RequestContext, Role, Uri
from perdure.model.aliases import Aliases, Identity
from perdure.model.uri import MESSAGE, OF_THE_PERSON, slug_of
from perdure.model.values import JSON, encodable
from perdure.storage.contract import Layout
from perdure.storage.history import RESTORE, BlamedLine, Version
from perdure.times import first, parsed

if TYPE_CHECKING:
    from perdure.context.draft import Draft
    from perdure.context.reading import NodeReader
    from perdure.engine.actions import Action
    from perdure.engine.answering import Lag
    from perdure.engine.briefing import Briefing, BriefingItem, Scope
    from perdure.engine.browse import Browser, Edges, Entry
    from perdure.engine.conflict_copies import Conflict
    from perdure.engine.erasure_plan import ForgetReport
    from perdure.engine.forgotten import ForgottenList
    from perdure.engine.index_upkeep import IndexUpkeep, OutboxUpkeep
    from perdure.engine.instructions import InstructionFile
    from perdure.engine.learn.candidates import Judged, Shown
    from perdure.engine.learn.remember import Cited, NewStatement, Remembered
    from perdure.engine.learn.review import Pending, Review
    from perdure.engine.lint import LintReport
    from perdure.engine.namespaces import Tenants
    from perdure.engine.parts import Parts
    from perdure.engine.past import Past, Pasts, When
    from perdure.engine.project_registry import Projects
    from perdure.engine.provenance import Provenance
    from perdure.engine.recall.recalling import Question
    from perdure.engine.recall.result import RecallResult
    from perdure.engine.receipt import ReceiptCheck
    from perdure.engine.recomposition import ShownEmission
    from perdure.engine.reminding import Enforced, Fix, Reminder
    from perdure.engine.repair import RepairReport
    from perdure.engine.restore import Restorer, RewindReport, UnmergeReport
    from perdure.engine.saving.saving import SessionCommit, Wishes
    from perdure.engine.sessions import SessionEnd, SessionInfo
    from perdure.engine.upkeep import Checkup, StatusPart
    from perdure.engine.versions import VersionLog
    from perdure.engine.watch import WatchReport
    from perdure.engine.worker import Worked, WorkReport
    from perdure.engine.write import Saved, Written
    from perdure.index.contract import KeptIndex
    from perdure.llm.ledger import Cost
    from perdure.model import RelationEdge
    from perdure.model.anchors import Anchors, Checkout, Origin, Verdict
    from perdure.storage import Locator
    from perdure.storage.sweep import Edits
    from perdure.transfer.export import ExportReport
    from perdure.transfer.imports import ImportReport


Searched = Literal["own", "all"]


class Readable:
    """The verbs that only read, of the present or of a state in the past.

    A node or folder is named by its URI or by its short name (`preference/indentation`).
    """

    project: str
    _identity: Identity

    def __init__(self, caller: RequestContext) -> None:
        self.caller = caller

    @property
    def _browser(self) -> "Browser":
        raise NotImplementedError

    def _notice_files(self) -> None:
        """Take in which notes are new, renamed or gone."""

    def uri(self, name: str) -> str:
        """Return the URI that a short name stands for."""
        return str(self._browser.place(name))

    def name(self, uri: str) -> str:
        """Return the shortest name that this caller can use for a URI."""
        return self._browser.name(self._browser.place(uri))

    def key(self, uri: str) -> str:
        """Return the key under which history has the content of a node."""
        return self._browser.key(self._browser.place(uri))

    def read(self, uri: str) -> ContextNode:
        """Return an active node; `NodeNotFoundError` if there is none."""
        place = self._browser.node_place(uri)
        try:
            return self._browser.node(place)
        except NodeNotFoundError:
            self._notice_files()
            return self._browser.node(place)

    def version(self, uri: str) -> int:
        """Return the version of a node; 0 if there is none."""
        node = self._browser.node_or_none(self._browser.node_place(uri))
        return 0 if node is None else node.version

    def list(
        self,
        folder: str = "",
        *,
        archived: bool = False,
        project: str | None = None,
        projects: Searched = "all",
    ) -> "tuple[Entry, ...]":
        """Return what is in a folder; without one, in the caller's memories.

        With `archived`, the archived nodes below it instead; with `project`, only nodes of that
        project, "" for none, those in folders below too. With `projects="own"`, without what
        belongs to other projects than the memory's.
        """
        self._notice_files()
        found = self._browser.entries(folder, archived=archived)[1]
        if projects == "own":
            own = (*self._names(self.project), "")
            found = tuple(filter(None, (each.within(own) for each in found)))
        if project is None:
            return found
        names = self._names(self._named(project))
        return tuple(node for each in found for node in each.of_projects(names))

    @property
    def _reader(self) -> "NodeReader":
        return self._browser.reader

    @property
    def _aliases(self) -> Aliases:
        reader, who = self._reader, (self.caller.account_id, self.caller.user_id)
        return read_aliases(reader.backend, *who)

    def _named(self, project: str) -> str:
        slug = slug_of(encodable(project, "project"))
        return self._aliases.project(slug) if slug else ""

    def _names(self, project: str, aliases: Aliases | None = None) -> tuple[str, ...]:
        """Return all names that what belongs to a project may have: stale writers use old ones."""
        return (project, *(aliases or self._aliases).names(project)) if project else ("",)

    def _question(  # noqa: PLR0913, PLR0917 - as `recall`
        self,
        text: str,
        limits: tuple[int, int | None],
        valid_at: datetime | date | str | None,
        filters: Mapping[str, JSON] | None,
        project: str | None,
        projects: Searched | None,
    ) -> "Question":
        if projects not in {None, "own", "all"}:
            raise InvalidValueError(
                f'projects is {str(projects)[:80]!a}. Fix: use "own", "all" or None.'
            )
        from perdure.engine.recall.recalling import Question

        named = slug_of(encodable(project, "project")) if project else ""
        identity = self._identity if project is None else Identity(named)
        aliases = self._aliases if identity.slug else Aliases()
        project = aliases.project(identity)
        is_all = projects == "all" or (projects is None and not project)
        return Question(
            text=text,
            top_k=limits[0],
            budget_tokens=limits[1],
            valid_at=None if valid_at is None else parsed(valid_at),
            filters=filters,
            project=project,
            projects=None if is_all else (*dict.fromkeys((*self._names(project, aliases), "")),),
        )

    def tree(self, folder: str = "", *, project: str | None = None) -> "Entry":
        """Return a folder with all that is below it, or of a project; `/` is the whole account."""
        self._notice_files()
        place, below = self._browser.entries(folder)
        if project is not None:
            names = self._names(self._named(project))
            below = tuple(filter(None, (each.within(names) for each in below)))
        return engine.browse.Entry(str(place), self._browser.name(place), None, "", below)

    def has_resources(self) -> bool:
        """Whether there are resources that the caller may see, such as notes of a vault."""
        folder = Uri(self.caller.account_id, ("resources",))
        return bool(self._browser.reader.list_children(str(folder), self.caller))

    def sessions(self) -> "tuple[SessionInfo, ...]":
        return tuple(engine.sessions.list_sessions(self._browser.reader, self.caller))

    def relations(self, uri: str) -> "Edges":
        """Return the relations that start and end at a node; links in texts are among them."""
        place = self._browser.node_place(uri)
        Readable.read(self, uri)
        return self._browser.edges(place)


class Memory(Readable):
    """A memory opened for one caller. Reads its own writes.

    It may be used from several threads at once. Use it in a `with`, or close it. Other callers'
    memories on the same store, from `for_caller`, stay open.
    """

    def __init__(
        self, parts: "Parts", caller: RequestContext, project: Identity | str = ""
    ) -> None:
        super().__init__(caller)
        self._identity = Identity(project) if isinstance(project, str) else project
        self._open_parts: Parts | None = parts
        self._edits: list[Edits] = []
        self._behind = ""
        parts.retain()

    @property
    def _parts(self) -> "Parts":
        if self._open_parts is None:
            raise ClosedError("this memory was closed. Fix: open it again.")
        return self._open_parts

    @property
    def _browser(self) -> "Browser":
        return engine.browse.Browser(self._parts.reader, self._parts.relation_reader, self.caller)

    @property
    def _reader(self) -> "NodeReader":
        return self._parts.reader

    @property
    def project(self) -> str:  # type: ignore[override] # it is never set from outside
        """The project whose memories come first; empty for none."""
        return self._aliases.project(self._identity) if self._identity.slug else ""

    @property
    def projects(self) -> "Projects":
        """The caller's projects: which there are, and naming, merging, splitting, moving them."""
        from perdure.harness.projects import identity_at

        parts = self._parts
        return engine.project_registry.Projects(
            parts.reader, lambda: parts.nodes, self.caller, identity_at, self.settle
        )

    def for_caller(
        self,
        caller: RequestContext | None = None,
        *,
        user: str | None = None,
        agent: str | None = None,
        project: str | None = None,
    ) -> "Memory":
        """Return a memory on the same store for another caller; each is closed by itself.

        With `user`, it is a member of this account, who reaches only what is theirs or shared. Only
        a caller who governs an account acts for others in it; only ROOT, in another account.
        """
        if caller is None:
            caller = self.caller
            if user is not None:
                caller = replace(caller, user_id=user, role=Role.MEMBER)
            if agent is not None:
                caller = replace(caller, agent_id=agent)
        self._demand_standing(caller)
        return Memory(self._parts, caller, self._identity if project is None else project)

    def _demand_standing(self, caller: RequestContext) -> None:
        own = replace(caller, session_id=self.caller.session_id, trace_id=self.caller.trace_id)
        is_below = self.caller.governs and caller.account_id == self.caller.account_id
        if (
            self.caller.role is not Role.ROOT
            and own != self.caller
            and not (is_below and caller.role is not Role.ROOT)
        ):
            raise AccessDeniedError(
                f"{self.caller.user_id[:80]!a} of account {self.caller.account_id[:80]!a} may not "
                f"act for {caller.user_id[:80]!a} of {caller.account_id[:80]!a}. "
                "Fix: open the memory for that caller."
            )

    def close(self) -> None:
        """Release the store; the last memory on it closes it. Closing twice is closing once."""
        parts, self._open_parts = self._open_parts, None
        if parts is not None:
            parts.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def warnings(self) -> str:
        """Return, once, what was quarantined or could not be finished; empty if nothing was."""
        behind, self._behind = self._behind, ""
        return "; ".join(filter(None, (self._parts.warnings(), behind)))

    def _notice_files(self) -> None:
        if not isinstance(self._parts.recorded.inner, Layout):
            return  # then a node is where its files are
        noticed = engine.edits.notice_edits(self._parts, seconds=self._parts.check_seconds)
        self._behind = "; ".join(hint.text for hint in noticed.hints)

    def edits(self) -> "tuple[Edits, ...]":
        """Return, once, the edits made outside Perdure that this memory's verbs recorded."""
        edits, self._edits = self._edits, []
        return tuple(edits)

    def record_edits(self, *, accept_removals: bool = False) -> "Edits":
        """Record every edit made outside Perdure as a version; return what was found.

        `TextsGoneError` if more than a tenth of the texts are gone, unless that is accepted.
        """
        from perdure.storage.sweep import record_edits

        found = record_edits(self._parts.recorded, accept_removals=accept_removals)
        if accept_removals:
            engine.edits.forget_gone(self._parts)
        if found.recorded or found.lost:
            self._edits.append(found)
        return found

    # ------------------------------------------------------------ recall
    def recall(  # noqa: PLR0913 - the public verb, with a name for each
        self,
        query: str,
        *,
        top_k: int = 10,
        budget_tokens: int | None = None,
        at: "When | None" = None,
        valid_at: datetime | date | str | None = None,
        filters: Mapping[str, JSON] | None = None,
        project: str | None = None,
        projects: Searched | None = None,
    ) -> "RecallResult":
        """Return what memory has to say to a question, now or as of a state.

        `at` asks what was known then; `valid_at`, what held then. In a project, its memories come
        first, then those of no project; those of other projects are found with `projects="all"`,
        each with its `project`. Without a project, all are searched, unless `projects="own"`. With
        a budget, `context` is Markdown for a prompt: the caller's profile, then what is of the
        project, then the rest.
        """
        limits = top_k, budget_tokens
        question = self._question(query, limits, valid_at, filters, project, projects)
        if at is not None:
            return self._kept_back(self._past(at).recall(question, self.caller), is_past=True)
        return self._kept_back(
            engine.answering.Answering(self._parts).recall(question, self.caller)
        )

    def _kept_back(self, result: "RecallResult", *, is_past: bool = False) -> "RecallResult":
        if not self._forgot_something:
            return result
        return (engine.forgotten.masked_past if is_past else engine.forgotten.kept_back)(
            result, self._forgotten
        )

    @property
    def _forgot_something(self) -> bool:
        """Whether the user ever forgot something; else nothing is read of a list."""
        reader, caller = self._parts.reader, self.caller
        file = user_file(caller.account_id, caller.user_id, FORGOTTEN)
        return found_at(file, reader.backend) is not None

    @property
    def _forgotten(self) -> "ForgottenList":
        return engine.forgotten.of_caller(self._parts.reader, self.caller)

    def read(self, uri: str) -> ContextNode:
        """Return an active node; `NodeNotFoundError` if there is none.

        A short id of a briefing may name a message; then the content is that one, with those
        around it.
        """
        node, message = self._at(uri)
        return (
            node
            if message is None
            else replace(node, content=engine.briefing.around(node, message))
        )

    def _at(self, uri: str) -> tuple[ContextNode, int | None]:
        uri, _, message = self.uri(uri).partition("#")
        return super().read(uri), int(message) if message else None

    def uri(self, name: str) -> str:
        """Return the URI that a short name or an id stands for; of a message, `URI#index`."""
        if not name.startswith("~"):
            return name if MESSAGE.fullmatch(name) else super().uri(name)
        index = self._parts.present(self.caller.account_id).following.index
        found = engine.briefing.named(name, index, self.caller)
        if len(found) == 1:
            return found.pop()
        ids = f"name one: {', '.join(sorted(found))}" if found else "take one of `perdure briefing`"
        what = f"{name[:80]!a} names {'several things' if found else 'nothing'}"
        raise NodeNotFoundError(f"{what}. Fix: {ids}, or use recall.")

    def briefing(
        self,
        *,
        budget_tokens: int = 294,
        known: "str | Sequence[InstructionFile]" = "",
        kinds: Collection[str] = (),
        at: "When | None" = None,
        seconds: float = 0.02,
    ) -> "Briefing":
        """Return what an agent should know when a session starts, rules first; or as of a state.

        Only what belongs to the project or the person. What `known` says already, such as the
        text of the project's CLAUDE.md, is left out; of instruction files, a line that was
        contradicted since is named. So is what was shown in many sessions and used in none,
        unless it is pinned or recent: a recall finds it. In a checkout, so is what holds on
        another branch, and what names only what is gone; a line says what changed since. What is
        not checked within `seconds` is shown as it is. `kinds` limits it to some kinds, as `rule`
        and `rejected`.
        """
        if at is not None:
            return self.at(at).briefing(budget_tokens=budget_tokens, known=known)
        from perdure.engine.uses import unused_in

        noticed = engine.edits.notice_edits(self._parts, seconds=self._parts.check_seconds)
        if noticed.recorded:
            self.settle()
        found = self._scope.briefing(
            known=known,
            budget_tokens=budget_tokens,
            kinds=kinds,
            seconds=seconds,
            leaves_out=unused_in(self.home),
        )
        return replace(found, hints=noticed.hints)

    def checked(
        self, lines: "Iterable[tuple[str, int | None, str]]", *, seconds: float = 0.02
    ) -> "tuple[Verdict, ...]":
        """Return whether statements hold in the folder that the memory was opened in.

        A line is the URI of a memory, or of a session with the index of a message, and the text of
        the statement. What is not reached in that time, and all without a checkout, is unknown.
        """
        return self._scope.checked(lines, seconds=seconds)

    @property
    def _scope(self) -> "Scope":
        index = self._parts.present(self.caller.account_id).following.index
        names = self._names(self.project)
        return engine.briefing.Scope(self._parts.reader, index, self.caller, names, self._checkout)

    @property
    def _checkout(self) -> "Checkout | None":
        return self._checkout_at(self._identity.folder)

    def _checkout_at(self, folder: str) -> "Checkout | None":
        from perdure.harness.projects import top_of

        if top_of(folder) is None:
            return None
        from perdure.harness.checkout import working_tree

        return working_tree(folder, self.home / "hooks" / "ancestry.json")

    def shown(
        self,
        *,
        session: str = "",
        since: datetime | date | str | None = None,
        project: str | None = None,
        last: bool = False,
    ) -> "tuple[ShownEmission, ...]":
        """Return what agents were shown, oldest first, in the words that they got.

        The words are read as of then. What was forgotten or erased since has none, and says so.
        `session` is the agent's id of one or the name under which it is kept; `last` is the newest
        emission only. A caller who does not govern the account sees those of their own.
        """
        chosen = engine.recomposition.selected(
            self.home,
            self.caller,
            session=session,
            since=None if since is None else first(since),
            projects=None if project is None else self._names(self._named(project)),
        )
        found = engine.recomposition.Recomposition(
            self._parts.recorded.history, self.caller, self._forgotten
        )
        return tuple(map(found.of, chosen[-1:] if last else chosen))

    @property
    def position(self) -> int:
        """The position of the log that a recall or a briefing answers from; 0 without an index."""
        account = self.caller.account_id
        return self._parts.present(account).following.index.cursor(account)

    def reminders(self, action: "Action", *, known: Container[str] = ()) -> "tuple[Reminder, ...]":
        """Return the sentences of the project about what a tool call is about to use, best first.

        Those are rules, prohibitions, rejected approaches and known-good commands that name a
        file, a program or a package of it. A call that follows one is not reminded of it, nor of
        what ended, is doubted or was forgotten. What is `known`, by its text, is left out unless
        the user enforces it. So is what does not hold in the checkout any more.
        """
        found = engine.reminding.reminders(self._scope, action, known=known)
        if not found:
            return ()
        verdicts = self.checked((each.uri, each.message, each.text) for each in found)
        return tuple(
            replace(each, note=verdict.note)
            for each, verdict in zip(found, verdicts, strict=True)
            if each.enforced or not verdict.held_back
        )

    def repeated(
        self, occasion: "Action | str", *, session: str = ""
    ) -> "tuple[BriefingItem, ...]":
        """Return the sentences of the project that a prompt or a tool call is an occasion for.

        Those say themselves when they hold, or use the words of the call; the newest come first.
        What was stated in the `session` itself, or does not hold any more, is left out.
        """
        return self._scope.repeated(occasion, session=session)

    def fix_for(self, command: str, output: str) -> "Fix | None":
        """Return the command that worked after a command failed in the same way in this project.

        Failures are the same if their outputs are, but for numbers, paths and times. Whether a
        command failed or worked is told by exit status. What holds a secret or destroys something
        is never returned.
        """
        return engine.reminding.fix_for(self._scope, command, output)

    def enforce(self, uri: str, *, text: str = "", enforced: bool = True) -> "Enforced":
        """Let hooks refuse tool calls that break the statements of a memory; or no longer.

        With `text`, only that statement of it. A statement that names nothing that is not to be
        used can't be broken by a call: `can_block` says whether one does.
        """
        text = encodable(text, "text")
        node, message = self._at(uri)
        if message is not None:
            raise InvalidValueError(
                f"{uri[:80]!a} is a message. "
                "Fix: keep it as a rule, with `perdure remember --kind rule --enforce TEXT`."
            )
        done = engine.reminding.enforce(node, text, enforced=enforced)
        self.write(node.uri, metadata=done.metadata, version=node.version, reason="enforced")
        self.settle()
        return done

    def at(self, when: "When") -> "PastMemory":
        """Return a read-only memory as of a date, a time or a position of the log."""
        forgotten = self._forgotten if self._forgot_something else None
        return PastMemory(self._past(when), self.caller, str(when), self._identity, forgotten)

    def _past(self, when: "When") -> "Past":
        return self._pasts.at(self._state(when))

    def _state(self, when: "When") -> IndexState:
        """Return the state that `when` means, with the edits of files that belong to it recorded.

        An edit is recorded with the present time, so only the newest state can gain one.
        """
        state = self._pasts.state(when)
        if state.position >= self._parts.recorded.history.position():
            self.record_edits()
            state = self._pasts.state(when)
        return state

    @property
    def _pasts(self) -> "Pasts":
        return self._parts.pasts(self.caller.account_id)

    # ------------------------------------------------------------ save and learn
    def save(  # noqa: PLR0913 - the public verb, with a name for each
        self,
        content: str,
        *,
        category: str,
        slug: str = "",
        metadata: Mapping[str, JSON] | None = None,
        project: str | None = None,
        mask_secrets: bool = False,
        replace_learned: bool = False,
    ) -> "Saved":
        """Save a text as a memory of the caller, or as its next version; return its URI.

        It belongs to `project`, by default to the memory's own, but for profile and preferences,
        which belong to the person; so does everything with `project=""`.

        The same text twice is the same version. HTML and instructions in it are made harmless. A
        secret in it is refused (`SecretRefusedError`), unless it may be masked. A node that was
        learned from sessions is not replaced (`NodeExistsError`), unless `replace_learned`.
        """
        saved = engine.write.save(
            self._parts.nodes,
            self.caller,
            content,
            category=category,
            slug=slug,
            metadata=metadata or {},
            project="" if project is None and category in OF_THE_PERSON else self._of(project),
            mask=mask_secrets,
            replace_learned=replace_learned,
        )
        saved.lifted = self._lift(content)
        self.settle()
        return saved

    def _lift(self, text: str) -> int:
        """Take off the list of what was forgotten what the user says again; return how much."""
        if not self._forgot_something or not self._forgotten.says(text):
            return 0
        count = 0

        def plan(draft: "Draft") -> None:
            nonlocal count
            account, user = self.caller.account_id, self.caller.user_id
            before, after = engine.forgotten.changed(
                draft, account, user, lambda known: known.lifted(text)
            )
            count = len(before.entries) - len(after.entries)

        self._parts.nodes.because("remembered again").exchange((), (), self.caller, also=plan)
        return count

    def _of(self, project: str | None) -> str:
        """Return the project of what is written: the one that is named, or the memory's own."""
        if project is not None:
            return self._named(project)
        if self._identity.is_on_disk:
            self.projects.note(self._identity)
        return self.project

    def commit_session(  # noqa: PLR0913 - as `save`
        self,
        messages: Iterable[object],
        *,
        session_id: str,
        title: str = "",
        project: str | None = None,
        extract: bool = True,
        min_confidence: float | None = None,
        dry_run: bool = False,
        again: bool = False,
        progress: Callable[[int, int], None] | None = None,
        foreign: Mapping[str, str] | None = None,
        origin: "Origin | None" = None,
    ) -> "SessionCommit":
        """Keep the messages of a session, and what can be learned from them.

        Messages are as SDKs have them: dicts or objects of OpenAI and Anthropic, or any mapping
        with role and content. What can't be kept of them is in `left_out`; secrets are masked.
        The same twice changes nothing; so does what was begun before and stopped anywhere. With
        more messages, it goes on with those. A last answer that differs is replaced, and history
        keeps the old one; any other difference is `NodeExistsError`. `extract=False` keeps and
        indexes the messages only; a dry run writes nothing, and returns what would be done. `again`
        learns from all messages once more: what could not be kept before, or was not found.
        What is private (`<private>`, `/private on`) is left out. `foreign` has sentences of the
        user whose words stem from others, by the ids that `candidates` gives them, and where from;
        nothing is learned from these.
        `origin` is where the session worked: what its statements name is looked up there.
        """
        from perdure.engine.saving.saving import LEAST_CONFIDENCE, Wishes

        wishes = Wishes(
            LEAST_CONFIDENCE if min_confidence is None else min_confidence,
            extract=extract,
            dry_run=dry_run,
            again=again,
            addition=engine.sessions.Addition(title=title, project=self._of(project)),
            progress=progress or (lambda _done, _all: None),
            foreign=foreign or {},
            anchored=self._anchored(origin),
        )
        return self._save_session(messages, session_id, wishes)

    def _anchored(
        self, origin: "Origin | None"
    ) -> "Callable[[str, datetime | None], Anchors | None]":
        """Return what finds out what statements name; without an origin, of no branch."""
        from perdure.model.anchors import Origin

        known = origin or Origin(self._identity.folder)
        checkout = cache(lambda: self._checkout_at(known.folder))

        def anchored(text: str, when: datetime | None) -> "Anchors | None":
            found = checkout()
            return None if found is None else found.anchored(text, when, known)

        return anchored

    def append(  # noqa: PLR0913 - as `save`
        self,
        session_id: str,
        messages: Iterable[object],
        *,
        title: str = "",
        project: str | None = None,
        extract: bool = True,
        replace_last: bool | None = None,
        after: "SessionEnd | None" = None,
        origin: "Origin | None" = None,
    ) -> "SessionCommit":
        """Add messages to a session, which is made if it is not there; learn from the new ones.

        Given messages that the session ends with are not added again, so the same call twice is
        one. An answer that comes right after an answer replaces it; `replace_last=False` adds it
        in any case. `replace_last=True` replaces the whole last answer, tool calls too, or the
        last question with its answer if the messages begin with a user's. History keeps what is
        replaced. With `after` they are added right behind that end, without reading the rest of
        the session; if it ends elsewhere: `VersionMismatchError`. `origin` is as for
        `commit_session`.
        """
        from perdure.engine.saving.saving import Wishes

        addition = engine.sessions.Addition(
            whole=False,
            replace_last=replace_last,
            title=title,
            project=self._of(project),
            after=after,
        )
        wishes = Wishes(extract=extract, addition=addition, anchored=self._anchored(origin))
        return self._save_session(messages, session_id, wishes)

    def _save_session(
        self, messages: Iterable[object], session_id: str, wishes: "Wishes"
    ) -> "SessionCommit":
        from perdure.engine.saving.saving import saving_for

        saving = saving_for(self._parts, wishes)
        return saving.commit(messages, session_id, self.caller, settle=self.settle)

    # ------------------------------------------------------------ statements
    def remember(  # noqa: PLR0913 - the public verb, with a name for each
        self,
        text: str,
        *,
        kind: str = "fact",
        project: str | None = None,
        replaces: Iterable[str] = (),
        evidence: "Iterable[Cited]" = (),
        said_by: str = "user",
        session_id: str = "",
    ) -> "Remembered":
        """Keep one statement, and return what it merged with or replaced.

        `kind` is rule, decision, rejected, preference, fact, command, task, or person for what is
        about the user. It belongs to `project`, by default to the memory's own; preferences and
        what is about the person belong to the user. A statement that says the same is one with
        it. What it `replaces`, by URI or words, or contradicts, ends; where that is not certain,
        both are kept, and the older says since when it may be outdated. In a checkout, what it
        names there is kept with it, so that a later change is noticed. What the user forgot
        before, and says again, is not forgotten any more; of an agent that is `ForgottenError`.
        """
        from perdure.engine.learn.remember import NewStatement

        statement = NewStatement(
            text,
            kind,
            self._of(project),
            tuple(
                self.uri(each) if "/" in each and " " not in each else encodable(each, "replaces")
                for each in replaces
            ),
            tuple(evidence),
            said_by,
            anchors=self._anchors(text),
        )
        return self._remember(statement, session_id)

    def _anchors(self, text: str) -> "Anchors | None":
        checkout = self._checkout
        return None if checkout is None else checkout.anchored(text, None, None)

    def _remember(
        self, statement: "NewStatement", session_id: str, *decided: str, by_user: bool = True
    ) -> "Remembered":
        from perdure.engine.learn.remember import remember
        from perdure.engine.saving.saving import KnownNodes

        caller = replace(self.caller, session_id=session_id)
        known = KnownNodes(self._parts.nodes, engine.answering.Answering(self._parts).match)
        quotes = (*(each.quote for each in statement.evidence), *decided)
        also = self._review.decide(*quotes) if quotes else lambda _draft: None
        by_user = by_user and statement.said_by == "user"
        if not by_user and any(map(self._forgotten.says, (statement.text, *decided))):
            raise ForgottenError(
                "the user forgot this, so only the user can say it again. Nothing was kept. "
                "Fix: ask the user."
            )
        done = remember(known, statement, caller, also)
        done = replace(done, lifted=self._lift(statement.text) if by_user else 0)
        self.settle()
        return done

    @property
    def _review(self) -> "Review":
        from perdure.engine.learn.review import Review

        return Review(self._parts.nodes, self._parts.reader, self.caller)

    def propose(
        self, text: str, *, origins: Iterable[str], project: str | None = None
    ) -> "Pending":
        """Leave a statement to the user's decision, because its words may stem from others.

        `origins` says from where: web, mcp, pasted. `candidates` lists it; nothing else finds it
        until the user accepts it. A secret in it is refused (`SecretRefusedError`).
        """
        from perdure.safety.secrets import SecretPolicy
        from perdure.safety.texts import safe

        clean = safe(" ".join(text.split()), {}, SecretPolicy.REFUSE).content
        return self._review.propose(clean, self._of(project), tuple(origins))

    def candidates(self, *, limit: int = 20) -> "tuple[Pending, ...]":
        """Return sentences that may be worth keeping and wait for a decision, the likeliest first.

        In a project, only those of its sessions; before them come statements with a `reason` to
        remove them: their branch is gone, and was never merged.
        """
        offered = self._abandoned()
        return (*offered[:limit], *self._review.pending(limit - len(offered[:limit]), self.project))

    def _abandoned(self) -> "list[Pending]":
        checkout = self._checkout
        if checkout is None or not self.project:
            return []
        from perdure.engine.learn.review import abandoned

        return list(abandoned(checkout, engine.briefing.learned(self._scope)))

    def accept(self, candidate: str, *, text: str = "", kind: str = "") -> "Remembered":
        """Keep a candidate as a statement, by its id; `text` is another wording of it.

        A statement that was offered for removal holds here from now on.
        """
        from perdure.engine.learn.remember import Cited, NewStatement

        found = self._review.find(candidate, self._abandoned())
        if found.reason:
            replaced = (found.text,) if text and text != found.text else ()
            return self.remember(
                text or found.text,
                kind=kind or found.kind,
                replaces=replaced,
                project=found.project,
            )
        quote = Cited(found.session_id, found.message, found.text)
        project = self._of(found.project or None)
        words, kind = text or found.text, kind or found.kind
        anchors = self._anchors(words)
        statement = NewStatement(words, kind, project, evidence=(quote,), anchors=anchors)
        done = self._remember(statement, found.session_id, found.text)
        if found.uri:
            self._review.withdraw(found.uri)
        return done

    def reject(self, candidate: str) -> "Pending":
        """Never propose a candidate again, nor another sentence with the same words.

        A statement that was offered for removal is forgotten.
        """
        from perdure.engine.learn.statements import statements

        found = self._review.find(candidate, self._abandoned())
        if found.reason:
            is_alone = len(statements(self.read(found.uri).content)) == 1
            self.forget(found.uri if is_alone else found.text, reason=found.reason)
            return found
        self._review.reject(found.text)
        if found.uri:
            self._review.withdraw(found.uri)
        return found

    def judge_candidates(
        self, *, limit: int = 20, before: datetime | None = None, ended: Iterable[str] = ()
    ) -> "Judged":
        """Ask the configured language model which candidates to keep, in one request.

        What it keeps becomes statements that rest on the user's sentences. The rest stays in
        review, and is not asked about again. With `before`, only sessions count whose last message
        is older, or which are named in `ended`. One process of a home asks at a time: `LockTimeout`
        if another does. `OverBudgetError` if today's runs or tokens are used up.
        """
        from perdure.engine.learn.candidates import Judged, judge

        llm = self._parts.language_model
        if llm is None:
            raise ConfigError("no language model is configured. Fix: set provider in [llm].")
        with locked(self.home / "llm" / "lease") as lease:
            if lease is None:
                raise LockTimeout("another process asks a model about candidates. Fix: wait.")
            found = self._review.unjudged(self.project, before, frozenset(ended))
            asked = [each for each in found if not self._forgotten.says(each.text)][:limit]
            if not asked:
                return Judged()
            done = judge(llm, [self._shown(each) for each in asked], self._keep_judged)
            self._review.note_judged(*(each.text for each in done.refused))
        return replace(done, waiting=len(found) - len(asked))

    def _keep_judged(self, statement: "NewStatement", found: "Pending") -> "Remembered":
        anchors = self._of_session(found.session_id, statement.text)
        project = self._of(found.project or None)
        named = replace(statement, project=project, anchors=anchors)
        return self._remember(named, found.session_id, found.text, by_user=False)

    def _of_session(self, session: str, text: str) -> "Anchors | None":
        """Return what a statement names of where its session worked.

        No hashes are among it: nobody knows what the files were then.
        """
        from perdure.model.anchors import FIRST_NODE, Origin

        place = Uri(self.caller.account_id, ("sessions", session, FIRST_NODE))
        node = self._browser.node_or_none(place)
        told = {} if node is None else node.metadata
        names = (told.get(name) for name in ("cwd", "branch", "commit"))
        origin = Origin(*(each if isinstance(each, str) else "" for each in names))
        return (
            self._anchored(origin)(text, datetime.fromtimestamp(0, UTC)) if origin.folder else None
        )

    def _shown(self, found: "Pending") -> "Shown":
        from perdure.engine.learn.candidates import NEAR, Shown

        place = Uri(self.caller.account_id, ("sessions", found.session_id))
        messages = engine.sessions.Sessions(self._parts.nodes).messages(place, self.caller)
        result = self.recall(found.text, top_k=NEAR, project=found.project or None)
        return Shown.of(found, messages, result.hits)

    def unmerge(self, uri: str, statement: str = "") -> "UnmergeReport":
        """Undo the last merge of a node, or the last one of a statement of it.

        The node is again what it was before; what was merged is a memory of its own from then on,
        and the two are not merged again. What was superseded holds again.
        """
        unmerging = engine.restore.Unmerger(self._parts.nodes, self._parts.recorded.history)
        done = unmerging.unmerge(self.read(uri).uri, self.caller, statement)
        self.settle()
        return done

    def settle(self) -> None:
        """Bring the index up to date with all that was written, if that can be done now.

        What was written is there in any case. A recall returns how far its index is behind, and
        rebuilds one that is damaged.
        """
        with suppress(EmbeddingError, StorageError, DamageError):
            following = self._parts.present(self.caller.account_id).following
            engine.worker.Worker(self._parts.outbox, following).drain(self.caller.account_id)

    # ------------------------------------------------------------ nodes
    def write(  # noqa: PLR0913 - as `save`
        self,
        uri: str,
        content: str | None = None,
        *,
        abstract: str | None = None,
        overview: str | None = None,
        metadata: Mapping[str, JSON] | None = None,
        version: int | None = None,
        replace: bool = False,
        mask_secrets: bool = False,
        as_is: bool = False,
        reason: str = "",
    ) -> "Written":
        """Write a node to the letter, or the next version of one.

        An existing node is written only with the `version` that it has, or with `replace`. What is
        None stays as it is; a metadata value of None removes its key. A secret is refused
        (`SecretRefusedError`) unless `mask_secrets` masks it or `as_is` keeps it.
        """
        self._notice_files()
        return engine.write.write(
            self._parts.nodes,
            self._browser,
            self.caller,
            uri,
            engine.write.Fields(content, abstract, overview, metadata),
            conditions=engine.write.Conditions(version, replace, mask_secrets, as_is),
            reason=reason,
        )

    def edit(
        self, uri: str, change: Callable[[str], str], *, reason: str = "", as_is: bool = False
    ) -> "Written":
        """Write what `change` returns for the text of a node, frontmatter included.

        If the node changes meanwhile, or the text has a new secret, nothing is written.
        """
        self._notice_files()
        where = self._parts.nodes, self._browser, self.caller
        return engine.write.edit(*where, uri, change, reason=reason, as_is=as_is)

    def move(self, uri: str, to: str, *, reason: str = "") -> ContextNode:
        """Give a node another name; links, edges and history follow. Return the moved node.

        If `to` is a folder or ends with a slash, the node keeps its own name there.
        """
        self._notice_files()
        browser = self._browser
        old = browser.node_place(uri)
        browser.node(old)
        new = browser.place(to)
        into_folder = to.endswith("/") or (not new.is_node and new.child(old.name).is_node)
        new = new.child(old.name) if into_folder else browser.node_place(to)
        self._parts.nodes.because(reason).move_node(str(old), str(new), self.caller)
        return browser.node(new)

    def archive(self, uri: str, *, reason: str = "") -> str:
        """Take a node out of use: nothing finds it, until `unarchive`. Return its URI."""
        place = self._browser.node_place(uri)
        self._browser.node(place)
        self._parts.nodes.because(reason).archive_node(str(place), self.caller)
        return str(place)

    def unarchive(self, uri: str, *, reason: str = "") -> str:
        """Take an archived node back into use; return its URI.

        If it was forgotten, it is not any more, and what history has of it is shown again.
        """
        from perdure.engine.hide import plan_lift

        place = self._browser.node_place(uri)
        nodes = self._parts.nodes.because(reason)
        lift = partial(plan_lift, nodes=nodes, uris=[str(place)], ctx=self.caller)
        nodes.unarchive_node(str(place), self.caller, also=lift)
        return str(place)

    def delete(self, uri: str, *, reason: str = "") -> str:
        """Remove a node and its edges; history keeps them. Return its URI."""
        found = self.deletable(uri)
        self._parts.nodes.because(reason).delete_node(found.uri, self.caller)
        return found.uri

    def deletable(self, uri: str) -> "Entry":
        """Return a node, readable or not, that the caller may delete."""
        browser = self._browser
        place = browser.node_place(uri)
        self._parts.nodes.reach.changed(str(place), self.caller)
        if browser.is_empty(place):
            raise browser.absent(place)
        return browser.node_entry(place)

    def relate(
        self, uri: str, to: str, relation_type: str, *, weight: float = 1.0, reason: str = ""
    ) -> "RelationEdge":
        """Relate a node to another; return the edge. The same relation twice is one."""
        self._find(uri, to)
        where = self._parts.relations, self._browser, self.caller
        return engine.write.relate(*where, (uri, to), relation_type, weight, reason)

    def _find(self, *uris: str) -> None:
        places = [self._browser.node_place(uri) for uri in uris]
        if any(self._browser.node_or_none(place) is None for place in places):
            self._notice_files()

    def unrelate(
        self, uri: str, to: str, relation_type: str | None = None
    ) -> "tuple[RelationEdge, ...]":
        """Remove the relations from a node to another, or those of one type; return them."""
        return engine.write.unrelate(
            self._parts.relations, self._browser, self.caller, (uri, to), relation_type
        )

    def lint(self, folder: str | None = None) -> "LintReport":
        """Return what is wrong with notes by their own words, in a folder or the whole account."""
        reader = self._parts.reader
        place = None if folder is None else reader.reach.seen(self.uri(folder), self.caller)
        return engine.lint.Lint(reader, self.caller).run(place)

    def conflicts(self) -> "tuple[Conflict, ...]":
        """Return the copies that a sync client left when two machines changed one file.

        Only for ROOT, because the files are those of all accounts.
        """
        self._demand_root("see the files of all accounts", "ask the owner of the store")
        return tuple(engine.conflict_copies.conflicts(self._parts.recorded))

    def conflict(self, path: str) -> "Conflict":
        """Return the conflict of a copy, or of a file that has one copy."""
        return engine.conflict_copies.chosen(self.conflicts(), path)

    def settle_conflict(self, path: str, keep: str) -> "Conflict":
        """Keep `mine`, `theirs` or a `merge` of both in the file, and remove the copy.

        Nothing is lost: the text of the copy is a version of the file before it is removed.
        """
        from perdure.storage.sweep import record_edits

        found, recorded = self.conflict(path), self._parts.recorded
        engine.conflict_copies.settle(recorded, found, keep, lambda: record_edits(recorded))
        return found

    def repair(self, *, apply: bool = False, accept_removals: bool = False) -> "RepairReport":
        """Find what is wrong with nodes and, with `apply`, repair it.

        An edit made by hand becomes the next version; a note in a folder of nodes becomes a node;
        what a crash left unfinished is finished, or removed. That many files are gone at once is
        recorded only with `accept_removals`.
        """
        if not apply:
            parts = self._parts
            logged = parts.indexes.upkeep.following.logged
            edits = engine.edits.look_for_edits(
                parts.recorded.inner, parts.recorded.history, parts.seen
            )
            found = parts.repair.examine_changed(self.caller, edits, parts.seen, logged)
            return engine.repair.RepairReport((), tuple(found))
        self.record_edits(accept_removals=accept_removals)
        may_resume = self.caller.role is Role.ROOT
        ended = self._parts.namespaces.resume(self.caller) if may_resume else ()
        return engine.repair.RepairReport(tuple(ended), tuple(self._parts.repair.run(self.caller)))

    def forget(
        self, uri: str, *, erase: bool = False, dry_run: bool = False, reason: str = ""
    ) -> "ForgetReport":
        """Archive a node, or all nodes in a folder; or erase it, so that nothing of it is left.

        A short id of a briefing, or a message, means what that states; a text that is not a name,
        all that says so. These are hidden, as below; `NodeNotFoundError` if nothing says so.
        What is archived is found by no one, and `unarchive` brings it back. Its words are hidden
        in the user's sessions, and in those that come later; they are not learned again, until
        the user says them again (`remember`, `save`). What is erased is gone
        from its files, from every state of history and from all that was derived; a signed receipt
        lists it. That is only for ROOT, because all accounts share one history. A user or an agent
        (`ctx://account/users/id`) goes with their sessions. Twice is once; a dry run changes
        nothing, and returns what would be done. If it is interrupted, opening this memory again
        finishes it.
        """
        what = self.meant(uri)
        if erase and len(what.split()) > 1:
            raise InvalidValueError("words can't be erased. Fix: erase what says them, by its id.")
        if erase:
            eraser = self._parts.erasing
            return engine.erase.erase(eraser, what, self.caller, reason, dry_run=dry_run)
        nodes = self._parts.nodes
        done = engine.erase.forget(nodes, what, self.caller, reason, dry_run=dry_run)
        if not dry_run:
            self.settle()
        return done

    def meant(self, what: str) -> str:
        """Return what `forget` takes a text for: a URI, that of a message, or the words."""
        if len(what.split()) > 1:
            with suppress(InvalidUriError):
                return self.uri(what)
            return what
        try:
            return self.uri(what)
        except NodeNotFoundError:  # an id of what is archived is in no index
            archived = (each.uri for each in self.list(archived=True))
            if found := next(
                (uri for uri in archived if engine.briefing.short_id(uri, None) == what), ""
            ):
                return found
            raise

    def verify_receipt(self, text: str, key: str | None = None) -> "ReceiptCheck":
        """Verify the receipt of an erasure, and that it still holds here.

        `key` is the public key of its signer; without one, this user's. `ProofError` if the owner
        of the key did not sign it.
        """
        from perdure.engine.receipt import check_receipt
        from perdure.proofs.keys import PublicKey

        public = self._parts.signing_key().public if key is None else PublicKey.parse(key.strip())
        return check_receipt(text, self._parts.recorded.history, public)

    # ------------------------------------------------------------ history
    @property
    def log(self) -> "VersionLog":
        """Every version of every text of all accounts, by key; only for ROOT."""
        self._demand_root("read the log of all accounts", "use history, blame and restore")
        return self._parts.log(self.caller.user_id)

    def _demand_root(self, what: str, fix: str) -> None:
        if self.caller.role is not Role.ROOT:
            raise AccessDeniedError(
                f"{self.caller.user_id[:80]!a} is {self.caller.role.value} and may not {what}. "
                f"Fix: {fix}."
            )

    def history(self, uri: str) -> "list[Version]":
        """Return the versions of the content of a node, oldest first.

        `NodeNotFoundError` if nothing was ever there.
        """
        versions = self._parts.recorded.history.versions(self._content_file(uri))
        if not versions:
            raise NodeNotFoundError(f"nothing was ever at {self.uri(uri)!a}. Fix: list its folder.")
        return versions

    def blame(self, uri: str) -> "list[BlamedLine]":
        """Return the lines of the content of a node, each with the version that wrote it."""
        return self._parts.recorded.history.blame(self._content_file(uri))

    def _content_file(self, uri: str) -> "Locator":
        place = self._parts.reader.reach.seen(self.uri(uri), self.caller)
        return self._parts.reader.file(place, CONTENT)

    def why(self, uri: str) -> "Provenance":
        """Return where a node comes from: evidence, versions, merges, edges, what it superseded.

        Evidence is looked up each time, and so is the code that a statement names, in the folder
        that the memory was opened in. What the caller may not see is counted, or left out.
        """
        from perdure.engine.uses import sessions_unused

        check = None if self._checkout is None else self._checkout.checked
        reader = engine.provenance.ProvenanceReader(
            self._parts.nodes, self._parts.recorded.history, self.caller, check
        )
        node, message = self._at(uri)
        lines = engine.recomposition.items_of(node) if message is None else ()
        unused = sessions_unused(self.home, lines)
        return replace(reader.read(node, message), unused_sessions=unused)

    def restore(self, uri: str, version: "CID | When") -> ContextNode:
        """Restore a node to what it was at a moment, or with a content; return it.

        That is its next version, and nothing is lost; a node that was deleted comes back. If it is
        so already, nothing changes. The caller must be allowed to see it then and now, and to
        change it. `NodeNotFoundError` if there was none.
        """
        self.record_edits()
        place = str(self._browser.node_place(uri))
        node = self._restoring.planned(place, self._pasts.state, version)
        if node is not None:
            self._parts.nodes.because(origin=RESTORE).write_node(node, self.caller)
            self._unforget([place])
            self.settle()
        return self.read(place)

    def rewind(self, when: "When", folder: str = "", *, dry_run: bool = False) -> "RewindReport":
        """Restore all memories in a folder to what they were at a moment; return the changes.

        Without a folder, it is all that the caller remembers. In one commit, what changed gets its
        old text again, what was deleted comes back, and what was not there goes; history keeps all
        of it, so a rewind can be rewound. Sessions stay. A dry run changes nothing.
        """
        self.record_edits()
        own = Uri(self.caller.account_id, ("users", self.caller.user_id))
        reach = self._parts.nodes.reach
        below = reach.seen(self.uri(folder), self.caller) if folder else own
        done = self._restoring.rewind(self._pasts.state(when), below, dry_run=dry_run)
        self.settle()
        return done

    @property
    def _restoring(self) -> "Restorer":
        return engine.restore.Restorer(self._parts.nodes, self._parts.recorded.history, self.caller)

    def _unforget(self, uris: Iterable[str]) -> None:
        """Let nodes that are in use again not be forgotten any more."""
        if self._forgot_something:
            from perdure.engine.hide import plan_lift

            nodes = self._parts.nodes.because("restored")
            lift = partial(plan_lift, nodes=nodes, uris=list(uris), ctx=self.caller)
            nodes.exchange((), (), self.caller, also=lift)

    # ------------------------------------------------------------ transfer
    def export(
        self,
        folder: Path | str,
        *,
        everything: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> "ExportReport":
        """Write all that the caller reaches in this account into a folder, with its history.

        With `everything`, which is only for ROOT, it is all that there is in all accounts.

        Memories are there as Markdown for people, and as one archive that `perdure import` takes
        in on another machine. The folder is empty, or an earlier export, of which only what
        changed is written. If it is interrupted, do it again.
        """
        from perdure.transfer.export import ExportScope, export_to

        recorded, seen = self._parts.recorded, self._parts.seen
        if everything:
            self._demand_root("export all accounts", "export without everything=True")
            return export_to(Path(folder), recorded, None, seen, progress)
        scope = ExportScope.of(self.caller, recorded.history, self._parts.nodes)
        return export_to(Path(folder), recorded, scope, seen, progress)

    def import_from(  # noqa: PLR0913 - as `save`
        self,
        path: Path | str,
        *,
        format: str | None = None,  # noqa: A002 - as the command's option
        into: str = "",
        of: str = "",
        archive_gone: bool = False,
        learn: bool = False,
        mask_secrets: bool = False,
        dry_run: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> "ImportReport":
        """Import what another program remembers; what is there already is passed over.

        The format is detected unless it is named. Documents go `into` a folder of resources, and
        `archive_gone` archives those whose files are gone; `of` takes only one user's memories;
        `learn` learns from conversations. Items with a secret are refused unless `mask_secrets`. A
        dry run writes nothing, and returns what would be done. What is private in a session is left
        out; from a folder, so are sessions that may not contribute (`[agents]` in the config).
        """
        from perdure.transfer.imports import Importer, ImportOptions

        self._notice_files()  # so that notes that are memory in place are known
        agents = self._parts.agents
        options = ImportOptions(dry_run, into, of, archive_gone, learn, mask_secrets, agents)
        importer = Importer(self, self._parts.nodes, self._parts.relations, options)
        done = importer.import_path(Path(path), format, progress)
        if not dry_run:  # so that the next recall need not look at each of the new files
            engine.edits.notice_edits(self._parts, seconds=None)
        return done

    # ------------------------------------------------------------ upkeep
    @property
    def home(self) -> Path:
        """The folder of the config, the history and all that is derived."""
        return self._parts.home

    def lag(self) -> "Lag":
        """Return the changes that failed to get into the index, as far as the caller may see."""
        return engine.answering.lag_of(
            self._parts.outbox.list_failed(self.caller.account_id), self.caller
        )

    def status(self, *, exact: bool = False) -> "tuple[StatusPart, ...]":
        """Return what is stored where, and whether it is healthy. Changes nothing.

        With `exact`, every file on the disk is counted, however many there are.
        """
        return self._parts.status(self.caller, exact=exact)

    def doctor(self) -> "Checkup":
        """Return whether the memory is healthy, and how to fix what is not. Changes nothing."""
        return self._parts.doctor(self.caller)

    def cost(self, by: str = "day", *, since: datetime | None = None) -> "tuple[Cost, ...]":
        """Return how many tokens language models have used, by `day` or `model`.

        It is that of all accounts and memories of this home; only for callers who govern theirs.
        """
        self.caller.demand_governing("see what language models cost")
        from perdure.llm.ledger import costs

        return costs(self.home, by, since)

    @property
    def index(self) -> "IndexUpkeep":
        """The index of the account; `AccessDeniedError` unless the caller governs it."""
        return engine.index_upkeep.IndexUpkeep(self._parts, self.caller, self.settle)

    @property
    def outbox(self) -> "OutboxUpkeep":
        """The events that wait for the index; `AccessDeniedError` as for `index`."""
        return engine.index_upkeep.OutboxUpkeep(self._parts, self.caller)

    def work(
        self,
        *,
        once: bool = True,
        ending: threading.Event | None = None,
        report: "Callable[[WorkReport], None] | None" = None,
    ) -> "Worked":
        """Bring the indexes of all accounts up to date, and build that of a new model.

        It works until nothing waits or, if not `once`, until `ending` is set; then the step that
        was begun is finished. `report` is called with what happens meanwhile.
        """
        return engine.worker.work(
            self._parts, self.caller, ending or threading.Event(), report, once=once
        )

    def watch(self, ending: threading.Event) -> "Iterator[WatchReport]":
        """Take in edits of files as soon as they are saved, until `ending` is set.

        An edit becomes a version, and a new note a node, in every account.
        """
        return engine.watch.watch(self._parts, self.caller, ending, self.record_edits)

    # ------------------------------------------------------------ accounts, users, agents
    @property
    def tenants(self) -> "Tenants":
        """The accounts, users and agents that the caller may create, list and delete."""
        return engine.namespaces.Tenants(lambda: self._parts.namespaces, self.caller)


class PastMemory(Readable):
    """A memory as of a state; it can be read and searched, and not changed."""

    def __init__(
        self,
        past: "Past",
        caller: RequestContext,
        moment: str = "",
        project: Identity | str = "",
        forgotten: "ForgottenList | None" = None,
    ) -> None:
        super().__init__(caller)
        self._past = past
        self._moment = moment
        self._forgotten = forgotten
        self._identity = Identity(project) if isinstance(project, str) else project
        self.project = self._aliases.project(self._identity) if self._identity.slug else ""

    @property
    def _browser(self) -> "Browser":
        return engine.browse.Browser(
            self._past.reader, self._past.relations, self.caller, self._moment
        )

    def recall(  # noqa: PLR0913 - as of the present
        self,
        query: str,
        *,
        top_k: int = 10,
        budget_tokens: int | None = None,
        valid_at: datetime | date | str | None = None,
        filters: Mapping[str, JSON] | None = None,
        project: str | None = None,
        projects: Searched | None = None,
    ) -> "RecallResult":
        """Return what memory had to say to a question then; all else is as in the present."""
        limits = top_k, budget_tokens
        question = self._question(query, limits, valid_at, filters, project, projects)
        return self._past.recall(question, self.caller)

    def briefing(
        self, *, budget_tokens: int = 294, known: "str | Sequence[InstructionFile]" = ""
    ) -> "Briefing":
        """Return what an agent that started a session then should have known.

        What was forgotten since is left out; what was shown and never used is not.
        """

        def ask(reader: "NodeReader", index: "KeptIndex", now: datetime) -> "Briefing":
            names, hidden = self._names(self.project), self._forgotten
            return engine.briefing.brief(
                engine.briefing.Scope(reader, index, self.caller, names),
                known=known,
                budget=budget_tokens,
                now=now,
                leaves_out=lambda item: hidden is not None and hidden.says(item.text),
            )

        return self._past.ask(self.caller.account_id, ask)
