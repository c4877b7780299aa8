"""List, name, merge, split and move projects.

Each verb is one commit of the table of projects and of every node that changes its project. A node
has the names of the projects that it was merged from, so that a merge can be undone.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from perdure.context.node_files import read_aliases, read_text, user_file
from perdure.context.nodes import NodeDraft, Nodes
from perdure.context.reader import NodeReader, StoredNode
from perdure.dataclass import dataclass, replace
from perdure.engine.learn.evidence import support_of
from perdure.errors import AccessDeniedError, BrokenNodeError, InvalidValueError, ProjectError
from perdure.model import ContextNode, NodeStatus, RequestContext, Uri
from perdure.model.node import PROJECT
from perdure.model.project_aliases import BORN, ProjectAliases, ProjectIdentity
from perdure.model.uri import check_slug
from perdure.model.values import JSON

FORMER = "former_projects"
"""Metadata: the projects that a node was merged from, in order."""
_FIRST = "messages"


@dataclass(frozen=True, slots=True)
class ProjectInfo:
    name: str
    identities: tuple[str, ...]
    """Former names, and the repositories and folders that belong to it."""
    sessions: int
    memories: int
    last: datetime | None
    """The time of its last message; None without a session."""


@dataclass(frozen=True, slots=True)
class ReassignmentReport:
    project: str
    sessions: int
    memories: int
    stayed: tuple[str, ...] = ()
    """Memories that stay, because they have evidence in other sessions too."""


Choice = Callable[[ContextNode], Mapping[str, JSON] | None]
"""Returns the new metadata of a node; None if it does not change."""


class Projects:
    def __init__(
        self,
        reader: NodeReader,
        nodes: Callable[[], Nodes],
        caller: RequestContext,
        identify: Callable[[str], ProjectIdentity],
        settle: Callable[[], None],
    ) -> None:
        self._reader = reader
        self._nodes = nodes
        self._caller = caller
        self._identify = identify
        self._settle = settle

    def list(self) -> tuple[ProjectInfo, ...]:
        """Return all projects, those with the newest sessions first."""
        aliases, found = self.aliases(), defaultdict[str, list[ContextNode]](list)
        for stored in self._stored():
            if stored.node.status is NodeStatus.ACTIVE and stored.node.project:
                found[stored.node.project].append(replace(stored.node, content=""))
        listed = (_info(name, aliases.names(name, BORN), found[name]) for name in sorted(found))
        return tuple(sorted(listed, key=lambda each: -each.last.timestamp() if each.last else 0))

    def at(self, folder: str | ProjectIdentity) -> str:
        """Return the project of a folder or an identity; "" for none."""
        identity = self._identify(folder) if isinstance(folder, str) else folder
        return self.aliases().project(identity)

    def enter(self, folder: str) -> str:
        """As `at`, for a write: note the identity, so that a later remote changes nothing."""
        identity = self._identify(folder)
        self.note(identity)
        return self.aliases().project(identity)

    def note(self, identity: ProjectIdentity) -> None:
        """Note an identity, if its project can't be found by the identity alone."""
        if (known := self.aliases()).noted(identity) != known:
            used = identity.has_remote and self._is_used(identity.slug)
            self._change(lambda aliases: aliases.noted(identity, is_used=used))

    # ------------------------------------------------------------ the verbs
    def rename(self, project: str, name: str) -> ReassignmentReport:
        """Rename a project; the old name stays an alias. `ProjectError` if the name is taken."""
        old, new = self._known(project), check_slug(name, "the name of a project")

        def change(aliases: ProjectAliases) -> ProjectAliases:
            leads_to = aliases.project(new)
            if leads_to not in {new, old} or (leads_to == new and self._is_used(new)):
                raise ProjectError(
                    f"{new!a} is another project. Nothing was changed. "
                    f"Fix: choose another name, or run `perdure projects merge {old} {new}`."
                )
            return aliases.with_project(new, None).with_project(old, new)

        return self._change(change, _of(old, lambda _: {PROJECT: new}), new)

    def merge(self, project: str, into: str) -> ReassignmentReport:
        """Merge a project into another, or into that of a folder. `split` undoes it."""
        old = self._known(project)
        is_folder = (os.sep in into or into.startswith(".")) and os.path.isdir(into)  # noqa: PTH112
        new = self.enter(into) if is_folder and self._identity(into) else self._known(into)
        if old == new:
            raise ProjectError(f"{project!a} is {new!a} already. Fix: name two projects.")
        return self._merge(old, new)

    def _merge(self, old: str, new: str) -> ReassignmentReport:
        def merged(node: ContextNode) -> Mapping[str, JSON]:
            return {PROJECT: new, FORMER: [*former(node), old]}

        return self._change(lambda aliases: aliases.with_project(old, new), _of(old, merged), new)

    def move(self, project: str, folder: str) -> ReassignmentReport:
        """Assign a moved or renamed folder to a project, with the memories of the folder."""
        project, identity = self._known(project), self._identity(folder)
        if identity.within:
            raise ProjectError(
                f"{folder!a} is a part of a repository. Nothing was changed. Fix: name the top of "
                "it, or take a part out with `perdure projects split --folder`."
            )
        here = self.aliases().project(identity)
        return ReassignmentReport(project, 0, 0) if here == project else self._merge(here, project)

    def split(
        self, project: str, into: str, *, sessions: Iterable[str] = (), folder: str = ""
    ) -> ReassignmentReport:
        """Split a project: without options, undo the merge of `into`.

        With `sessions`, move these, and the memories whose evidence is only in them; with `folder`,
        the sessions that worked in it, and all later ones.
        """
        old, new = self._known(project), check_slug(into, "the name of a project")
        chosen = frozenset(sessions)
        if folder or chosen:
            return self._split_off(old, new, chosen, folder)
        if new not in self.aliases().names(old):
            raise ProjectError(
                f"{new!a} was not merged into {old!a}. Nothing was changed. "
                "Fix: name the part, by its sessions or its folder."
            )

        def unmerged(node: ContextNode) -> Mapping[str, JSON] | None:
            before = former(node)
            if new not in before:
                return None
            rest = list(before[: before.index(new)])
            return {PROJECT: new, FORMER: rest or None}

        return self._change(
            lambda aliases: aliases.with_project(new, None), _of(old, unmerged), new
        )

    def _split_off(
        self, old: str, new: str, sessions: frozenset[str], folder: str
    ) -> ReassignmentReport:
        if self.aliases().project(new) == old:
            raise ProjectError(
                f"{new!a} is {old!a}. Nothing was changed. Fix: choose another name."
            )
        identity = self._identity(folder) if folder else None
        if identity and (_key(identity) == old or self.aliases().project(identity) != old):
            raise ProjectError(
                f"{folder!a} is not a part of {old!a}, or all of it. Nothing was changed. "
                "Fix: name a folder in it, or sessions; `perdure projects name` renames all of it."
            )
        place, known = os.path.realpath(folder), dict(self._folders(old))
        if unknown := sorted(sessions - known.keys()):
            raise InvalidValueError(
                f"no session {unknown[0][:80]!a} is in {old!a}. Nothing was changed. "
                "Fix: `perdure list sessions` names them."
            )
        chosen = sessions | {
            each for each, cwd in known.items() if identity and self._is_in(cwd, identity, place)
        }
        stayed: list[str] = []

        def change(aliases: ProjectAliases) -> ProjectAliases:
            stayed.clear()
            if identity is None:
                return aliases
            return aliases.with_project(_key(identity), None if _key(identity) == new else new)

        def split(node: ContextNode) -> Mapping[str, JSON] | None:
            if node.place.session:
                return {PROJECT: new} if node.place.session in chosen else None
            rests_on = {
                each.session for found in support_of(node).values() for each in found.mentions
            }
            if rests_on & chosen and not rests_on <= chosen:
                stayed.append(node.uri)
            return {PROJECT: new} if rests_on and rests_on <= chosen else None

        done = self._change(change, _of(old, split), new)
        return replace(done, stayed=tuple(stayed))

    def _is_in(self, cwd: str, identity: ProjectIdentity, place: str) -> bool:
        """Return whether a session worked in a folder, or in that folder of another checkout."""
        if not cwd:
            return False
        there = self._identify(cwd)
        same = there.slug == identity.slug and _is_below(there.within, identity.within)
        return same or _is_below(os.path.realpath(cwd), place)

    # ------------------------------------------------------------ the table and the nodes
    def aliases(self) -> ProjectAliases:
        who = self._caller.account_id, self._caller.user_id
        return read_aliases(self._reader.backend, *who)

    def _known(self, project: str) -> str:
        """Return the name of a project, given a present or former one; else `ProjectError`."""
        name = self.aliases().project(check_slug(project, "the name of a project"))
        if not (self.aliases().names(name) or self._is_used(name)):
            raise ProjectError(
                f"there is no project {project!a}. Fix: `perdure projects` lists them."
            )
        return name

    def _is_used(self, project: str) -> bool:
        return any(stored.node.project == project for stored in self._stored())

    def _identity(self, folder: str) -> ProjectIdentity:
        identity = self._identify(folder)
        if not identity.slug:
            raise ProjectError(
                f"{folder!a} does not belong to a project. Fix: name a folder that is neither your "
                "home nor in the temporary folder."
            )
        return identity

    def _folders(self, project: str) -> Iterator[tuple[str, str]]:
        for stored in self._stored():
            node = stored.node
            if node.project == project and node.place.session and node.place.name == _FIRST:
                yield node.place.session, str(node.metadata.get("cwd") or "")

    def _change(
        self,
        change: Callable[[ProjectAliases], ProjectAliases],
        choose: Choice = lambda _: None,
        project: str = "",
    ) -> ReassignmentReport:
        """Write the table, and the nodes whose metadata change, in one commit."""
        nodes = self._nodes()
        file = user_file(self._caller.account_id, self._caller.user_id)
        moved: list[Uri] = []

        def plan(draft: NodeDraft) -> None:
            moved.clear()
            found = read_text(file, nodes.backend.read)
            aliases = ProjectAliases.parse(found if isinstance(found, str) else "", file.key)
            after = change(aliases)
            for stored in self._stored(nodes):
                metadata = choose(stored.node)
                if metadata is not None:
                    with suppress(AccessDeniedError):  # nodes of others stay
                        moved.append(nodes.reach.require_writable(stored.node.uri, self._caller))
                        node = replace(
                            stored.node, metadata=metadata, version=stored.meta.version + 1
                        )
                        draft.write(node, stored, status=stored.meta.status, dated=False)
            if after != aliases:
                draft.put(file, after.text(), found)

        nodes.because("projects").change(plan, self._caller)
        self._settle()
        sessions = {place.session for place in moved if place.session}
        return ReassignmentReport(project, len(sessions), sum(not place.session for place in moved))

    def _stored(self, reader: NodeReader | None = None) -> Iterator[StoredNode]:
        reader = reader or self._reader
        for place in reader.walk(Uri(self._caller.account_id)):
            if place.is_node and reader.reach.may_see(place, self._caller):
                with suppress(BrokenNodeError):  # it can't be written either; `repair` reports it
                    yield from filter(None, [reader.load(place)])


def former(node: ContextNode) -> tuple[str, ...]:
    names = node.metadata.get(FORMER)
    return tuple(map(str, names)) if isinstance(names, list | tuple) else ()


def _key(identity: ProjectIdentity) -> str:
    return f"{identity.slug}/{identity.within}".rstrip("/")


def _of(project: str, choose: Choice) -> Choice:
    return lambda node: choose(node) if node.project == project else None


def _is_below(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _info(name: str, identities: tuple[str, ...], nodes: Sequence[ContextNode]) -> ProjectInfo:
    last = max((node.updated_at for node in nodes if node.place.session), default=None)
    sessions = {node.place.session for node in nodes} - {""}
    memories = sum(not node.place.session for node in nodes)
    return ProjectInfo(name, identities, len(sessions), memories, last)
