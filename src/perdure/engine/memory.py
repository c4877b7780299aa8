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
from perdure.context.node_files import CONTENT, FORGOTTEN, read_aliases, text_at, user_file
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
from perdure.model.project_aliases import ProjectAliases, ProjectIdentity
from perdure.model.uri import MESSAGE, OF_THE_PERSON, slug_of
from perdure.model.values import JSON, encodable
from perdure.storage.contract import Layout
from perdure.storage.text_history import RESTORE, BlamedLine, Version
from perdure.times import parse_when, start_of

if TYPE_CHECKING:
    from perdure.context.nodes import NodeDraft
    from perdure.context.reader import NodeReader
    from perdure.engine.briefing import Briefing, BriefingItem, ProjectScope
    from perdure.engine.browse import Browser, Edges, Entry
    from perdure.engine.conflicts import Conflict
    from perdure.engine.erasure_plan import ForgetReport
    from perdure.engine.file_watch import WatchReport
    from perdure.engine.forgotten import ForgottenList
    from perdure.engine.indexing.follower import IndexFollower
    from perdure.engine.indexing.index_worker import Worker, WorkReport, WorkResult
    from perdure.engine.instruction_lines import InstructionFile
    from perdure.engine.learn.new_statement import Citation, NewStatement, RememberResult
    from perdure.engine.learn.review_queue import CandidateContext, Judgement, Review, ReviewItem
    from perdure.engine.lint import LintReport
    from perdure.engine.namespaces import Tenants
    from perdure.engine.node_writes import SaveResult, WriteResult
    from perdure.engine.past import PastState, PastStates, When
    from perdure.engine.present import Lag
    from perdure.engine.project_registry import Projects
    from perdure.engine.provenance import Provenance
    from perdure.engine.recall.question import Question
    from perdure.engine.recall.result import RecallResult
    from perdure.engine.receipt import ReceiptCheck
    from perdure.engine.reminders import Enforcement, Fix, Reminder
    from perdure.engine.repair import RepairReport
    from perdure.engine.restore import Restorer, RewindReport, UnmergeReport
    from perdure.engine.services import Checkup, Services, StatusSection
    from perdure.engine.session_commit import CommitOptions, SessionCommit
    from perdure.engine.sessions import SessionEnd, SessionInfo
    from perdure.engine.shown_lines import ShownEmission
    from perdure.engine.tool_calls import AgentAction
    from perdure.engine.upkeep import IndexUpkeep, OutboxUpkeep
    from perdure.engine.versions import VersionLog
    from perdure.index.contract import NodeIndex
    from perdure.llm.ledger import Cost
    from perdure.model import RelationEdge
    from perdure.model.anchors import AnchorChecker, Anchors, AnchorStatus, SessionOrigin
    from perdure.storage import Locator
    from perdure.storage.reconciliation import EditReport
    from perdure.transfer.export import ExportReport
    from perdure.transfer.imports import ImportReport

Searched = Literal["own", "all"]


class ReadableMemory:
    """The verbs that only read, of the present or of a past state.

    A node or folder is named by its URI or by its short name (`preference/indentation`).
    """

    project: str
    _identity: ProjectIdentity

    def __init__(self, caller: RequestContext) -> None:
        self.caller = caller

    @property
    def _browser(self) -> "Browser":
        raise NotImplementedError

    def _notice_files(self) -> None:
        """Record which notes are new, renamed or gone."""

    def uri(self, name: str) -> str:
        """Return the URI of a short name."""
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
        """Return the entries of a folder; without one, of the caller's memories.

        With `archived`, return the archived nodes below it instead. With `project`, return only
        nodes of that project ("" for no project), those in folders below too. `projects="own"`
        leaves out what belongs to other projects than the memory's.
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
    def _aliases(self) -> ProjectAliases:
        reader, who = self._reader, (self.caller.account_id, self.caller.user_id)
        return read_aliases(reader.backend, *who)

    def _named(self, project: str) -> str:
        slug = slug_of(encodable(project, "project"))
        return self._aliases.project(slug) if slug else ""

    def _names(self, project: str, aliases: ProjectAliases | None = None) -> tuple[str, ...]:
        """Return all names of a project; a writer with old settings may still use an old one."""
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
        from perdure.engine.recall.question import Question

        named = slug_of(encodable(project, "project")) if project else ""
        identity = self._identity if project is None else ProjectIdentity(named)
        aliases = self._aliases if identity.slug else ProjectAliases()
        project = aliases.project(identity)
        is_all = projects == "all" or (projects is None and not project)
        return Question(
            text=text,
            top_k=limits[0],
            budget_tokens=limits[1],
            valid_at=None if valid_at is None else parse_when(valid_at),
            filters=filters,
            project=project,
            projects=None if is_all else (*dict.fromkeys((*self._names(project, aliases), "")),),
        )

    def tree(self, folder: str = "", *, project: str | None = None) -> "Entry":
        """Return a folder with everything below it, or only a project's; `/` is the account."""
        self._notice_files()
        place, below = self._browser.entries(folder)
        if project is not None:
            names = self._names(self._named(project))
            below = tuple(filter(None, (each.within(names) for each in below)))
        return engine.browse.Entry(str(place), self._browser.name(place), None, "", below)

    def has_resources(self) -> bool:
        """Whether the caller may see any resources, such as notes of a vault."""
        folder = Uri(self.caller.account_id, ("resources",))
        return bool(self._browser.reader.list_children(str(folder), self.caller))

    def sessions(self) -> "tuple[SessionInfo, ...]":
        return tuple(engine.sessions.list_sessions(self._browser.reader, self.caller))

    def relations(self, uri: str) -> "Edges":
        """Return the relations that start and end at a node, links in texts included."""
        place = self._browser.node_place(uri)
        ReadableMemory.read(self, uri)
        return self._browser.edges(place)


class Memory(ReadableMemory):
    """A memory opened for one caller. Reads its own writes.

    It may be used from several threads at once. Use it in a `with`, or close it. Other callers'
    memories on the same store, from `for_caller`, stay open.
    """

    def __init__(
        self, services: "Services", caller: RequestContext, project: ProjectIdentity | str = ""
    ) -> None:
        super().__init__(caller)
        self._identity = ProjectIdentity(project) if isinstance(project, str) else project
        self._open_services: Services | None = services
        self._edits: list[EditReport] = []
        self._behind = ""
        services.retain()

    @property
    def _services(self) -> "Services":
        if self._open_services is None:
            raise ClosedError("this memory was closed. Fix: open it again.")
        return self._open_services

    @property
    def _browser(self) -> "Browser":
        return engine.browse.Browser(
            self._services.reader, self._services.relation_reader, self.caller
        )

    @property
    def _reader(self) -> "NodeReader":
        return self._services.reader

    @property
    def project(self) -> str:  # type: ignore[override] # it is never set from outside
        """The project whose memories come first; empty for none."""
        return self._aliases.project(self._identity) if self._identity.slug else ""

    @property
    def projects(self) -> "Projects":
        """The caller's projects: list, name, merge, split and move them."""
        from perdure.harness.project import identity_at

        services = self._services
        return engine.project_registry.Projects(
            services.reader, lambda: services.nodes, self.caller, identity_at, self.settle
        )

    def for_caller(
        self,
        caller: RequestContext | None = None,
        *,
        user: str | None = None,
        agent: str | None = None,
        project: str | None = None,
    ) -> "Memory":
        """Return a memory on the same store for another caller; each must be closed.

        With `user`, the caller is a member of this account, who reaches only what is theirs or
        shared. Only a caller who governs an account may act for others in it, and only ROOT may
        act in another account.
        """
        if caller is None:
            caller = self.caller
            if user is not None:
                caller = replace(caller, user_id=user, role=Role.MEMBER)
            if agent is not None:
                caller = replace(caller, agent_id=agent)
        self._demand_delegation(caller)
        return Memory(self._services, caller, self._identity if project is None else project)

    def _demand_delegation(self, caller: RequestContext) -> None:
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
        """Release the store; the last memory on it closes it. A second call does nothing."""
        services, self._open_services = self._open_services, None
        if services is not None:
            services.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def warnings(self) -> str:
        """Return, once, what was quarantined or could not be finished; empty if nothing was."""
        behind, self._behind = self._behind, ""
        return "; ".join(filter(None, (self._services.warnings(), behind)))

    def _notice_files(self) -> None:
        if not isinstance(self._services.recorded.inner, Layout):
            return  # the path of a node is fixed in this layout
        noticed = engine.edits.notice_edits(self._services, seconds=self._services.check_seconds)
        self._behind = "; ".join(hint.text for hint in noticed.hints)

    def edits(self) -> "tuple[EditReport, ...]":
        """Return, once, the edits made outside Perdure that this memory's verbs recorded."""
        edits, self._edits = self._edits, []
        return tuple(edits)

    def record_edits(self, *, accept_removals: bool = False) -> "EditReport":
        """Record every edit made outside Perdure as a version; return what was found.

        `TextsGoneError` if more than a tenth of the texts are gone, unless that is accepted.
        """
        from perdure.storage.reconciliation import record_edits

        found = record_edits(self._services.recorded, accept_removals=accept_removals)
        if accept_removals:
            engine.edits.forget_gone(self._services)
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
        """Return the memories that answer a question, now or as of a state.

        `at` asks what was known at a state; `valid_at`, what held at a time. In a project, its
        memories rank first, then those of no project; `projects="all"` also finds those of other
        projects, each with its `project`. Without a project, all are searched, unless
        `projects="own"`. With a budget, `context` is Markdown for a prompt: the caller's profile,
        the project's memories, then the rest.
        """
        limits = top_k, budget_tokens
        question = self._question(query, limits, valid_at, filters, project, projects)
        if at is None:
            result = engine.present.recall_now(
                self._services, question, self.caller, self._worker_for
            )
        else:
            result = self._past(at).recall(question, self.caller)
        if not self._has_forgotten:
            return result
        hide = (
            engine.forgotten.with_forgotten_hint
            if at is None
            else engine.forgotten.without_forgotten
        )
        return hide(result, self._forgotten)

    @property
    def _has_forgotten(self) -> bool:
        """Whether the user has ever forgotten something, so that there is a list to read."""
        reader, caller = self._services.reader, self.caller
        file = user_file(caller.account_id, caller.user_id, FORGOTTEN)
        return text_at(file, reader.backend) is not None

    @property
    def _forgotten(self) -> "ForgottenList":
        return engine.forgotten.of_caller(self._services.reader, self.caller)

    def read(self, uri: str) -> ContextNode:
        """Return an active node; `NodeNotFoundError` if there is none.

        A short id of a briefing may name a message; then the content is that message with its
        neighbours.
        """
        node, message = self._node_and_message(uri)
        return (
            node
            if message is None
            else replace(node, content=engine.briefing.around(node, message))
        )

    def _node_and_message(self, uri: str) -> tuple[ContextNode, int | None]:
        uri, _, message = self.uri(uri).partition("#")
        return super().read(uri), int(message) if message else None

    def uri(self, name: str) -> str:
        """Return the URI of a short name or an id; for a message, `URI#index`."""
        if not name.startswith("~"):
            return name if MESSAGE.fullmatch(name) else super().uri(name)
        index = self._services.indexes.current(self.caller.account_id).follower.index
        found = engine.briefing.named(name, index, self.caller)
        if len(found) == 1:
            return found.pop()
        ids = f"name one: {', '.join(sorted(found))}" if found else "use one of `perdure briefing`"
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

        It contains only what belongs to the project or the person. It leaves out what `known`
        already says, such as the text of the project's CLAUDE.md; a line of an instruction file
        that was contradicted since is reported. It also leaves out what was shown in many sessions
        and used in none, unless it is pinned or recent; and, in a checkout, what holds on another
        branch or names only what is gone. A note states what changed since. What is not checked
        within `seconds` is shown as it is. `kinds` limits it to some kinds, such as `rule` and
        `rejected`.
        """
        if at is not None:
            return self.at(at).briefing(budget_tokens=budget_tokens, known=known)
        from perdure.engine.uses import unused_in

        noticed = engine.edits.notice_edits(self._services, seconds=self._services.check_seconds)
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
    ) -> "tuple[AnchorStatus, ...]":
        """Return whether statements hold in the folder that the memory was opened in.

        A line is the URI of a memory, or of a session with the index of a message, and the text of
        the statement. The verdict is unknown for what is not checked within `seconds`, and for
        everything without a checkout.
        """
        return self._scope.checked(lines, seconds=seconds)

    @property
    def _scope(self) -> "ProjectScope":
        index = self._services.indexes.current(self.caller.account_id).follower.index
        names = self._names(self.project)
        return engine.briefing.ProjectScope(
            self._services.reader, index, self.caller, names, self._checkout
        )

    @property
    def _checkout(self) -> "AnchorChecker | None":
        return self._checkout_at(self._identity.folder)

    def _checkout_at(self, folder: str) -> "AnchorChecker | None":
        from perdure.harness.project import top_of

        if top_of(folder) is None:
            return None
        from perdure.harness.working_tree import working_tree

        return working_tree(folder, self.home / "hooks" / "ancestry.json")

    def shown(
        self,
        *,
        session: str = "",
        since: datetime | date | str | None = None,
        project: str | None = None,
        last: bool = False,
    ) -> "tuple[ShownEmission, ...]":
        """Return what agents were shown, oldest first, verbatim.

        The texts are read as of that time. What was forgotten or erased since has no text, but a
        state. `session` is the agent's id of a session, or its name here; `last` returns only the
        newest emission. A caller who does not govern the account sees only their own.
        """
        chosen = engine.shown_lines.selected(
            self.home,
            self.caller,
            session=session,
            since=None if since is None else start_of(since),
            projects=None if project is None else self._names(self._named(project)),
        )
        found = engine.shown_lines.EmissionReader(
            self._services.recorded.history, self.caller, self._forgotten
        )
        return tuple(map(found.read, chosen[-1:] if last else chosen))

    @property
    def position(self) -> int:
        """The log position of the index that answers; 0 if it is not finished."""
        account = self.caller.account_id
        return self._services.indexes.current(account).follower.index.cursor(account)

    def reminders(
        self, action: "AgentAction", *, known: Container[str] = ()
    ) -> "tuple[Reminder, ...]":
        """Return the statements of the project about what a tool call is about to use, best first.

        These are rules, prohibitions, rejected approaches and known-good commands that name a
        file, a program or a package of the call. Left out are those that the call follows, those
        that ended, are doubted or were forgotten, and those that no longer hold in the checkout.
        What is `known`, by its text, is left out unless the user enforces it.
        """
        found = engine.reminders.reminders(self._scope, action, known=known)
        if not found:
            return ()
        verdicts = self.checked((each.uri, each.message, each.text) for each in found)
        return tuple(
            replace(each, note=verdict.note)
            for each, verdict in zip(found, verdicts, strict=True)
            if each.enforced or not verdict.held_back
        )

    def repeated(
        self, occasion: "AgentAction | str", *, session: str = ""
    ) -> "tuple[BriefingItem, ...]":
        """Return the statements of the project that apply to a prompt or a tool call, newest first.

        These name their own occasion, or use the words of the call. What was stated in the
        `session` itself, or no longer holds, is left out.
        """
        return self._scope.repeated(occasion, session=session)

    def fix_for(self, command: str, output: str) -> "Fix | None":
        """Return the command that worked after a command failed in the same way in this project.

        Failures are the same if their outputs differ only in numbers, paths and times. The exit
        status decides whether a command failed. A command that contains a secret or destroys
        something is never returned.
        """
        return engine.reminders.fix_for(self._scope, command, output)

    def enforce(self, uri: str, *, text: str = "", enforced: bool = True) -> "Enforcement":
        """Let hooks refuse tool calls that break the statements of a memory, or stop doing so.

        With `text`, only that statement. A call can break a statement only if that names something
        not to be used; `can_block` reports whether one does.
        """
        text = encodable(text, "text")
        node, message = self._node_and_message(uri)
        if message is not None:
            raise InvalidValueError(
                f"{uri[:80]!a} is a message. "
                "Fix: keep it as a rule, with `perdure remember --kind rule --enforce TEXT`."
            )
        done = engine.reminders.enforce(node, text, enforced=enforced)
        self.write(node.uri, metadata=done.metadata, version=node.version, reason="enforced")
        self.settle()
        return done

    def at(self, when: "When") -> "PastMemory":
        """Return a read-only memory as of a date, a time or a log position."""
        forgotten = self._forgotten if self._has_forgotten else None
        return PastMemory(self._past(when), self.caller, str(when), self._identity, forgotten)

    def _past(self, when: "When") -> "PastState":
        return self._past_states.at(self._state(when))

    def _state(self, when: "When") -> IndexState:
        """Return the state of `when`; if it is the newest, record edits of files first.

        An edit is recorded with the present time, so only the newest state can gain one.
        """
        state = self._past_states.state(when)
        if state.position >= self._services.recorded.history.position():
            self.record_edits()
            state = self._past_states.state(when)
        return state

    @property
    def _past_states(self) -> "PastStates":
        return self._services.indexes.past_states(self.caller.account_id)

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
    ) -> "SaveResult":
        """Save a text as a memory of the caller, or as its next version; return its URI.

        It belongs to `project`, by default to the memory's own. Profile and preferences belong to
        the person; so does everything with `project=""`.

        Saving the same text twice creates one version. HTML and instructions in it are made
        harmless. A secret in it is refused (`SecretRefusedError`) unless `mask_secrets`. A node
        that was learned from sessions is not replaced (`NodeExistsError`) unless `replace_learned`.
        """
        saved = engine.node_writes.save(
            self._services.nodes,
            self.caller,
            content,
            category=category,
            slug=slug,
            metadata=metadata or {},
            project=""
            if project is None and category in OF_THE_PERSON
            else self._project_of(project),
            mask=mask_secrets,
            replace_learned=replace_learned,
        )
        saved.lifted = self._lift(content)
        self.settle()
        return saved

    def _lift(self, text: str) -> int:
        """Remove what the user states again from the list of forgotten things; return how many."""
        if not self._has_forgotten or not self._forgotten.matches(text):
            return 0
        count = 0

        def plan(draft: "NodeDraft") -> None:
            nonlocal count
            account, user = self.caller.account_id, self.caller.user_id
            before, after = engine.forgotten.changed(
                draft, account, user, lambda known: known.lifted(text)
            )
            count = len(before.entries) - len(after.entries)

        self._services.nodes.because("remembered again").exchange((), (), self.caller, also=plan)
        return count

    def _project_of(self, project: str | None) -> str:
        """Return the project of what is written: the named one, or the memory's own."""
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
        origin: "SessionOrigin | None" = None,
    ) -> "SessionCommit":
        """Store the messages of a session, and learn statements from them.

        Messages are dicts or objects of the OpenAI and Anthropic SDKs, or any mapping with role
        and content. What can't be stored of them is in `left_out`; secrets are masked, and what is
        private (`<private>`, `/private on`) is left out. The same call twice changes nothing, and
        completes one that was interrupted. Further messages are added. A last answer that differs
        is replaced, and history keeps the old one; any other difference is `NodeExistsError`.
        `extract=False` only stores and indexes the messages. A dry run writes nothing, and returns
        what would be done. `again` learns from all messages once more. `foreign` has sentences of
        the user that quote others, by the ids of `candidates`, with their sources; nothing is
        learned from these. `origin` is the checkout of the session, in which the names in its
        statements are looked up.
        """
        from perdure.engine.session_commit import LEAST_CONFIDENCE, CommitOptions

        options = CommitOptions(
            LEAST_CONFIDENCE if min_confidence is None else min_confidence,
            extract=extract,
            dry_run=dry_run,
            again=again,
            addition=engine.sessions.Addition(title=title, project=self._project_of(project)),
            progress=progress or (lambda _done, _all: None),
            foreign=foreign or {},
            anchors_for=self._anchoring(origin),
        )
        return self._save_session(messages, session_id, options)

    def _anchoring(
        self, origin: "SessionOrigin | None"
    ) -> "Callable[[str, datetime | None], Anchors | None]":
        """Return a function that finds what a statement names in the checkout of `origin`."""
        from perdure.model.anchors import SessionOrigin

        known = origin or SessionOrigin(self._identity.folder)
        checkout = cache(lambda: self._checkout_at(known.folder))

        def anchored(text: str, when: datetime | None) -> "Anchors | None":
            found = checkout()
            return None if found is None else found.anchors_of(text, when, known)

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
        origin: "SessionOrigin | None" = None,
    ) -> "SessionCommit":
        """Add messages to a session, created if it does not exist; learn from the new ones.

        Messages that the session already ends with are not added again, so the same call twice has
        one effect. An answer right after an answer replaces it; `replace_last=False` always adds
        it. `replace_last=True` replaces the whole last answer, tool calls too, or the last
        question with its answer if the messages begin with a user's. History keeps what is
        replaced. With `after`, messages are added behind that end without reading the rest of the
        session; if it ends elsewhere, `VersionMismatchError`. `origin` is as for `commit_session`.
        """
        from perdure.engine.session_commit import CommitOptions

        addition = engine.sessions.Addition(
            whole=False,
            replace_last=replace_last,
            title=title,
            project=self._project_of(project),
            after=after,
        )
        options = CommitOptions(
            extract=extract, addition=addition, anchors_for=self._anchoring(origin)
        )
        return self._save_session(messages, session_id, options)

    def _save_session(
        self, messages: Iterable[object], session_id: str, options: "CommitOptions"
    ) -> "SessionCommit":
        from perdure.engine.session_commit import committer_for

        saving = committer_for(self._services, options)
        return saving.commit(messages, session_id, self.caller, settle=self.settle)

    # ------------------------------------------------------------ statements
    def remember(  # noqa: PLR0913 - the public verb, with a name for each
        self,
        text: str,
        *,
        kind: str = "fact",
        project: str | None = None,
        replaces: Iterable[str] = (),
        evidence: "Iterable[Citation]" = (),
        speaker: str = "user",
        session_id: str = "",
    ) -> "RememberResult":
        """Remember one statement; return what it merged with or replaced.

        `kind` is rule, decision, rejected, preference, fact, command, task, or person for what is
        about the user. It belongs to `project`, by default to the memory's own; preferences and
        statements about the person belong to the user. It merges with a statement that says the
        same. What it `replaces`, by URI or words, or contradicts, ends; where that is not certain,
        both stay, and the older one is marked as possibly outdated. In a checkout, what it names
        there is stored with it, so that a later change is noticed. What the user forgot and states
        again is no longer forgotten; from an agent it raises `ForgottenError`.
        """
        from perdure.engine.learn.new_statement import NewStatement

        statement = NewStatement(
            text,
            kind,
            self._project_of(project),
            tuple(
                self.uri(each) if "/" in each and " " not in each else encodable(each, "replaces")
                for each in replaces
            ),
            tuple(evidence),
            speaker,
            anchors=self._anchors(text),
        )
        return self._remember(statement, session_id)

    def _anchors(self, text: str) -> "Anchors | None":
        checkout = self._checkout
        return None if checkout is None else checkout.anchors_of(text, None, None)

    def _remember(
        self, statement: "NewStatement", session_id: str, *decided: str, by_user: bool = True
    ) -> "RememberResult":
        from perdure.engine.learn.merge import KnownMemory
        from perdure.engine.learn.new_statement import remember

        caller = replace(self.caller, session_id=session_id)
        services = self._services
        known = KnownMemory(services.nodes, partial(engine.present.match_words, services))
        quotes = (*(each.quote for each in statement.evidence), *decided)
        also = self._review.decide(*quotes) if quotes else lambda _draft: None
        by_user = by_user and statement.speaker == "user"
        if not by_user and any(map(self._forgotten.matches, (statement.text, *decided))):
            raise ForgottenError(
                "the user forgot this, so only the user can state it again. Nothing was stored. "
                "Fix: ask the user."
            )
        done = remember(known, statement, caller, also)
        done = replace(done, lifted=self._lift(statement.text) if by_user else 0)
        self.settle()
        return done

    @property
    def _review(self) -> "Review":
        from perdure.engine.learn.review_queue import Review

        return Review(self._services.nodes, self.caller)

    def propose(
        self, text: str, *, origins: Iterable[str], project: str | None = None
    ) -> "ReviewItem":
        """Submit a statement for the user's decision, because it may quote others.

        `origins` are its sources: web, mcp, pasted. `candidates` lists it; nothing else finds it
        until the user accepts it. A secret in it is refused (`SecretRefusedError`).
        """
        from perdure.safety.secrets import SecretPolicy
        from perdure.safety.validation import make_safe

        clean = make_safe(" ".join(text.split()), {}, SecretPolicy.REFUSE).content
        return self._review.propose(clean, self._project_of(project), tuple(origins))

    def candidates(self, *, limit: int = 20) -> "tuple[ReviewItem, ...]":
        """Return sentences that may be worth remembering and need a decision, the likeliest first.

        In a project, only those of its sessions. Before them come statements with a `reason` to
        remove them: their branch is gone and was never merged.
        """
        offered = self._abandoned()
        return (*offered[:limit], *self._review.pending(limit - len(offered[:limit]), self.project))

    def _abandoned(self) -> "list[ReviewItem]":
        checkout = self._checkout
        if checkout is None or not self.project:
            return []
        from perdure.engine.learn.review_queue import abandoned

        return list(abandoned(checkout, self._scope.learned()))

    def accept(self, candidate: str, *, text: str = "", kind: str = "") -> "RememberResult":
        """Remember a candidate as a statement, by its id; `text` is another wording of it.

        A statement that was offered for removal holds here from now on.
        """
        from perdure.engine.learn.new_statement import Citation, NewStatement

        found = self._review.find(candidate, self._abandoned())
        if found.reason:
            replaced = (found.text,) if text and text != found.text else ()
            return self.remember(
                text or found.text,
                kind=kind or found.kind,
                replaces=replaced,
                project=found.project,
            )
        quote = Citation(found.session_id, found.message, found.text)
        project = self._project_of(found.project or None)
        words, kind = text or found.text, kind or found.kind
        anchors = self._anchors(words)
        statement = NewStatement(words, kind, project, evidence=(quote,), anchors=anchors)
        done = self._remember(statement, found.session_id, found.text)
        if found.uri:
            self._review.withdraw(found.uri)
        return done

    def reject(self, candidate: str) -> "ReviewItem":
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
    ) -> "Judgement":
        """Ask the configured language model which candidates to remember, in one request.

        The accepted ones become statements that rest on the user's sentences. The rest stays in
        review, and is not asked about again. With `before`, only sessions count whose last message
        is older, or which are in `ended`. One process of a home asks at a time: `LockTimeout` if
        another does. `OverBudgetError` if today's runs or tokens are used up.
        """
        from perdure.engine.learn.review_queue import Judgement, judge

        llm = self._services.language_model
        if llm is None:
            raise ConfigError("no language model is configured. Fix: set provider in [llm].")
        with locked(self.home / "llm" / "lease") as lease:
            if lease is None:
                raise LockTimeout("another process asks a model about candidates. Fix: wait.")
            found = self._review.unjudged(self.project, before, frozenset(ended))
            asked = [each for each in found if not self._forgotten.matches(each.text)][:limit]
            if not asked:
                return Judgement()
            done = judge(llm, [self._shown(each) for each in asked], self._remember_judged)
            self._review.note_judged(*(each.text for each in done.refused))
        return replace(done, waiting=len(found) - len(asked))

    def _remember_judged(self, statement: "NewStatement", found: "ReviewItem") -> "RememberResult":
        anchors = self._session_anchors(found.session_id, statement.text)
        project = self._project_of(found.project or None)
        named = replace(statement, project=project, anchors=anchors)
        return self._remember(named, found.session_id, found.text, by_user=False)

    def _session_anchors(self, session: str, text: str) -> "Anchors | None":
        """Return what a statement names in the checkout of its session.

        It has no hashes, because the content of the files at that time is unknown.
        """
        from perdure.model.anchors import SessionOrigin
        from perdure.model.uri import FIRST_NODE

        place = Uri(self.caller.account_id, ("sessions", session, FIRST_NODE))
        node = self._browser.node_or_none(place)
        metadata = {} if node is None else node.metadata
        names = (metadata.get(name) for name in ("cwd", "branch", "commit"))
        origin = SessionOrigin(*(each if isinstance(each, str) else "" for each in names))
        return (
            self._anchoring(origin)(text, datetime.fromtimestamp(0, UTC)) if origin.folder else None
        )

    def _shown(self, found: "ReviewItem") -> "CandidateContext":
        from perdure.engine.learn.review_queue import NEAR, CandidateContext

        place = Uri(self.caller.account_id, ("sessions", found.session_id))
        messages = engine.sessions.Sessions(self._services.nodes).messages(place, self.caller)
        result = self.recall(found.text, top_k=NEAR, project=found.project or None)
        return CandidateContext.of(found, messages, result.hits)

    def unmerge(self, uri: str, statement: str = "") -> "UnmergeReport":
        """Undo the last merge of a node, or the last merge of one of its statements.

        The node is restored to what it was before; what was merged becomes a memory of its own, and
        the two are not merged again. What was superseded holds again.
        """
        unmerging = engine.restore.Unmerger(self._services.nodes, self._services.recorded.history)
        done = unmerging.unmerge(self.read(uri).uri, self.caller, statement)
        self.settle()
        return done

    def settle(self) -> None:
        """Bring the index up to date, if that can be done now.

        What was written is durable in any case. A recall reports how far its index is behind, and
        rebuilds a damaged one.
        """
        with suppress(EmbeddingError, StorageError, DamageError):
            following = self._services.indexes.current(self.caller.account_id).follower
            self._worker_for(following).drain(self.caller.account_id)

    def _worker_for(self, follower: "IndexFollower") -> "Worker":
        from perdure.engine.indexing.index_worker import Worker

        return Worker(self._services.outbox, follower)

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
    ) -> "WriteResult":
        """Write a node verbatim, or its next version.

        An existing node is written only with the `version` that it has, or with `replace`. A field
        that is None does not change; a metadata value of None removes its key. A secret is refused
        (`SecretRefusedError`) unless `mask_secrets` masks it or `as_is` keeps it.
        """
        self._notice_files()
        return engine.node_writes.write(
            self._services.nodes,
            self._browser,
            self.caller,
            uri,
            engine.node_writes.Fields(content, abstract, overview, metadata),
            conditions=engine.node_writes.Conditions(version, replace, mask_secrets, as_is),
            reason=reason,
        )

    def edit(
        self, uri: str, change: Callable[[str], str], *, reason: str = "", as_is: bool = False
    ) -> "WriteResult":
        """Write what `change` returns for the text of a node, frontmatter included.

        If the node changes meanwhile, or the text has a new secret, nothing is written.
        """
        self._notice_files()
        where = self._services.nodes, self._browser, self.caller
        return engine.node_writes.edit(*where, uri, change, reason=reason, as_is=as_is)

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
        self._services.nodes.because(reason).move_node(str(old), str(new), self.caller)
        return browser.node(new)

    def archive(self, uri: str, *, reason: str = "") -> str:
        """Archive a node, so that nothing finds it until `unarchive`. Return its URI."""
        place = self._browser.node_place(uri)
        self._browser.node(place)
        self._services.nodes.because(reason).archive_node(str(place), self.caller)
        return str(place)

    def unarchive(self, uri: str, *, reason: str = "") -> str:
        """Make an archived node active again; return its URI.

        If it was forgotten, it no longer is, and its history is shown again.
        """
        from perdure.engine.hide import plan_lift

        place = self._browser.node_place(uri)
        nodes = self._services.nodes.because(reason)
        lift = partial(plan_lift, nodes=nodes, uris=[str(place)], ctx=self.caller)
        nodes.unarchive_node(str(place), self.caller, also=lift)
        return str(place)

    def delete(self, uri: str, *, reason: str = "") -> str:
        """Remove a node and its edges; history keeps them. Return its URI."""
        found = self.deletable(uri)
        self._services.nodes.because(reason).delete_node(found.uri, self.caller)
        return found.uri

    def deletable(self, uri: str) -> "Entry":
        """Return the entry of a node, readable or not, that the caller may delete."""
        browser = self._browser
        place = browser.node_place(uri)
        self._services.nodes.reach.require_writable(str(place), self.caller)
        if browser.is_empty(place):
            raise browser.absent(place)
        return browser.node_entry(place)

    def relate(
        self, uri: str, to: str, relation_type: str, *, weight: float = 1.0, reason: str = ""
    ) -> "RelationEdge":
        """Relate a node to another; return the edge. An existing relation is not added again."""
        self._find(uri, to)
        where = self._services.relations, self._browser, self.caller
        return engine.node_writes.relate(*where, (uri, to), relation_type, weight, reason)

    def _find(self, *uris: str) -> None:
        places = [self._browser.node_place(uri) for uri in uris]
        if any(self._browser.node_or_none(place) is None for place in places):
            self._notice_files()

    def unrelate(
        self, uri: str, to: str, relation_type: str | None = None
    ) -> "tuple[RelationEdge, ...]":
        """Remove the relations from a node to another, or those of one type; return them."""
        return engine.node_writes.unrelate(
            self._services.relations, self._browser, self.caller, (uri, to), relation_type
        )

    def lint(self, folder: str | None = None) -> "LintReport":
        """Return the problems of notes in a folder, or in the whole account."""
        reader = self._services.reader
        place = (
            None if folder is None else reader.reach.require_visible(self.uri(folder), self.caller)
        )
        return engine.lint.Lint(reader, self.caller).run(place)

    def conflicts(self) -> "tuple[Conflict, ...]":
        """Return the copies that a sync client left when two machines changed one file.

        Only for ROOT, because the files are those of all accounts.
        """
        self._demand_root("see the files of all accounts", "ask the owner of the store")
        return tuple(engine.conflicts.conflicts(self._services.recorded))

    def conflict(self, path: str) -> "Conflict":
        """Return the conflict of a copy, or of a file that has one copy."""
        return engine.conflicts.chosen(self.conflicts(), path)

    def settle_conflict(self, path: str, keep: str) -> "Conflict":
        """Keep `mine`, `theirs` or a `merge` of both in the file, and remove the copy.

        Nothing is lost: the text of the copy is recorded as a version before it is removed.
        """
        from perdure.storage.reconciliation import record_edits

        found, recorded = self.conflict(path), self._services.recorded
        engine.conflicts.settle(recorded, found, keep, lambda: record_edits(recorded))
        return found

    def repair(self, *, apply: bool = False, accept_removals: bool = False) -> "RepairReport":
        """Find what is wrong with nodes and, with `apply`, repair it.

        An edit made by hand becomes the next version; a note in a folder of nodes becomes a node;
        what a crash left unfinished is finished, or removed. If many files are gone at once, that
        is recorded only with `accept_removals`.
        """
        if not apply:
            services, recorded = self._services, self._services.recorded
            log = services.indexes.configured.follower.log
            edits = engine.edits.look_for_edits(recorded.inner, recorded.history, services.seen)
            found = services.repair.examine_changed(self.caller, edits, services.seen, log)
            return engine.repair.RepairReport((), tuple(found))
        self.record_edits(accept_removals=accept_removals)
        may_resume = self.caller.role is Role.ROOT
        ended = self._services.namespaces.resume(self.caller) if may_resume else ()
        return engine.repair.RepairReport(
            tuple(ended), tuple(self._services.repair.run(self.caller))
        )

    def forget(
        self, uri: str, *, erase: bool = False, dry_run: bool = False, reason: str = ""
    ) -> "ForgetReport":
        """Archive a node or all nodes in a folder; or erase them, so that nothing is left.

        A short id of a briefing, or a message, names its statement; a text that is not a name,
        every statement that says the same (`NodeNotFoundError` if there is none). What is archived
        is found by nothing, and `unarchive` restores it. Its words are hidden in the user's present
        and later sessions, and not learned again until the user states them again (`remember`,
        `save`). What is erased is removed from its files, from every state of history and from all
        derived data; a signed receipt lists it. Only ROOT may erase, because all accounts share one
        history. A user or an agent (`ctx://account/users/id`) is erased with their sessions. A
        second call changes nothing. A dry run changes nothing, and returns what would be done. An
        interrupted erasure is finished when this memory is opened again.
        """
        what = self.forget_target(uri)
        if erase and len(what.split()) > 1:
            raise InvalidValueError("words can't be erased. Fix: erase a memory, by its id.")
        if erase:
            eraser = self._services.erasing
            return engine.erase.erase(eraser, what, self.caller, reason, dry_run=dry_run)
        nodes = self._services.nodes
        done = engine.erase.forget(nodes, what, self.caller, reason, dry_run=dry_run)
        if not dry_run:
            self.settle()
        return done

    def forget_target(self, what: str) -> str:
        """Return what `forget` would act on: the URI of a node or message, or the words."""
        if len(what.split()) > 1:
            with suppress(InvalidUriError):
                return self.uri(what)
            return what
        try:
            return self.uri(what)
        except NodeNotFoundError:  # the id of an archived node is in no index
            archived = (each.uri for each in self.list(archived=True))
            if found := next(
                (uri for uri in archived if engine.briefing.short_id(uri, None) == what), ""
            ):
                return found
            raise

    def verify_receipt(self, text: str, key: str | None = None) -> "ReceiptCheck":
        """Verify the receipt of an erasure, and that nothing of it is here.

        `key` is the public key of its signer, by default this user's. `ProofError` if the owner of
        the key did not sign it.
        """
        from perdure.engine.receipt import check_receipt
        from perdure.proofs.signing_keys import PublicKey

        public = (
            self._services.signing_key().public if key is None else PublicKey.parse(key.strip())
        )
        return check_receipt(text, self._services.recorded.history, public)

    # ------------------------------------------------------------ history
    @property
    def log(self) -> "VersionLog":
        """Every version of every text of all accounts, by key; only for ROOT."""
        self._demand_root("read the log of all accounts", "use history, blame and restore")
        return self._services.log(self.caller.user_id)

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
        versions = self._services.recorded.history.versions(self._content_file(uri))
        if not versions:
            raise NodeNotFoundError(f"nothing was ever at {self.uri(uri)!a}. Fix: list its folder.")
        return versions

    def blame(self, uri: str) -> "list[BlamedLine]":
        """Return the lines of the content of a node, each with the version that wrote it."""
        return self._services.recorded.history.blame(self._content_file(uri))

    def _content_file(self, uri: str) -> "Locator":
        place = self._services.reader.reach.require_visible(self.uri(uri), self.caller)
        return self._services.reader.file(place, CONTENT)

    def why(self, uri: str) -> "Provenance":
        """Return where a node comes from: evidence, versions, merges, edges, what it superseded.

        Evidence is looked up each time, and so is the code that a statement names, in the folder
        in which the memory was opened. What the caller may not see is counted or left out.
        """
        from perdure.engine.uses import sessions_unused

        check = None if self._checkout is None else self._checkout.check
        reader = engine.provenance.ProvenanceReader(
            self._services.nodes, self._services.recorded.history, self.caller, check
        )
        node, message = self._node_and_message(uri)
        lines = engine.shown_lines.items_of(node) if message is None else ()
        unused = sessions_unused(self.home, lines)
        return replace(reader.read(node, message), unused_sessions=unused)

    def restore(self, uri: str, version: "CID | When") -> ContextNode:
        """Restore a node to its state at a time, or to the version with a CID; return it.

        The restored text becomes its next version, and nothing is lost; a deleted node is created
        again. If the node is the same already, nothing changes. The caller must have been allowed
        to see it then, and be allowed to see and change it now. `NodeNotFoundError` if there was
        none.
        """
        self.record_edits()
        place = str(self._browser.node_place(uri))
        node = self._restoring.planned(place, self._past_states.state, version)
        if node is not None:
            self._services.nodes.because(origin=RESTORE).write_node(node, self.caller)
            self._unforget([place])
            self.settle()
        return self.read(place)

    def rewind(self, when: "When", folder: str = "", *, dry_run: bool = False) -> "RewindReport":
        """Restore all memories in a folder to their state at a time; return the changes.

        Without a folder, all memories of the caller. In one commit, changed memories get their old
        text, deleted ones are created again, and new ones are removed; history keeps everything,
        so a rewind can be rewound. Sessions do not change. A dry run changes nothing.
        """
        self.record_edits()
        own = Uri(self.caller.account_id, ("users", self.caller.user_id))
        reach = self._services.nodes.reach
        below = reach.require_visible(self.uri(folder), self.caller) if folder else own
        done = self._restoring.rewind(self._past_states.state(when), below, dry_run=dry_run)
        self.settle()
        return done

    @property
    def _restoring(self) -> "Restorer":
        return engine.restore.Restorer(
            self._services.nodes, self._services.recorded.history, self.caller
        )

    def _unforget(self, uris: Iterable[str]) -> None:
        """Remove nodes that are active again from the list of forgotten things."""
        if self._has_forgotten:
            from perdure.engine.hide import plan_lift

            nodes = self._services.nodes.because("restored")
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

        With `everything`, which only ROOT may use, write all accounts.

        The folder gets Markdown files for people, and one archive that `perdure import` reads on
        another machine. The folder must be empty, or an earlier export; then only changes are
        written. An interrupted export can be repeated.
        """
        from perdure.transfer.export import ExportScope, export_to

        recorded, seen = self._services.recorded, self._services.seen
        if everything:
            self._demand_root("export all accounts", "export without everything=True")
            return export_to(Path(folder), recorded, None, seen, progress)
        scope = ExportScope.of(self.caller, recorded.history, self._services.nodes)
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
        """Import the memories of another program; items that exist already are skipped.

        The format is detected unless it is given. Documents go `into` a folder of resources, and
        `archive_gone` archives those whose files are gone. `of` imports only one user's memories.
        `learn` learns from conversations. Items with a secret are refused unless `mask_secrets`. A
        dry run writes nothing, and returns what would be done. What is private in a session is left
        out; from a folder, so are sessions that `[agents]` in the config excludes.
        """
        from perdure.transfer.imports import Importer, ImportOptions

        self._notice_files()  # so that notes in place are known
        agents = self._services.agents
        options = ImportOptions(dry_run, into, of, archive_gone, learn, mask_secrets, agents)
        importer = Importer(self, self._services.nodes, self._services.relations, options)
        done = importer.import_path(Path(path), format, progress)
        if not dry_run:  # so that the next recall need not check each of the new files
            engine.edits.notice_edits(self._services, seconds=None)
        return done

    # ------------------------------------------------------------ upkeep
    @property
    def home(self) -> Path:
        """The folder of the config, the history and all derived data."""
        return self._services.home

    def lag(self) -> "Lag":
        """Return the changes that the index failed to take in and the caller may see."""
        return engine.present.lag_of(
            self._services.outbox.list_failed(self.caller.account_id), self.caller
        )

    def status(self, *, exact: bool = False) -> "tuple[StatusSection, ...]":
        """Return what is stored where, and whether it is healthy. Changes nothing.

        With `exact`, every file on the disk is counted, however many there are.
        """
        return self._services.status(self.caller, exact=exact)

    def doctor(self) -> "Checkup":
        """Return whether the memory is healthy, and how to fix what is not. Changes nothing."""
        return self._services.doctor(self.caller)

    def cost(self, by: str = "day", *, since: datetime | None = None) -> "tuple[Cost, ...]":
        """Return how many tokens language models have used, by `day` or `model`.

        The figures are those of all accounts of this home, for a caller who governs one.
        """
        self.caller.demand_governing("see what language models cost")
        from perdure.llm.ledger import costs

        return costs(self.home, by, since)

    @property
    def index(self) -> "IndexUpkeep":
        """The index of the account; `AccessDeniedError` unless the caller governs it."""
        return engine.upkeep.IndexUpkeep(self._services, self.caller, self.settle)

    @property
    def outbox(self) -> "OutboxUpkeep":
        """The events that the index does not have yet; `AccessDeniedError` as for `index`."""
        return engine.upkeep.OutboxUpkeep(self._services, self.caller)

    def work(
        self,
        *,
        once: bool = True,
        ending: threading.Event | None = None,
        report: "Callable[[WorkReport], None] | None" = None,
    ) -> "WorkResult":
        """Bring the indexes of all accounts up to date, and build that of a new model.

        It returns when nothing is left or, if not `once`, when `ending` is set, after the current
        step. `report` is called with each event meanwhile.
        """
        from perdure.engine.indexing.index_worker import work

        return work(self._services, self.caller, ending or threading.Event(), report, once=once)

    def watch(self, ending: threading.Event) -> "Iterator[WatchReport]":
        """Record edits of files as soon as they are saved, until `ending` is set.

        In every account, an edit becomes a version, and a new note becomes a node.
        """
        return engine.file_watch.watch(self._services, self.caller, ending, self.record_edits)

    # ------------------------------------------------------------ accounts, users, agents
    @property
    def tenants(self) -> "Tenants":
        """The accounts, users and agents that the caller may create, list and delete."""
        return engine.namespaces.Tenants(lambda: self._services.namespaces, self.caller)


class PastMemory(ReadableMemory):
    """A memory as of a past state, which can be read and searched, but not changed."""

    def __init__(
        self,
        past: "PastState",
        caller: RequestContext,
        moment: str = "",
        project: ProjectIdentity | str = "",
        forgotten: "ForgottenList | None" = None,
    ) -> None:
        super().__init__(caller)
        self._past = past
        self._moment = moment
        self._forgotten = forgotten
        self._identity = ProjectIdentity(project) if isinstance(project, str) else project
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
        """Return the memories that answered a question at the state; else as `Memory.recall`."""
        limits = top_k, budget_tokens
        question = self._question(query, limits, valid_at, filters, project, projects)
        return self._past.recall(question, self.caller)

    def briefing(
        self, *, budget_tokens: int = 294, known: "str | Sequence[InstructionFile]" = ""
    ) -> "Briefing":
        """Return what an agent that started a session at the state should have known.

        What was forgotten since is left out; what was shown and never used is not.
        """

        def ask(reader: "NodeReader", index: "NodeIndex", now: datetime) -> "Briefing":
            names, hidden = self._names(self.project), self._forgotten
            scope = engine.briefing.ProjectScope(reader, index, self.caller, names)
            return scope.briefing(
                known=known,
                budget_tokens=budget_tokens,
                now=now,
                leaves_out=lambda item: hidden is not None and hidden.matches(item.text),
            )

        return self._past.ask(self.caller.account_id, ask)
