"""Write the state of a project: its files, its mode and its plans. Readers do not import this."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from perdure.errors import (
    ConcurrentModificationError,
    HarnessError,
    PlanNameError,
    StorageError,
    storage_error,
)
from perdure.harness.project import HARNESS, Project
from perdure.harness.state_files import (
    MARKER,
    MODE_MARKER,
    Device,
    Plan,
    PlanText,
    StateDir,
    check_name,
    harness_state_dir,
    named_plan,
    parse_mode,
    read_plan,
)
from perdure.storage import ABSENT, Expectation, atomic_write, check_found, encode_text, vault_mutex
from perdure.storage.batch import WriteBatch, content_in, make_directory
from perdure.storage.changes import TextChange
from perdure.storage.locator import Locator
from perdure.storage.openat import DIRECTORY, opened, opener


def write_state_file(
    project: Project, device: Device, name: str, content: str, *, expect: Expectation = None
) -> None:
    """Write a state file of a project where `read_state_file` reads it.

    In the checkout it is written by `atomic_write`. `expect` is as for the seam's `write`.
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
    """Write a file in the `.harness` folder of a checkout atomically."""
    key = f"{HARNESS}/{name}"
    data = encode_text(content, Locator(key))
    with _explained(project_root, key), vault_mutex(project_root, locks=_locks(home)) as held:
        with opened(project_root, "", DIRECTORY) as directory:
            make_directory(HARNESS, directory)
        if expect is not None:
            with opened(project_root, HARNESS, DIRECTORY) as directory:
                check_found(content_in(directory, name), expect, Locator(key))
        atomic_write(held, key, data)


def remove_local(project_root: str, home: str, name: str) -> None:
    """Remove a file in the `.harness` folder of a checkout, if it exists."""
    key = f"{HARNESS}/{name}"
    with _explained(project_root, key), vault_mutex(project_root, locks=_locks(home)) as held:
        removal = TextChange(Locator(key), None, None)
        WriteBatch(project_root, opener(project_root), [removal]).apply(held)


def mark_mode(project_root: str, home: str, name: str) -> str:
    """Write the marker of a checkout's mode, and return the mode."""
    mode = parse_mode(name, "the mode")
    write_local(project_root, home, MODE_MARKER, f"{mode}\n")
    return mode


def _locks(home: str) -> str:
    return str(Path(home, "locks"))


@contextmanager
def _explained(project_root: str, key: str) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise storage_error(error, project_root, key) from error


def start_plan(place: StateDir, device: Device, plan: Plan, text: str) -> PlanText:
    """Write a new plan with an empty progress, and activate it; `HarnessError` if it exists."""
    try:
        write_in(place, device, plan.plan_file, text, expect=ABSENT)
    except ConcurrentModificationError as error:
        raise HarnessError(
            f"the plan {plan.called!a} already exists in {place.shown!a}. "
            f"Fix: `perdure plan switch {plan.called}` makes it active."
        ) from error
    with suppress(ConcurrentModificationError):  # earlier progress stays
        progress = f"# Progress: {plan.called}\n"
        write_in(place, device, plan.progress_file, progress, expect=ABSENT)
    activate(place, device, plan)
    return PlanText(plan, text)


def switch_plan(place: StateDir, device: Device, name: str) -> PlanText:
    plan = named_plan(name)
    found = read_plan(place, plan)
    if found is None:
        raise PlanNameError(
            f"there is no plan {name!a} in {place.shown!a}. "
            "Fix: `perdure plan list` shows what there is, `perdure plan start` begins one."
        )
    activate(place, device, plan)
    return found


def activate(place: StateDir, device: Device, plan: Plan) -> None:
    """Make a plan the active one of this checkout; the default plan has no marker."""
    if plan.name:
        write_local(place.project_root, device.home, MARKER, f"{plan.name}\n")
    else:
        clear_plan(place, device)


def clear_plan(place: StateDir, device: Device) -> None:
    remove_local(place.project_root, device.home, MARKER)
