"""Runs the verbs for nodes in this process, as a user called Ana."""

import json
import os
from pathlib import Path

from click.testing import CliRunner, Result

from perdure.app import open_context
from perdure.errors import PerdureError
from perdure.surfaces.cli import cli
from perdure.surfaces.out import message_of

MEMORIES = "ctx://local/users/ana/memories"
TABS = f"{MEMORIES}/preference/indentation"


def content_of(memory: Path, key: str) -> Path:
    return memory / "accounts" / "local" / key / "content.md"


def perdure(*words: str, typed: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, words, input=typed)


def stdout_of(*words: str, typed: bytes | None = None) -> str:
    done = perdure(*words, typed=typed)
    assert (done.exception, done.exit_code) == (None, 0), done.stderr
    return done.stdout


def objects(*words: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in stdout_of(*words, "--json").splitlines()]


def one(*words: str) -> dict[str, object]:
    (found,) = objects(*words)
    return found


def refusal(*words: str, typed: bytes | None = None) -> BaseException | None:
    done = perdure(*words, typed=typed)
    assert done.exit_code == 1
    assert done.stdout == ""
    error = done.exception
    if isinstance(error, PerdureError) and error.options:
        return type(error)(message_of(error))
    return error


def position() -> str:
    with open_context(os.environ) as context:
        return str(context.recorded.history.position())


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]
