"""A state machine: any sequence of verbs must give the same answers as a dictionary."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from perdure.storage import (
    ABSENT,
    ConcurrentModificationError,
    Expectation,
    Locator,
    StorageBackend,
    content_hash,
)
from perdure.testing.requirement import requirement
from perdure.testing.storage.storage_suite import StorageSuite, tree
from perdure.testing.suite import examples

# Few places, and mostly conditions that hold, so that the verbs meet each other at one place.
_VERBS = st.sampled_from(
    ["write", "write", "write", "remove", "remove", "mkdir", "look", "write_all", "write_all"]
)
_KEYS = st.sampled_from(["a/é", "a/b.md", "a", "ab", "a/é/c.md", ""])
_TEXTS = st.sampled_from(["", "one", "two\r\n", "drei\r", "vier 🗝"]) | st.text(max_size=20)
_OTHERS = st.dictionaries(_KEYS.filter(bool), st.none() | _TEXTS, max_size=3)
_CONDITIONS = st.sampled_from(["none", "right", "none", "right", "absent", "wrong"])


class Model:
    """The reference implementation: keys to texts, and None for directories."""

    def __init__(self) -> None:
        self.entries: dict[str, str | None] = {}

    def write(self, key: str, text: str, expect: Expectation) -> None:
        self._refuse_text_above(key)
        if key == "" or (key in self.entries and self.entries[key] is None):
            raise IsADirectoryError
        self._refuse_unexpected(key, expect)
        self._make_above(key)
        self.entries[key] = text

    def remove(self, key: str, expect: Expectation) -> None:
        if expect is ABSENT:
            raise ValueError
        if key == "":
            raise IsADirectoryError
        if key in self.entries and self.entries[key] is None:
            if expect is not None:
                raise IsADirectoryError
            if any(other.startswith(f"{key}/") for other in self.entries):
                raise OSError
        self._refuse_unexpected(key, expect)
        if key not in self.entries:
            raise FileNotFoundError
        del self.entries[key]

    def write_all(self, changes: Mapping[str, tuple[str | None, Expectation]]) -> None:
        for key, (text, expect) in changes.items():
            if key == "":
                raise IsADirectoryError
            if text is None and expect is ABSENT:
                raise ValueError
        if any(above in changes for key in changes for above in _above(key)):
            raise NotADirectoryError
        for key, (text, expect) in changes.items():
            if text is not None:
                self._refuse_text_above(key)
            if key in self.entries and self.entries[key] is None:
                raise IsADirectoryError
            self._refuse_unexpected(key, expect)
        for key, (text, _) in changes.items():
            if text is None:
                self.entries.pop(key, None)
            else:
                self.write(key, text, None)

    def mkdir(self, key: str) -> None:
        self._refuse_text_above(key)
        if self.entries.get(key) is not None:
            raise FileExistsError
        self._make_above(f"{key}/x" if key else "x")

    def read(self, key: str) -> str:
        text = self.entries.get(key)
        if text is not None:
            return text
        raise IsADirectoryError if key == "" or key in self.entries else FileNotFoundError

    def list(self, key: str) -> list[str]:
        return sorted(k for k in self.entries if k.rpartition("/")[0] == key)

    def _refuse_text_above(self, key: str) -> None:
        if any(self.entries.get(above) is not None for above in _above(key)):
            raise NotADirectoryError

    def _refuse_unexpected(self, key: str, expect: Expectation) -> None:
        text = self.entries.get(key)
        actual = ABSENT if text is None else content_hash(text)
        if expect is not None and expect != actual:
            raise ConcurrentModificationError

    def _make_above(self, key: str) -> None:
        for above in _above(key):
            self.entries.setdefault(above, None)


def _above(key: str) -> "list[str]":
    segments = key.split("/")
    return ["/".join(segments[:count]) for count in range(1, len(segments))]


_ERRORS = (
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    FileExistsError,
    ConcurrentModificationError,
    ValueError,
    OSError,  # last: the others are kinds of it
)


def _outcome(action: Callable[[], object]) -> object:
    """Return the result of the action, or the class of its error."""
    try:
        return action()
    except _ERRORS as error:
        return next(kind for kind in _ERRORS if isinstance(error, kind))


class StorageMachine(RuleBasedStateMachine):
    """Applies each verb to a backend and to the model, and compares the outcomes."""

    open_backend: ClassVar[Callable[[Path], StorageBackend]]

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.backend = type(self).open_backend(Path(self._folder.name))
        self.model = Model()

    @rule(verb=_VERBS, key=_KEYS, text=_TEXTS, condition=_CONDITIONS, others=_OTHERS)
    def do(
        self, verb: str, key: str, text: str, condition: str, others: dict[str, str | None]
    ) -> None:
        # One rule for all verbs: Hypothesis leaves some rules out of each sequence.
        expect = self._expectation(key, condition)
        if verb == "write":
            self.write(key, text, expect)
        elif verb == "remove":
            self.remove(key, expect)
        elif verb == "mkdir":
            self.mkdir(key)
        elif verb == "write_all":
            changes = {other: (content, None) for other, content in others.items()}
            self.write_all({**changes, key: (others.get(key, text), expect)})
        else:
            self.look(key)

    def write(self, key: str, text: str, expect: Expectation) -> None:
        mine = _outcome(lambda: self.backend.write(Locator(key), text, expect=expect))
        theirs = _outcome(lambda: self.model.write(key, text, expect))
        assert mine == (Locator(key) if theirs is None else theirs)

    def remove(self, key: str, expect: Expectation) -> None:
        mine = _outcome(lambda: self.backend.remove(Locator(key), expect=expect))
        assert mine == _outcome(lambda: self.model.remove(key, expect))

    def write_all(self, changes: Mapping[str, tuple[str | None, Expectation]]) -> None:
        texts = {Locator(key): text for key, (text, _) in changes.items()}
        expect = {Locator(key): condition for key, (_, condition) in changes.items()}
        mine = _outcome(lambda: self.backend.write_all(texts, expect=expect))
        assert mine == _outcome(lambda: self.model.write_all(changes))

    def mkdir(self, key: str) -> None:
        mine = _outcome(lambda: self.backend.mkdir(Locator(key)))
        theirs = _outcome(lambda: self.model.mkdir(key))
        assert mine == (Locator(key) if theirs is None else theirs)

    def look(self, key: str) -> None:
        locator = Locator(key)
        assert _outcome(lambda: self.backend.read(locator)) == _outcome(
            lambda: self.model.read(key)
        )
        assert [child.key for child in self.backend.list(locator)] == self.model.list(key)
        assert self.backend.exists(locator) == (key == "" or key in self.model.entries)

    @invariant()
    def both_hold_the_same(self) -> None:
        assert tree(self.backend) == self.model.entries

    def teardown(self) -> None:
        self._folder.cleanup()

    def _expectation(self, key: str, condition: str) -> Expectation:
        if condition == "none":
            return None
        if condition == "absent":
            return ABSENT
        text = self.model.entries.get(key) or ""
        return content_hash(text if condition == "right" else text + "?")


class StorageMachineTests(StorageSuite):
    @requirement("001-backends-swappable", "001-seven-verbs")
    def test_any_sequence_of_verbs_behaves_like_a_dictionary(self) -> None:
        machine = type("Machine", (StorageMachine,), {"open_backend": self.open_backend})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples(60),
                stateful_step_count=25,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
