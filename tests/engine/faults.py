"""Kill processes that save, edit and erase; let each I/O call of a verb fail: nothing is lost.

    python -m tests.engine.faults --kills 2000 --errors 2000

Two processes work on one memory; each is killed at a random moment, again and again, and says what
was acknowledged to it. Of errors, each call of each verb gets each, in turn.
"""

import errno
import json
import os
import random
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import click

from perdure.app import Context
from perdure.engine.memory import Memory
from perdure.errors import NodeNotFoundError, PerdureError
from perdure.storage import openat
from tests.engine.erase.homes import root
from tests.engine.remembering import opened

SLUGS = 4
_ERASE_ONE_IN = 25
_LONGEST_SECONDS = 0.06
_FRESH_HOME = 50
"""Kills; then another home, so that none becomes large."""
ERRORS = (errno.EIO, errno.ENOSPC, errno.EROFS)
CALLS = (
    *("open", "write", "pwrite", "pwritev", "read", "pread", "fsync", "fdatasync", "ftruncate"),
    *("rename", "replace", "link", "unlink", "mkdir", "rmdir", "posix_fallocate", "scandir"),
)
"""The calls of `os` that can fail; SQLite makes its own."""


def uri_of(slug: str) -> str:
    return f"preference/{slug}"


def text_of(token: str) -> str:
    """Return a text that tells when a part of it is missing."""
    return f"{token} likes trains, {'and more of them, ' * 40}as {token} says."


def token_in(text: str) -> str:
    token = text.split(maxsplit=1)[0] if text else ""
    assert text.strip() == text_of(token), f"a part of a text: {text[:60]!r}…{text[-40:]!r}"
    return token


def read(memory: Memory, slug: str) -> str | None:
    try:
        return token_in(memory.read(uri_of(slug)).content)
    except NodeNotFoundError:
        return None


# ---------------------------------------------------------------- kills
class Worker:
    """A process that works until it is killed, and what it acknowledged."""

    def __init__(self, home: Path, name: str, seed: int) -> None:
        self._read, write = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            with suppress(BaseException):
                _work(home, name, seed, write)
            os._exit(1)
        os.close(write)

    def kill(self) -> list[list[str | None]]:
        """Kill it; return what it began and ended."""
        os.kill(self.child, signal.SIGKILL)
        _, status = os.waitpid(self.child, 0)
        with os.fdopen(self._read, "rb") as file:
            acknowledged = file.read()
        code = os.waitstatus_to_exitcode(status)
        assert code == -signal.SIGKILL, f"it ended by itself, with {code}: {acknowledged[-500:]!r}"
        return [json.loads(line) for line in acknowledged.splitlines() if line.endswith(b"]")]

    def wait(self, seconds: float) -> None:
        """Return some time after it has begun."""
        select.select([self._read], [], [], 60)
        time.sleep(seconds)


def _work(home: Path, name: str, seed: int, out: int) -> None:
    dice = random.Random(seed)

    def tell(*what: str | None) -> None:
        os.write(out, json.dumps(what).encode() + b"\n")

    try:
        with opened(home, semantic=False) as context:
            memory = root(context)
            for number in count():
                slug, token = f"{name}{dice.randrange(SLUGS)}", f"{name}x{seed}x{number}"
                _do(context, memory, dice, slug, token, tell)
    except BaseException as error:
        tell("error", repr(error))
        raise


def _do(  # noqa: PLR0913, PLR0917 - what a verb needs
    context: Context,
    memory: Memory,
    dice: random.Random,
    slug: str,
    token: str,
    tell: Callable[..., None],
) -> None:
    there = read(memory, slug)
    chance = dice.random()
    if there is None or chance < 0.6:
        tell("begin", slug, token)
        memory.save(text_of(token), category="preference", slug=slug)
    elif chance < 0.75:
        tell("begin", slug, token)
        _edit(context, there, token)
    elif chance < 1 - 1 / _ERASE_ONE_IN:
        tell("begin", slug, None)
        memory.delete(uri_of(slug))
        token = ""
    else:
        tell("begin", slug, None)
        memory.forget(uri_of(slug), erase=True)
        tell("erased", there)
        token = ""
    tell("end", slug, token or None)


def _edit(context: Context, there: str, token: str) -> None:
    """Change a file as an editor does."""
    for path in Path(context.recorded.inner.whereabouts).rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        if text_of(there) in text:
            new = path.with_name(f".{path.name}.edited")
            new.write_text(text.replace(text_of(there), text_of(token)), encoding="utf-8")
            new.replace(path)
            return
    raise AssertionError(f"no file has {there}")


class Expected:
    """What each slug may be after a kill."""

    def __init__(self) -> None:
        self.may_be: dict[str, list[str | None]] = {}
        """What was acknowledged last, and what was begun since.

        A reader may come before the next writer, who finishes what is in the log.
        """
        self.erased: list[str] = []
        self.acknowledged = 0

    def take(self, acknowledged: list[list[str | None]]) -> None:
        for what in acknowledged:
            match what:
                case ["begin", str(slug), token]:
                    self.may_be.setdefault(slug, [None]).append(token)
                case ["erased", str(token)]:
                    self.erased.append(token)
                case ["end", str(slug), token]:
                    self.acknowledged += 1
                    self.may_be[slug] = [token]

    def check(self, memory: Memory) -> None:
        for slug, tokens in self.may_be.items():
            found = read(memory, slug)
            assert found in tokens, f"{slug} is {found}, and may be {tokens}"
            del tokens[: tokens.index(found)]


def kill_many(kills: int, seed: int, folder: Path) -> Iterator[int]:
    """Kill so many processes, and check after each; yield how many writes were acknowledged."""
    dice = random.Random(seed)
    acknowledged = 0
    home, expected, workers = folder, dict[str, Expected](), dict[str, Worker]()
    for done in range(kills):
        if done % _FRESH_HOME == 0:
            home = folder / f"home{done}"
            expected = {name: Expected() for name in "ab"}
            with opened(home, semantic=False) as context:
                root(context).save(text_of("first"), category="preference", slug="first")
            workers = {name: Worker(home, name, seed + done) for name in "ab"}
        name = dice.choice("ab")
        workers[name].wait(dice.random() * _LONGEST_SECONDS)
        expected[name].take(workers[name].kill())
        with opened(home, semantic=False) as context:
            expected[name].check(root(context))
        if done % _FRESH_HOME == _FRESH_HOME - 1 or done == kills - 1:
            other = "b" if name == "a" else "a"
            expected[other].take(workers[other].kill())
            acknowledged += _check_all(home, expected)
            shutil.rmtree(home, ignore_errors=True)
            yield acknowledged
        else:
            workers[name] = Worker(home, name, seed + kills + done)


def _check_all(home: Path, expected: dict[str, Expected]) -> int:
    with opened(home, semantic=False) as context:
        memory = root(context)
        for each in expected.values():
            each.check(memory)
        assert read(memory, "first") == "first"
        assert context.recorded.history.store.verify().ok
        left = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    for token in (token for each in expected.values() for token in each.erased):
        assert text_of(token).encode() not in left, f"{token} was erased, and is left"
    return sum(each.acknowledged for each in expected.values())


# ---------------------------------------------------------------- errors
class _Failing:
    """Lets one call of the system fail."""

    def __init__(self, at: int, number: int, below: Path) -> None:
        self.calls = 0
        self._at, self._number, self._below = at, number, str(below)

    def wrap(self, call: Callable[..., object]) -> Callable[..., object]:
        def counted(*args: object, **kwargs: object) -> object:
            if args and isinstance(args[0], str | bytes | os.PathLike):
                path = os.fsdecode(args[0])
                if Path(path).is_absolute() and not path.startswith(self._below):
                    return call(*args, **kwargs)  # a module, or a library
            self.calls += 1
            if self.calls == self._at:
                raise OSError(self._number, os.strerror(self._number))
            return call(*args, **kwargs)

        return counted

    @contextmanager
    def patched(self) -> Iterator[None]:
        with ExitStack() as stack:
            for name in CALLS:
                stack.enter_context(mock.patch.object(os, name, self.wrap(getattr(os, name))))
            renamed = self.wrap(openat.rename)
            stack.enter_context(mock.patch.object(openat, "rename", renamed))
            yield


class Verb(NamedTuple):
    act: Callable[[Memory], object]
    before: str | None
    after: str | None
    """The token that the slug `odd` has."""


def _save(token: str, slug: str = "odd") -> Callable[[Memory], object]:
    return lambda memory: memory.save(text_of(token), category="preference", slug=slug)


VERBS = {
    "update": Verb(_save("two"), "one", "two"),
    "create": Verb(_save("two"), None, "two"),
    "delete": Verb(lambda memory: memory.delete(uri_of("odd")), "one", None),
    "erase": Verb(lambda memory: memory.forget(uri_of("odd"), erase=True), "one", None),
    "recall": Verb(lambda memory: memory.recall("trains"), "one", "one"),
}


class Prepared:
    """A home before a verb, from which copies are made."""

    def __init__(self, verb: Verb, folder: Path) -> None:
        self.verb, self._whole, self.home = verb, folder / "whole", folder / "home"
        with opened(self.home, semantic=False) as context:
            memory = root(context)
            memory.save(text_of("first"), category="preference", slug="first")
            if verb.before is not None:
                _save(verb.before)(memory)
        shutil.copytree(self.home, self._whole)

    def again(self) -> None:
        """Put the home back as it was: the same folder, so that it is the same store."""
        for path in self.home.rglob("*"):
            if path.is_file():
                path.unlink()
        shutil.copytree(self._whole, self.home, dirs_exist_ok=True)

    def fail(self, at: int, number: int, *, warm: bool) -> int:
        """Do it with an error at some call; check what is left; return how many calls it made."""
        failing = _Failing(at, number, self.home)
        raised: BaseException | None = None
        try:
            if warm:
                with opened(self.home, semantic=False) as context:
                    memory = root(context)
                    memory.recall("trains")
                    with failing.patched():
                        self.verb.act(memory)
            else:
                with failing.patched(), opened(self.home, semantic=False) as context:
                    self.verb.act(root(context))
        except PerdureError as error:
            raised = error
        assert raised is None or "Fix:" in str(raised), f"no fix: {raised}"
        self._check(raised)
        return failing.calls

    def _check(self, raised: BaseException | None) -> None:
        with opened(self.home, semantic=False) as context:
            memory = root(context)
            assert read(memory, "first") == "first"
            found = read(memory, "odd")
            expected = {self.verb.after} | ({self.verb.before} if raised else set())
            assert found in expected, f"odd is {found}, after {raised!r}"
            assert context.recorded.history.store.verify().ok
            memory.save(text_of("again"), category="preference", slug="again")
            assert [hit for hit in memory.recall("again likes trains").hits if "again" in hit.uri]


def fail_many(
    errors: int, folder: Path, *, begin: int = 0, every: int = 1
) -> Iterator[tuple[str, int]]:
    """Let calls of verbs fail, each with each error; yield how many did, of which verb."""
    done = -begin
    for warm in (True, False):
        for name, verb in VERBS.items() if errors else ():
            prepared = Prepared(verb, folder / f"{name}-{warm}")
            calls = prepared.fail(0, 0, warm=warm)
            for at in range(1, calls + 1, every):
                for number in ERRORS:
                    if done == errors:
                        yield name, done
                        return
                    if done < 0:
                        done += 1
                        continue
                    prepared.again()
                    try:
                        prepared.fail(at, number, warm=warm)
                    except Exception as error:
                        how = "warm" if warm else "from its start"
                        code_name = errno.errorcode[number]
                        error.add_note(f"{name} {how}: call {at} of {calls}, {code_name}")
                        raise
                    done += 1
            yield name, done


@click.command()
@click.option("--kills", default=2000)
@click.option("--errors", default=2000)
@click.option("--begin", default=0, help="Leave out so many errors; they are always the same.")
@click.option("--seed", default=0)
def main(kills: int, errors: int, begin: int, seed: int) -> None:
    """Kill processes, and let calls fail: nothing that was acknowledged is lost."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        for number, acknowledged in enumerate(kill_many(kills, seed, Path(folder)), 1):
            killed = min(kills, number * _FRESH_HOME)
            click.echo(
                f"{time.monotonic() - start:.0f} s  {killed} kills, {acknowledged} acknowledged"
            )
        for name, done in fail_many(errors, Path(folder), begin=begin):
            click.echo(f"{time.monotonic() - start:.0f} s  {done} errors, the last in {name}")


if __name__ == "__main__":
    main()
