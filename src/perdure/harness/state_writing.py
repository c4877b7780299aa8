"""Writing the state of a project."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from perdure.errors import StorageError
from perdure.faults import explain
from perdure.harness.marks import HARNESS
from perdure.harness.modes import MARKER, Device, canonical_mode
from perdure.harness.projects import Project
from perdure.harness.state import StateDir, check_name, harness_state_dir
from perdure.storage import Expectation, atomic_write, check_found, encode_text, vault_mutex
from perdure.storage.commit import Directory, content_in, make_directory, remove_file
from perdure.storage.confined import DIRECTORY, opened, opener
from perdure.storage.locator import Locator
from perdure.storage.lock.mutex import Held

_LOCKS = "locks"


def write_state_file(
    project: Project, device: Device, name: str, content: str, *, expect: Expectation = None
) -> None:
    """Write a text of the state of a project, where `read_state_file` reads it.

    A backend writes it as it writes everything. In the checkout it is written by `atomic_write`.
    With `expect`, as the seam's `write`.
    """
    write_in(harness_state_dir(project, device), device, name, content, expect=expect)


def write_in(
    place: StateDir, device: Device, name: str, content: str, *, expect: Expectation = None
) -> None:
    check_name(name)
    if place.backend is not None and place.locator is not None:
        place.backend.write(place.locator.child(name), content, expect=expect)
        return
    write_local(place.project_root, device.home, name, content, expect=expect)


def write_local(
    project_root: str, home: str, name: str, content: str, *, expect: Expectation = None
) -> None:
    """Write a file in the `.harness` folder of a checkout, wholly or not at all."""
    key = f"{HARNESS}/{name}"
    data = encode_text(content, Locator(key))
    with _explained(project_root, key), _locked(project_root, home) as held:
        _make_folder(project_root)
        if expect is not None:
            with opened(project_root, HARNESS, DIRECTORY) as directory:
                check_found(content_in(directory, name), expect, Locator(key))
        atomic_write(held, key, data)


def remove_local(project_root: str, home: str, name: str) -> None:
    """Remove a file in the `.harness` folder of a checkout; one that is not there is fine."""
    key = f"{HARNESS}/{name}"
    with (
        _explained(project_root, key),
        _locked(project_root, home) as held,
        suppress(FileNotFoundError),
    ):
        descriptor = opener(project_root)(HARNESS, DIRECTORY)
        with Directory(project_root, HARNESS, descriptor) as directory:
            remove_file(held, directory, name)


def mark_mode(project_root: str, home: str, said: str) -> str:
    """Let a checkout keep its state in its own way; return the mode as it was written."""
    mode = canonical_mode(said, "the mode")
    write_local(project_root, home, MARKER, f"{mode}\n")
    return mode


@contextmanager
def _locked(project_root: str, home: str) -> Iterator[Held]:
    with vault_mutex(project_root, locks=str(Path(home, _LOCKS))) as held:
        yield held


def _make_folder(project_root: str) -> None:
    with opened(project_root, "", DIRECTORY) as directory:
        make_directory(HARNESS, directory)


@contextmanager
def _explained(project_root: str, key: str) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise explain(error, project_root, key) from error
