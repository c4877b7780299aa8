"""Commits that are interrupted at every step, and what must be there afterwards."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from perdure.artifacts.disk import Disk
from perdure.errors import PerdureError
from perdure.storage import Expectation, Locator, StorageBackend, TransactionalBackend
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import History, View
from perdure.testing.storage.storage_suite import tree
from tests.support.artifacts.memory_disk import MemoryDisk
from tests.support.artifacts.recording import RecordingDisk
from tests.support.artifacts.states import crash_states

NAMES = ("content.md", "overview.md", "abstract.md", "relations.json", ".meta.json")
"""The parts of a node; the last is the commit point."""

Changes = Mapping[Locator, str | None]
Tree = dict[str, str | None]


def node(folder: str, text: str | None) -> dict[Locator, str | None]:
    names = NAMES if text is not None else reversed(NAMES)
    return {Locator(f"{folder}/{name}"): text and f"{text} {name}" for name in names}


class Scenario(NamedTuple):
    before: Changes
    changes: Changes


SCENARIOS = {
    "create": Scenario({}, node("notes/a", "new")),
    "update": Scenario(node("notes/a", "old"), node("notes/a", "new")),
    "delete": Scenario(node("notes/a", "old"), node("notes/a", None)),
    "move": Scenario(
        node("notes/a", "old"), {**node("moved/to/b", "new"), **node("notes/a", None)}
    ),
    "some of each": Scenario(
        {**node("notes/a", "old"), **node("notes/same", "same")},
        {
            Locator("notes/a/content.md"): "new",
            Locator("notes/a/abstract.md"): None,
            Locator("notes/same/content.md"): "same content.md",
            Locator("other/first.md"): "new",
            Locator("notes/a/.meta.json"): "new",
        },
    ),
}


def recorded(inner: StorageBackend, disk: Disk) -> Recorded:
    return Recorded(inner, History.on_disk(disk))


class Stepwise(MemoryBackend):
    """Changes several texts one by one; at each step others may look, edit, or break it off."""

    def __init__(self) -> None:
        super().__init__()
        self.step: Callable[[], object] = lambda: None

    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        self.step()
        super().write(locator, content, expect=expect)
        self.step()
        return locator

    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        self.step()
        super().remove(locator, expect=expect)
        self.step()

    def write_all(
        self,
        changes: Mapping[Locator, str | None],
        *,
        expect: Mapping[Locator, Expectation] | None = None,
    ) -> None:
        StorageBackend.write_all(self, changes, expect=expect)

    def edit(self, locator: Locator, content: str | None) -> None:
        """Change a text as an editor does, without the lock."""
        if content is not None:
            MemoryBackend.write(self, locator, content)
        elif self.exists(locator):
            MemoryBackend.remove(self, locator)

    def same(self) -> "Stepwise":
        """Return another one that holds the same."""
        copy = Stepwise()
        copy._texts, copy._mtimes = dict(self._texts), dict(self._mtimes)
        return copy


class Moment(NamedTuple):
    """What a process that was killed leaves behind."""

    inner: Stepwise
    files: dict[str, bytes]

    def again(self) -> tuple[Stepwise, MemoryDisk]:
        return self.inner.same(), MemoryDisk(self.files)


class Outcome(NamedTuple):
    new: Tree
    moments: list[Moment]


def prepared(scenario: Scenario) -> Moment:
    """Return a store with what a scenario begins with."""
    inner, disk = Stepwise(), MemoryDisk()
    recorded(inner, disk).commit({Locator("else.md"): "else", Locator("notes/too.md"): "too"})
    recorded(inner, disk).commit(scenario.before)
    return Moment(inner, disk.files())


def watched(act: Callable[[], object], inner: Stepwise, disk: MemoryDisk) -> list[Moment]:
    """Do it, and return what a kill would leave at each step."""
    moments: list[Moment] = []
    inner.step = lambda: moments.append(Moment(inner.same(), disk.files()))
    act()
    inner.step()
    inner.step = lambda: None
    return moments


def run(scenario: Scenario) -> Outcome:
    inner, disk = prepared(scenario).again()
    backend = recorded(inner, disk)
    moments = watched(lambda: backend.commit(scenario.changes), inner, disk)
    return Outcome(tree(inner), moments)


def _texts(found: Tree) -> Tree:
    return {key: text for key, text in found.items() if text is not None}


def _assert_settled(backend: Recorded, inner: Stepwise, disk: MemoryDisk) -> None:
    """Check that nothing is left to do, and that history says the same."""
    before, files = tree(inner), disk.files()
    backend.settle()
    recorded(inner, disk)
    assert (tree(inner), disk.files()) == (before, files)
    shown = tree(View(backend.history, backend.history.store.current()))
    assert _texts(shown) == _texts(before)


# ---------------------------------------------------------------- checks
def check_kills(scenario: Scenario) -> None:
    """Kill a writer at any step after the log has the commit: all is new."""
    outcome = run(scenario)
    for moment in outcome.moments:
        inner, disk = moment.again()
        backend = recorded(inner, disk)

        assert tree(inner) == outcome.new
        _assert_settled(backend, inner, disk)
    assert len(outcome.moments) > 2 * len(scenario.changes) - 4


def check_kills_while_redoing(scenario: Scenario) -> None:
    """Kill a process while it redoes a commit: the next one goes on."""
    outcome = run(scenario)
    for moment in outcome.moments:
        inner, disk = moment.again()
        for second in watched(lambda i=inner, d=disk: recorded(i, d), inner, disk):  # type: ignore[misc]
            again, its_disk = second.again()
            recorded(again, its_disk)

            assert tree(again) == outcome.new


def check_failures(scenario: Scenario, error: BaseException) -> None:
    """Whatever a step raises: all is old, or all new if all was written; and nothing is left."""
    steps = len(run(scenario).moments) - 1
    for step in range(steps):
        inner, disk = prepared(scenario).again()
        backend = recorded(inner, disk)
        old = tree(inner)
        _raise_at(inner, step, error)
        try:
            backend.commit(scenario.changes)
        except type(error):
            pass
        else:
            raise AssertionError("the error was kept from the caller")
        inner.step = lambda: None

        done = step == steps - 1
        assert (tree(inner) == old) is not done
        _assert_settled(backend, inner, disk)


def _raise_at(inner: Stepwise, step: int, error: BaseException) -> None:
    left = [step]

    def count() -> None:
        left[0] -= 1
        if left[0] == -1:
            raise error

    inner.step = count


def check_hand_edits(scenario: Scenario) -> None:
    """Edit as the owner after the writer died: the edit stays, all else is new."""
    outcome = run(scenario)
    for moment in outcome.moments:
        for locator in scenario.changes:
            inner, disk = moment.again()
            inner.edit(locator, "by hand")
            backend = recorded(inner, disk)

            found = _texts(tree(inner))
            assert found.pop(locator.key) == "by hand"
            new = _texts(outcome.new)
            new.pop(locator.key, None)
            assert found == new
            backend.notice([locator])
            _assert_settled(backend, inner, disk)


def check_committed(scenario: Scenario) -> None:
    """During a commit, and after its writer died, `committed` returns the texts before it."""
    inner, disk = prepared(scenario).again()
    backend = recorded(inner, disk)
    old = _texts(tree(inner))
    message: list[Tree] = []

    def tell() -> None:
        message.append({locator.key: backend.committed(locator) for locator in scenario.changes})

    inner.step = tell
    backend.commit(scenario.changes)
    inner.step = lambda: None
    before = {locator.key: old.get(locator.key) for locator in scenario.changes}
    after = {locator.key: text for locator, text in scenario.changes.items()}

    assert message[:-1] == [before] * (len(message) - 1)
    assert message[-1] == after, "all is written, so it is committed"
    tell()
    assert message[-1] == after


def check_power_cuts(scenario: Scenario) -> None:
    """Whatever a power cut leaves of the disk: old or new; new if the commit was acknowledged.

    That holds though one of the texts was edited by hand after the commit.
    """
    inner, memory = prepared(scenario).again()
    disk = RecordingDisk(memory)
    backend = recorded(inner, disk)
    old = tree(inner)
    stages: list[Stepwise] = [inner.same()]

    def stage() -> None:
        stages.append(inner.same())
        disk.acknowledged("stage")
        disk.folder("elsewhere").sync()  # the power may go between any two texts

    inner.step = stage
    backend.commit(scenario.changes)
    new = tree(inner)
    disk.acknowledged("done")
    edited = next(iter(scenario.changes))
    inner.edit(edited, "by hand")
    stage()
    for state in crash_states(disk.recording, most=60):
        left = stages[state.promises.count("stage")].same()
        is_edited = _texts(tree(left)).get(edited.key) == "by hand"
        recorded(left, state.disk())

        found = tree(left)
        if is_edited:
            assert _texts(found) == {**_texts(new), edited.key: "by hand"}
        else:
            assert found == new if "done" in state.promises else found in (old, new)


def check_any_order(scenario: Scenario) -> None:
    """Whichever of its texts a power cut left: all become new."""
    outcome = run(scenario)
    begun = outcome.moments[0]
    changes = list(scenario.changes.items())
    for which in range(2 ** len(changes) - 1):
        inner, disk = begun.again()
        for number, (locator, text) in enumerate(changes):
            if which >> number & 1:
                inner.edit(locator, text)
        recorded(inner, disk)

        assert _texts(tree(inner)) == _texts(outcome.new)


def check_overtaken(scenario: Scenario) -> None:
    """Edit as the owner in the middle: the edit is in the file, or a version in history."""
    edited = list(scenario.changes)[2]
    for step in range(2, 5):
        inner, disk = prepared(scenario).again()
        backend = recorded(inner, disk)
        moments = _watch_edited(backend, scenario, (inner, disk), (step, edited))
        new = _texts(tree(inner))
        for number, moment in enumerate(moments):
            again, its_disk = moment.again()
            after = recorded(again, its_disk)
            found = _texts(tree(again))

            assert found in (new, {**new, edited.key: "by hand"})
            if number >= step:
                texts = [after.history.text(v) for v in after.history.versions(edited) if v.cid]
                assert "by hand" in texts


def _watch_edited(
    backend: TransactionalBackend,
    scenario: Scenario,
    store: tuple[Stepwise, MemoryDisk],
    edit: tuple[int, Locator],
) -> list[Moment]:
    inner, disk = store
    step, edited = edit
    moments: list[Moment] = []

    def watch() -> None:
        if len(moments) == step:
            inner.edit(edited, "by hand")
        moments.append(Moment(inner.same(), disk.files()))

    inner.step = watch
    backend.commit(scenario.changes)
    inner.step = lambda: None
    return moments


def check_views(scenario: Scenario, error: PerdureError) -> None:
    """Whatever position is viewed, the texts of a commit are all as before it, or all as after."""
    steps = len(run(scenario).moments) - 1
    for step in range(steps):
        inner, disk = prepared(scenario).again()
        backend = recorded(inner, disk)
        begin = backend.history.store.current()
        old = _texts(tree(inner))
        _raise_at(inner, step, error)
        try:
            backend.commit(scenario.changes)
        except PerdureError:
            inner.step = lambda: None
        new = _texts({**old, **{locator.key: text for locator, text in scenario.changes.items()}})
        for state in _states(backend, begin.position):
            assert _texts(tree(state)) in (old, new)


def _states(backend: Recorded, begin: int) -> Iterator[View]:
    now = backend.history.store.current()
    for position in range(begin, now.position + 1):
        yield View(backend.history, now._replace(position=position))
