"""Options and arguments that commands share: moments, the memory, its caller, texts and files."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Concatenate, ParamSpec, TypedDict, TypeVar

import click

from perdure.app import caller_for, open_memory
from perdure.errors import (
    AbsentError,
    AccessRefusedError,
    InvalidCIDError,
    InvalidValueError,
    NotTextError,
    PathIsFileError,
    PerdureError,
    ProjectError,
    ProofError,
    StorageError,
)
from perdure.model import RequestContext, Role
from perdure.model.project_aliases import ProjectIdentity
from perdure.model.request import text_named
from perdure.model.values import JSON
from perdure.surfaces import out
from perdure.surfaces.out import animated, counted, picked, shown
from perdure.times import parse_when

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perdure import CID, EditReport, Memory, Note

Moment = int | str
"""A position, or the text of a date or a time."""

Command = TypeVar("Command", bound=Callable[..., object])

ONE_OBJECT = "one JSON object"
OBJECT_PER_LINE = "one JSON object per line"


def as_json(prints: str = ONE_OBJECT) -> Callable[[Command], Command]:
    return click.option("--json", "as_json", is_flag=True, help=f"Print {prints}.")


# ---------------------------------------------------------------- moments
def parse_moment(text: str) -> Moment:
    if is_number(text):
        return int(text)
    try:
        return parse_time(text)
    except click.BadParameter as error:
        raise click.BadParameter(f"{error.message.rstrip('.')}, or a position.") from error


def parse_cid(text: str) -> "CID":
    from perdure import CID

    try:
        return CID.parse(text)
    except InvalidCIDError as error:
        raise click.BadParameter(str(error)) from error


def parse_time(text: str) -> str:
    if is_number(text):
        raise click.BadParameter("a position is not a time. Fix: write a date or a time.")
    try:
        parse_when(text)
    except InvalidValueError as error:
        raise click.BadParameter(str(error)) from error
    return text


def is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def at_moment(command: Command) -> Command:
    return click.option(
        "--at",
        type=parse_moment,
        metavar="MOMENT",
        help="As of a date, a time or a position.",
    )(command)


def with_reason(command: Command) -> Command:
    return click.option(
        "--reason", metavar="TEXT", default="", help="Record this reason in the history."
    )(command)


# ---------------------------------------------------------------- confirmation
def without_asking(command: Command) -> Command:
    return click.option("--yes", "-y", is_flag=True, help="Don't ask for confirmation.")(command)


def ask_first(plan: str, refusal: str) -> None:
    """Print a plan and ask for confirmation; refuse if stdin is not a terminal."""
    if not sys.stdin.isatty():
        raise AccessRefusedError(f"{refusal}: stdin is not a terminal. Fix: add --yes.")
    out.mention(plan)
    click.confirm("Continue?", abort=True, err=True)


# ---------------------------------------------------------------- the memory and its caller
Rest = ParamSpec("Rest")

NAMES = (
    "Name a NODE as preference/indentation, profile, skills/NAME, resources/NAME or "
    "sessions/ID/NAME, and a FOLDER likewise, or either by its whole URI, ctx://..."
)
_MOST_NAMED = 3
_MOST_MASKED = 10


class Caller(TypedDict):
    account: str | None
    user: str | None
    agent: str | None
    session: str
    as_role: str | None


def caller_options(command: Command) -> Command:
    options = (
        click.option(
            "--as-role",
            type=click.Choice([role.value for role in Role]),
            help="Act with this role. Default: root or, with --user, member.",
        ),
        click.option("--session", metavar="ID", default="", help="Act in this session."),
        click.option("--agent", metavar="ID", help="Use this agent's skills. Default: default."),
        click.option("--user", metavar="ID", help="Act as this user. Default: you."),
        click.option("--account", metavar="ID", help="Use this account. Default: local."),
    )
    for option in options:
        command = option(command)
    return command


def caller_in(options: dict[str, Any]) -> RequestContext:
    """Remove the options that name the caller from a command's options, and return the caller."""
    named = {name: options.pop(name) for name in Caller.__annotations__}
    return caller_for(os.environ, role=named.pop("as_role"), **named)


def with_memory(
    prints: str = ONE_OBJECT, *, in_project: bool = False
) -> "Callable[[Callable[Concatenate[Memory, Rest], None]], Callable[Rest, None]]":
    """Give a command the memory of its caller, the options that name the caller, and `--json`.

    `prints` is what the help says about the JSON; if it is empty, there is no `--json`. With
    `in_project`, the memory is opened for the project that `--project` names, or this folder's.
    """

    def decorated(command: "Callable[Concatenate[Memory, Rest], None]") -> Callable[Rest, None]:
        @wraps(command)
        def run(*args: Rest.args, **kwargs: Rest.kwargs) -> None:
            project = project_in(kwargs) if in_project else ""
            with opened(caller_in(kwargs), project) as memory:
                command(memory, *args, **kwargs)

        found = caller_options(run)
        found = project_option(found) if in_project else found
        return as_json(prints)(found) if prints else found

    return decorated


with_project_memory = partial(with_memory, in_project=True)


def project_option(command: Command) -> Command:
    return click.option(
        "--project",
        metavar="NAME",
        help="Use this project, by name or folder; '' is none. Default: this folder's.",
    )(command)


def project_in(options: dict[str, Any]) -> ProjectIdentity:
    """Remove `project` from a command's options; return that project, or this folder's."""
    from perdure.app.project_state import identity_named

    named = options.pop("project")
    if named is not None:
        return identity_named(named)
    try:
        return identity_named(".")
    except (ProjectError, OSError):  # this folder was removed
        return ProjectIdentity("")


@contextmanager
def opened(caller: RequestContext, project: ProjectIdentity | str = "") -> "Iterator[Memory]":
    """Open the memory for a caller; print recorded edits and warnings at the end."""
    with open_memory(os.environ, caller, project=project) as memory:
        try:
            yield memory
        finally:
            for edits in memory.edits():
                mention_edits(edits, caller)
            if warnings := memory.warnings():
                out.mention(warnings)


def mention_edits(edits: "EditReport", caller: RequestContext) -> None:
    """Print the names of the nodes that were edited, each once."""
    found: dict[str, str] = {}
    for each in edits.recorded:
        name, kind = text_named(each.locator.key, caller), each.kind.value
        found.setdefault(
            re.sub(r"/\.\w+\.\w+$", "", name), "" if kind == "edited" else f" ({kind})"
        )
    if found:
        names = [f"{shown(name)}{kind}" for name, kind in found.items()][:_MOST_NAMED]
        number, more = counted(len(found), "edit"), _and_more(len(found))
        out.mention(f"recorded {number} made outside Perdure: {', '.join(names)}{more}")
    if edits.lost:
        names = [shown(text_named(each.key, caller)) for each in edits.lost[:_MOST_NAMED]]
        out.mention(
            f"no longer valid text, and left alone: {', '.join(names)}{_and_more(len(edits.lost))}"
        )


def _and_more(number: int) -> str:
    return f" and {number - _MOST_NAMED} more" if number > _MOST_NAMED else ""


def index_first(memory: "Memory") -> None:
    """Build the first index with a progress bar at a terminal: it can take a minute."""
    if not animated() or not memory.caller.governs or memory.index.is_built:
        return
    with suppress(StorageError), out.progress("indexing") as show:  # recall reports what is wrong
        memory.record_edits()
        memory.index.rebuild(progress=show)


# ---------------------------------------------------------------- texts
STDIN = "-"
_MOST_BYTES = 1_000_000


def parse_meta(text: str) -> tuple[str, JSON]:
    """Parse `key=text`, or `key:=value` with a value in JSON."""
    key, equals, value = text.partition("=")
    if not equals or not key.rstrip(":"):
        raise click.BadParameter(f"{text!a} is not KEY=VALUE. Fix: write it as KEY=VALUE.")
    if not key.endswith(":"):
        return key, value
    try:
        return key.removesuffix(":"), json.loads(value)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(
            f"{value!a} is not JSON. Fix: write {key.removesuffix(':')}={value} for a text."
        ) from error


def with_meta(command: Command) -> Command:
    return click.option(
        "--meta",
        type=parse_meta,
        metavar="KEY=VALUE",
        multiple=True,
        help="Set metadata; KEY:=VALUE takes JSON, and KEY:=null removes the key. Repeatable.",
    )(command)


class TextCommand(click.Command):
    """Accepts an argument that begins with a dash and has spaces, like a Markdown list."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [param for param in self.params if isinstance(param, click.Option)]
        valued = {name for option in options if not option.is_flag for name in option.opts}
        given = args[: args.index("--")] if "--" in args else args
        for at, arg in enumerate(given):
            if _is_dashed_text(arg) and (at == 0 or args[at - 1] not in valued):
                return super().parse_args(ctx, [*args[:at], *args[at + 1 :], "--", arg])
        return super().parse_args(ctx, args)


def _is_dashed_text(arg: str) -> bool:
    """Whether an argument begins like an option, but has a space where no option has one."""
    return arg.startswith("-") and any(c.isspace() for c in arg.partition("=")[0])


def piped() -> str:
    """Return the text on stdin."""
    content = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise InvalidValueError(
            f"stdin has more than {_MOST_BYTES:,} bytes. Fix: split it into several nodes."
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise NotTextError("stdin is not valid UTF-8. Fix: encode the text as UTF-8.") from error


def mention_masked(notes: "Iterable[Note]") -> None:
    """Print where secrets were masked, and their kinds; never the secrets."""
    places = [f"{each.where}, line {each.line} ({each.secret})" for each in notes if each.secret]
    mention_number_masked(len(places), places)


def mention_lifted(number: int) -> None:
    if number:
        out.mention("this was forgotten before; it is remembered again")


def mention_number_masked(number: int, places: list[str]) -> None:
    if number:
        were = "was" if number == 1 else "were"
        more = f" and {len(places) - _MOST_MASKED} more" if len(places) > _MOST_MASKED else ""
        listed = ": " + ", ".join(places[:_MOST_MASKED]) if places else ""
        out.mention(f"{counted(number, 'secret')} {were} masked{listed}{more}")


def masked_json(notes: "Iterable[Note]") -> list[dict[str, object]]:
    return [picked(each, "where line kind=secret") for each in notes if each.secret]


# ---------------------------------------------------------------- files of proofs and receipts
STANDARD = "-"
"""Stands for stdout or stdin."""
_MINE = 0o600


@contextmanager
def new_file(path: str, *, force: bool) -> Iterator[BinaryIO]:
    """Yield a file that appears under its name when it is complete, readable by its owner only.

    Raises `PathIsFileError` if the name is taken, unless `force`.
    """
    if path == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if not force and os.path.lexists(path):
        raise _name_taken(path)
    folder, name = os.path.split(path)
    unfinished = Path(folder, f".{name}.{os.urandom(4).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with _named(path, reading=False):
            with os.fdopen(os.open(unfinished, flags, _MINE), "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _name(unfinished, path, force=force)
    finally:
        unfinished.unlink(missing_ok=True)


def _name(unfinished: Path, path: str, *, force: bool) -> None:
    if force:
        unfinished.replace(path)
        return
    try:
        os.link(unfinished, path)
    except FileExistsError:
        raise _name_taken(path) from None
    except OSError:  # the file system has no links, so a race with another writer goes unnoticed
        if os.path.lexists(path):
            raise _name_taken(path) from None
        unfinished.replace(path)


def read_signed_file(path: str, what: str, limit: int) -> str:
    """Return the text of a proof or a receipt; of a larger file, the first `limit` + 1 bytes."""
    if path == STANDARD:
        content = sys.stdin.buffer.read(limit + 1)
    else:
        with _named(path, reading=True), Path(path).open("rb") as file:
            content = file.read(limit + 1)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ProofError(f"this {what} is not JSON. Fix: copy the whole file.") from error


@contextmanager
def _named(path: str, *, reading: bool) -> Iterator[None]:
    """Let an error of the system name the path that the user gave."""
    folder, name = str(Path(path).parent), Path(path).name
    try:
        yield
    except PerdureError:
        raise
    except FileNotFoundError as error:
        missing = path if reading else folder
        raise AbsentError(
            f"{missing!a} does not exist. Fix: check its name, or create it."
        ) from error
    except OSError as error:
        if reading and isinstance(error, PermissionError):
            raise AccessRefusedError(
                f"{name!a} in {folder!a}: permission denied. Fix: make the folder and its files "
                "readable for this user."
            ) from error
        error.filename, error.filename2 = path, None
        raise


def _name_taken(path: str) -> PathIsFileError:
    return PathIsFileError(
        f"{path!a} already exists, and was not changed. Fix: name another file, or add --force."
    )
