"""`write`."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

import click

from perdure.engine.validate.owned import Owned
from perdure.errors import NodeExistsError, VersionMismatchError
from perdure.model import ContextNode, Uri
from perdure.model.values import JSON
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.nodes.checking import as_json as as_json_of
from perdure.surfaces.nodes.checking import mention_masked, owned_by, with_secrets
from perdure.surfaces.nodes.completing import node_names
from perdure.surfaces.nodes.describing import gist, time, version_line
from perdure.surfaces.nodes.given import STDIN, TakesText, piped, with_meta
from perdure.surfaces.nodes.opening import NAMES, Memory, with_memory
from perdure.surfaces.telling import cut_to, mention, shown, tell_json, tell_line

_ATTEMPTS = 20
_GIST = 60


class Options(TypedDict):
    text: str | None
    abstract: str | None
    overview: str | None
    meta: tuple[tuple[str, JSON], ...]
    reason: str
    version: int | None
    replace: bool
    mask_secrets: bool
    as_is: bool


@dataclass(frozen=True, slots=True)
class Said:
    """What is to be in a node; None stays as it is."""

    content: str | None
    abstract: str | None
    overview: str | None
    metadata: Mapping[str, JSON]

    def new(self, place: Uri) -> ContextNode:
        nothing = ContextNode(uri=str(place))
        return nothing.revised(version=1, metadata=self.metadata, **self._texts())

    def revising(self, node: ContextNode) -> ContextNode | None:
        """Return the next version of a node; None if it says all of this already."""
        revised = node.revised(metadata={**node.metadata, **self.metadata}, **self._texts())
        kept = {name: value for name, value in revised.metadata.items() if value is not None}
        same = all(getattr(revised, name) == getattr(node, name) for name in self._texts())
        return None if same and kept == node.metadata else revised

    def cut_in(self, node: ContextNode) -> list[str]:
        """Return the texts that were too long, and are not all there."""
        return [name for name, text in self._texts().items() if getattr(node, name) != text]

    def without_secrets(self, owned: Owned) -> "Said":
        """Return the same as it may be written; `SecretRefusedError` if it may not."""
        texts = {name: owned.text(text, name) for name, text in self._texts().items()}
        return replace(self, **texts, metadata=owned.metadata(self.metadata))

    def _texts(self) -> dict[str, str]:
        texts = (("content", self.content), ("abstract", self.abstract))
        every = (*texts, ("overview", self.overview))
        return {name: text for name, text in every if text is not None}


@click.command("write", cls=TakesText, epilog=NAMES)
@click.argument("node", shell_complete=node_names)
@click.argument("text", required=False)
@click.option("--abstract", metavar="TEXT", help="What it says in one sentence.")
@click.option("--overview", metavar="TEXT", help="What it says in some more.")
@with_meta
@click.option("--reason", metavar="TEXT", default="", help="Why; it stands in the history.")
@click.option(
    "--version", type=click.IntRange(min=1), metavar="N", help="Follow this version, and no other."
)
@click.option("--replace", is_flag=True, help="Follow whatever version is there.")
@with_secrets
@as_json(ONE_OBJECT)
@with_memory
def write_command(memory: Memory, node: str, *, as_json: bool, **options: Unpack[Options]) -> None:
    """Write a node, or the next version of one.

    TEXT is the content, in Markdown; if it is - or left out, it is read from stdin. A node that is
    there already is written only with --version or --replace. What no option names stays as it
    is, and what says all of it already is not written again. A secret in it is refused, unless it
    may be masked, or you want it kept.
    """
    if options["version"] is not None and options["replace"]:
        raise click.UsageError("--version and --replace contradict each other. Fix: give one.")
    place = memory.node_place(node)
    owned = owned_by(mask_secrets=options["mask_secrets"], as_is=options["as_is"])
    said = _said(options)
    if owned is not None:
        owned.name(node, "name of the node")
        options["reason"] = owned.text(options["reason"], "reason")
        said = said.without_secrets(owned)
    before, after = _write(memory, place, said, options)
    now = before if after is None else after
    assert now is not None  # noqa: S101 - either it was there, or it was written
    if as_json:
        written = after is not None
        told = {"uri": now.uri, "version": now.version}
        masked = as_json_of([] if owned is None else owned.notes)
        created = written and before is None
        tell_json({**told, "written": written, "created": created, "masked": masked})
    else:
        tell_line(version_line(now.uri, now.version))
    if after is None:
        mention("it says that already; nothing was written")
    mention_masked([] if owned is None else owned.notes)
    for name in said.cut_in(now):
        mention(f"the {name} was too long; what is written ends in [cut]")


def _said(options: Options) -> Said:
    text = options["text"]
    others = options["abstract"], options["overview"], dict(options["meta"])
    if text is not None and text != STDIN:
        return Said(text, *others)
    typed = "" if text is None and sys.stdin.isatty() else piped()
    if typed:
        return Said(typed, *others)
    if text is None and any(each or each == "" for each in others):
        return Said(None, *others)
    raise click.UsageError(
        'there is no text. Fix: give it behind the name, or pipe it in; "" is an empty one.'
    )


# ---------------------------------------------------------------- writing
def _write(
    memory: Memory, place: Uri, said: Said, options: Options
) -> tuple[ContextNode | None, ContextNode | None]:
    """Return what was there, and what was written; None if nothing was."""
    nodes = memory.context.nodes.because(options["reason"])
    attempts = _ATTEMPTS
    while True:
        before = memory.known(place)
        after = said.new(place) if before is None else said.revising(before)
        if after is None:
            return before, None
        _refuse_unless_told(memory, place, before, options)
        try:
            nodes.write_node(after, memory.request)
        except (NodeExistsError, VersionMismatchError):  # somebody was faster, or it is archived
            attempts -= 1
            if not attempts or not nodes.exists(str(place), memory.request):
                raise
        else:
            return before, after


def _refuse_unless_told(
    memory: Memory, place: Uri, before: ContextNode | None, options: Options
) -> None:
    version = options["version"]
    if before is None:
        if version is not None:
            raise VersionMismatchError(
                f"{str(place)!a} has no version {version}: no node is there. Nothing was written. "
                "Fix: leave --version out."
            )
        return
    if options["replace"]:
        return
    refuse_broken(before, "--replace writes it all the same")
    if version == before.version:
        return
    there = f"version {before.version} of {time(before.updated_at)}"
    says = f"{there}, which says {cut_to(_GIST, gist(before))!a}"
    name = memory.name(place)
    if version is None:
        raise NodeExistsError(
            f"{before.uri!a} is there already: {says}. Nothing was written. Fix: add --version "
            f"{before.version} to write the next one, or --replace to do so whatever is there."
        )
    raise VersionMismatchError(
        f"{before.uri!a} is not at version {version} but at {says}. Nothing was written. "
        f"Fix: `perdure read {name}`, then give --version {before.version}."
    )


def refuse_broken(node: ContextNode, otherwise: str) -> None:
    """Refuse to write over what somebody wrote by hand and nobody can read."""
    for problem in node.problems:
        raise VersionMismatchError(
            f"{node.uri!a} was edited by hand and can't be read as it is: {shown(problem)} "
            f"Nothing was written; {otherwise}."
        )
