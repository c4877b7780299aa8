"""Which project each repository and folder belongs to, where their identity alone does not say.

The table is one text of each user, `.projects`, as JSON:

    {"projects": {"old-name": "new-name", "mono/packages/api": "api"},
     "remotes": {"git-0123456789ab": "ana-api"}}

`projects` leads from an identity, or a folder within one, to a project. `remotes` has the
repositories that were known before they had a remote, each with the one that it got; empty if it
has none yet.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from perdure.errors import ProjectError
from perdure.model.uri import check_slug

FILE = ".projects"
_FIX = "Fix: correct it, or restore an earlier version with `perdure history`."


class Identity(NamedTuple):
    """What tells one project from all others, by the disk alone."""

    slug: str
    """Empty for a folder of no project."""
    within: str = ""
    """The folder in it that is meant, from the top of its checkout; empty for the top."""
    root: Callable[[], str] = str
    """Returns the identity that the repository has without its remote; empty if none."""

    @property
    def is_repository(self) -> bool:
        return bool(self.slug) and self.root is not str


@dataclass(frozen=True, slots=True)
class Aliases:
    projects: Mapping[str, str] = field(default_factory=dict)
    remotes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, where: str = FILE) -> "Aliases":
        """Read what `text` gives; `ProjectError` if it is something else, or leads in a circle."""
        try:
            told = json.loads(text) if text.strip() else {}
            found = cls(*(_names(told.get(each, {}), each) for each in ("projects", "remotes")))
            for name in found.projects:
                found.project(name)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise ProjectError(
                f"{where!a} names no projects: {str(error)[:200]}. {_FIX}"
            ) from error
        return found

    def text(self) -> str:
        told = {"projects": dict(self.projects), "remotes": dict(self.remotes)}
        return json.dumps(told, indent=1, sort_keys=True, ensure_ascii=False) + "\n"

    def project(self, identity: Identity | str) -> str:
        """Return the project of an identity, or of a project's former name; "" for none."""
        if isinstance(identity, str):
            identity = Identity(identity)
        if not identity.slug:
            return ""
        folder = identity.within
        while folder:
            if (key := f"{identity.slug}/{folder}") in self.projects:
                return self._followed(key)
            folder = folder.rpartition("/")[0]
        return self._followed(self.adopted(identity) or identity.slug)

    def adopted(self, identity: Identity) -> str:
        """Return the identity of a repository before it had its remote, if it was known by that."""
        if identity.slug in self.projects or "" not in self.remotes.values():
            return ""
        root = identity.root()
        return root if root and self.remotes.get(root) == "" else ""

    def _followed(self, name: str) -> str:
        seen = {name}
        while (name := self.projects.get(name, name)) not in seen:
            seen.add(name)
        if self.projects.get(name, name) != name:
            raise ProjectError(f"{FILE!a} leads from {name!a} in a circle. {_FIX}")
        return name

    def names(self, project: str) -> tuple[str, ...]:
        """Return what else belongs to a project: former names, and identities."""
        led = (name for name in self.projects if name != project)
        return tuple(sorted(name for name in led if self.project(name) == project))

    def with_project(self, name: str, project: str | None) -> "Aliases":
        """Return the table in which a name leads to a project; None, to itself."""
        rest = {key: value for key, value in self.projects.items() if key != name}
        return replace(self, projects=rest if project is None else {**rest, name: project})

    def noted(self, identity: Identity) -> "Aliases":
        """Return the table that knows an identity, so that a remote it gets later is the same.

        A repository whose remote is known needs no line until there is one that had none.
        """
        slug = identity.slug
        if slug.startswith("git-") and slug == identity.root():
            return replace(self, remotes={slug: "", **self.remotes})
        known = slug in self.projects or "" not in self.remotes.values()
        if known or not identity.is_repository:
            return self
        before = self.adopted(identity)
        remotes = {**self.remotes, before: slug} if before else self.remotes
        return replace(self.with_project(slug, before or slug), remotes=remotes)


def _names(told: object, which: str) -> dict[str, str]:
    if not isinstance(told, dict):
        raise TypeError(f"{which} is not an object")
    for name, value in told.items():
        check_slug(name.partition("/")[0], "the name of a project")
        if value or which == "projects":
            check_slug(value, "the name of a project")
    return told
