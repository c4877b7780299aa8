"""The project that a command works on."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import wraps
from typing import Concatenate, ParamSpec

import click

from perdure.app.opening import recorded_of
from perdure.app.projects import ProjectState, open_state, to_read
from perdure.storage.wrappers.recorded import Recorded

Rest = ParamSpec("Rest")
Asking = Callable[Concatenate[ProjectState, Rest], None]


def reading_project(command: Asking[Rest]) -> Callable[Rest, None]:
    """Give a command the project that it is run in, or that `--cwd` names, to be read."""

    @wraps(command)
    def run(*args: Rest.args, **kwargs: Rest.kwargs) -> None:
        cwd = str(kwargs.pop("cwd"))
        command(open_state(os.environ, cwd, to_read), *args, **kwargs)

    return in_folder(run)


def changing_project(command: Asking[Rest]) -> Callable[Rest, None]:
    """As `reading_project`; what a backend keeps of it enters history."""

    @wraps(command)
    def run(*args: Rest.args, **kwargs: Rest.kwargs) -> None:
        cwd = str(kwargs.pop("cwd"))
        with _opened(cwd) as opened:
            command(opened, *args, **kwargs)

    return in_folder(run)


@contextmanager
def _opened(cwd: str) -> Iterator[ProjectState]:
    opened = open_state(os.environ, cwd, recorded_of)
    backend = opened.project.backend
    with closing(backend) if isinstance(backend, Recorded) else nullcontext():
        yield opened


def in_folder(command: Callable[Rest, None]) -> Callable[Rest, None]:
    return click.option(
        "--cwd", metavar="FOLDER", default=".", help="The folder of the project; this one."
    )(command)
