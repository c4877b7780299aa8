"""The table of projects of repositories and folders whose identity alone does not determine it.

The table is one text of each user, `.projects`, as JSON:

    {"projects": {"old-name": "new-name", "mono/packages/api": "api"},
     "remotes": {"git-0123456789ab": "ana-api"}}

`projects` maps an identity, or a folder in one, to a project; `remotes` maps a root commit or a
birth (`git-new-01234567`) to the identity that took it over, empty if none did yet.
"""

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from perdure.dataclass import dataclass, field, replace
from perdure.errors import ProjectError
from perdure.model.uri import check_slug

FILE = ".projects"
BORN = "git-new-"  # the prefix of the identity of a folder or repository by its birth
_FIX = "Fix: correct it, or restore an earlier version with `perdure history`."


class ProjectIdentity(NamedTuple):
    """What identifies a project, by the disk alone."""

    slug: str
    """Empty for a folder of no project."""
    within: str = ""
    """The folder in the checkout, from its top; empty for the top."""
    root: Callable[[], str] = str
    """Returns the identity of the repository by its root commit; empty if it has none."""
    births: Callable[[], tuple[str, ...]] = tuple
    """Returns the identities by birth: of the repository, then of its folder; none if unknown."""
    is_own: Callable[[], bool] = bool  # it has no commits, or its root commit was created here
    has_remote: bool = False
    folder: str = ""
    """The folder itself; empty for a project that is given by its name."""

    @property
    def is_on_disk(self) -> bool:
        return bool(self.slug) and self.births is not tuple


@dataclass(frozen=True, slots=True)
class ProjectAliases:
    projects: Mapping[str, str] = field(default_factory=dict)
    remotes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, where: str = FILE) -> "ProjectAliases":
        """Parse what `text` returns; `ProjectError` if it is invalid, or has a cycle."""
        try:
            fields = json.loads(text) if text.strip() else {}
            found = cls(*(_names(fields.get(each, {}), each) for each in ("projects", "remotes")))
            for name in found.projects:
                found.project(name)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise ProjectError(
                f"{where!a} is not a table of projects: {str(error)[:200]}. {_FIX}"
            ) from error
        return found

    def united(self, other: "ProjectAliases") -> "ProjectAliases":
        """Return the union of two tables; where they differ, the greater name on every machine."""
        both = (self.projects, other.projects), (self.remotes, other.remotes)
        return ProjectAliases(
            *({k: max(a.get(k, ""), b.get(k, "")) for k in {**a, **b}} for a, b in both)
        )

    def text(self) -> str:
        fields = {"projects": dict(self.projects), "remotes": dict(self.remotes)}
        return json.dumps(fields, indent=1, sort_keys=True, ensure_ascii=False) + "\n"

    def project(self, identity: ProjectIdentity | str) -> str:
        """Return the project of an identity, or of a project's former name; "" for none."""
        if isinstance(identity, str):
            identity = ProjectIdentity(identity)
        if not identity.slug:
            return ""
        folder = identity.within
        while folder:
            if (key := f"{identity.slug}/{folder}") in self.projects:
                return self._followed(key)
            folder = folder.rpartition("/")[0]
        return self._followed(self.adopted(identity) or identity.slug)

    def adopted(self, identity: ProjectIdentity) -> str:
        """Return the former identity of a repository, if no other took it over; "" if not."""
        if identity.is_on_disk and identity.root is str:  # a folder, where a repository was?
            taken = {each for each in self._births(identity.slug) if self.remotes[each]}
            return next((each for each in identity.births() if taken and each not in taken), "")
        waiting = {name for name, by in self.remotes.items() if not by}
        if identity.slug in self.projects or not waiting:
            return ""
        birth = next((each for each in identity.births() if each in waiting), "")
        if birth and identity.is_own():
            return birth
        return root if self._awaits_roots() and (root := identity.root()) in waiting else ""

    def _births(self, slug: str) -> set[str]:
        led, born = self.projects.get, (each for each in self.remotes if BORN in each)
        return {each for each in born if led(each) == slug or led(slug) == each}

    def _awaits_roots(self) -> bool:
        return any(not by and BORN not in name for name, by in self.remotes.items())

    def _followed(self, name: str) -> str:
        seen = {name}
        while (name := self.projects.get(name, name)) not in seen:
            seen.add(name)
        if self.projects.get(name, name) != name:
            raise ProjectError(f"{FILE!a} has a cycle at {name!a}. {_FIX}")
        return name

    def names(self, project: str, without: str = "/") -> tuple[str, ...]:
        """Return the former names and the identities of a project."""
        led = (name for name in self.projects if name != project and not name.startswith(without))
        return tuple(sorted(name for name in led if self.project(name) == project))

    def with_project(self, name: str, project: str | None) -> "ProjectAliases":
        """Return the table that maps a name to a project; None removes the name."""
        rest = {key: value for key, value in self.projects.items() if key != name}
        return replace(self, projects=rest if project is None else {**rest, name: project})

    def noted(self, identity: ProjectIdentity, *, is_used: bool = False) -> "ProjectAliases":
        """Return the table with an identity that a first commit or remote will not change."""
        slug, before = identity.slug, self.adopted(identity)
        projects, remotes = dict(self.projects), dict(self.remotes)
        if identity.has_remote:
            # A known remote needs no line until there is a repository that had none.
            if before or (slug not in projects and self._awaits_roots()):
                projects[slug] = slug if is_used else before or slug
                root = identity.root()
                took = {before, root, *identity.births()[:1], *self._births(root)}
                remotes |= {each: slug for each in took if remotes.get(each) == ""}
            return ProjectAliases(projects, remotes)
        for birth in identity.births()[:1] if identity.is_on_disk else ():
            if birth not in remotes and (before or not self._births(slug)):
                projects[birth], remotes[birth] = before or slug, ""
                remotes |= dict.fromkeys({before}.intersection(identity.births()[1:]), birth)
        if slug and slug == identity.root() and slug not in remotes:
            remotes[slug] = ""
            projects |= {slug: before} if before else {}
        return ProjectAliases(projects, remotes)


def _names(table: object, which: str) -> dict[str, str]:
    if not isinstance(table, dict):
        raise TypeError(f"{which} is not an object")
    for name, value in table.items():
        check_slug(name.partition("/")[0], "the name of a project")
        if value or which == "projects":
            check_slug(value, "the name of a project")
    return table
