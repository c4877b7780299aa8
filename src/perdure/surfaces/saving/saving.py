"""`save`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypedDict, Unpack

import click

from perdure.context.files import META
from perdure.engine.validate.secrets import SecretPolicy
from perdure.engine.validate.texts import Note
from perdure.engine.validate.validating import safe
from perdure.errors import NodeExistsError, SecretRefusedError
from perdure.model import ContextNode, Uri
from perdure.model.values import JSON
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.nodes.checking import as_json as masked_json
from perdure.surfaces.nodes.checking import mention_masked
from perdure.surfaces.nodes.describing import version_line
from perdure.surfaces.nodes.given import STDIN, TakesText, piped, with_meta
from perdure.surfaces.nodes.opening import Memory, with_memory
from perdure.surfaces.telling import mention, tell_json, tell_line

_CATEGORY = "note"
_LEARNED = "let learned pages be replaced"
_UNMASKED = "let secrets be masked"
"""The fixes that a program is told."""


class Options(TypedDict):
    category: str
    slug: str
    meta: tuple[tuple[str, JSON], ...]
    mask_secrets: bool
    replace: bool


@click.command("save", cls=TakesText)
@click.argument("text", required=False)
@click.option(
    "--category",
    metavar="NAME",
    default=_CATEGORY,
    help="What it is: preference, profile, event, or a word of your own; note.",
)
@click.option("--slug", metavar="NAME", default="", help="Its name there; else by how it begins.")
@with_meta
@click.option("--mask-secrets", is_flag=True, help="Keep it without the secrets that are in it.")
@click.option("--replace", is_flag=True, help="Even if that replaces what was learned.")
@as_json(ONE_OBJECT)
@with_memory
def save_command(
    memory: Memory, text: str | None, *, as_json: bool, **options: Unpack[Options]
) -> None:
    """Remember one thing.

    TEXT is what to remember, in Markdown; if it is - or left out, it is read from stdin or, at a
    terminal, written in your editor. With a slug that is there already, it is the next version; a
    page of what was learned from sessions is replaced only with --replace.
    """
    with _given(text) as given:
        saved = _saved(memory, given, options)
    if as_json:
        tell_json(saved.as_json())
    else:
        tell_line(version_line(saved.node.uri, saved.node.version))
    if not saved.written:
        mention("it is known already; nothing was written")
    mention_masked(saved.masked)
    if saved.changed:
        name = memory.name(saved.node.place)
        mention(f"it was not kept to the letter, for safety: `perdure read {name}` shows it")


@contextmanager
def _given(text: str | None) -> Iterator[str]:
    """Yield what is to be remembered; what was typed in an editor is not lost if it can't be."""
    if text is None and sys.stdin.isatty():
        from perdure.surfaces.nodes.editor import (  # noqa: PLC0415 - who has no text yet pays
            edited,
            find_editor,
        )

        with edited(find_editor("give the text behind `perdure save`"), "memory", "") as typed:
            yield typed
    else:
        yield piped() if text is None or text == STDIN else text


@dataclass(frozen=True, slots=True)
class Saved:
    """What is remembered now."""

    node: ContextNode
    written: bool
    changed: bool
    """Whether it differs from what was given, because that could do harm."""
    masked: tuple[Note, ...]
    """Where secrets were masked in it."""

    def as_json(self) -> dict[str, object]:
        return {
            "uri": self.node.uri,
            "version": self.node.version,
            "written": self.written,
            "created": self.written and self.node.version == 1,
            "changed": self.changed,
            "masked": masked_json(self.masked),
        }


def _saved(memory: Memory, text: str, options: Options) -> Saved:
    text = text.strip("\n")
    history = memory.context.recorded.history
    before = history.position()
    try:
        uri = memory.context.memory.on_behalf_of(memory.request).save(
            text,
            category=options["category"],
            slug=options["slug"],
            metadata=dict(options["meta"]),
            mask_secrets=options["mask_secrets"],
            replace_learned=options["replace"],
        )
    except NodeExistsError as error:
        raise NodeExistsError(str(error).replace(_LEARNED, "add --replace")) from None
    except SecretRefusedError as error:
        raise SecretRefusedError(str(error).replace(_UNMASKED, "add --mask-secrets")) from None
    node = memory.node(Uri.parse(uri))
    last = history.current(memory.reader.file(node.place, META))
    written = last is not None and last.position > before
    return Saved(node, written, node.content != text, _masked(text, options))


def _masked(text: str, options: Options) -> tuple[Note, ...]:
    if not options["mask_secrets"]:
        return ()
    return safe(text, dict(options["meta"]), SecretPolicy.MASK).notes
