"""Whatever was done before: what is erased is gone, or it is told who still has it."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from shutil import rmtree

import pytest

from perdure.app import Context
from perdure.artifacts import IndexState
from perdure.engine.erasure_plan import ForgetReport
from perdure.errors import NodeNotFoundError, PerdureError
from perdure.model import Uri
from tests import tiers
from tests.engine.erase.homes import FOLDER, ROOT, check_receipt, leaks, root
from tests.engine.remembering import opened

pytestmark = [pytest.mark.usefixtures("agfs"), pytest.mark.search]

NAMES = ("ape", "bee", "cat")
TEXTS = {
    "kumquat": "The kumquat hides under there.",
    "xylophone": "A xylophone vexes everybody.",
    "marzipan": "No marzipan is left for us.",
}
EXAMPLES = 40
STEPS = 12


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: no power goes here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)


@dataclass
class Play:
    """Somebody who does anything to three names, and keeps in mind what each ever said."""

    home: Path
    context: Context
    random: Random
    texts: dict[str, set[str]] = field(default_factory=lambda: {name: set() for name in NAMES})
    since: dict[str, set[str]] = field(default_factory=lambda: {name: set() for name in NAMES})
    """The same, since it was erased."""
    did: list[str] = field(default_factory=list)

    # ------------------------------------------------------------ looking
    def folder(self, name: str) -> Path:
        top = self.context.recorded.whereabouts
        return Path(top) / Uri.parse(f"{FOLDER}/{name}").key

    def text(self, name: str) -> str:
        file = self.folder(name) / "content.md"
        return file.read_text() if file.is_file() else ""

    def look(self) -> None:
        for name in NAMES:
            files = self.folder(name).glob("*") if self.folder(name).is_dir() else ()
            texts = [file.read_text() for file in files]
            held = {word for word in TEXTS if any(word in text for text in texts)}
            self.texts[name] |= held
            self.since[name] |= held

    def recorded(self, name: str) -> bool:
        file = self.context.nodes.file(Uri.parse(f"{FOLDER}/{name}"), "content.md")
        return self.context.recorded.history.current(file) is not None

    def left(self) -> set[str]:
        return {word for words in leaks(self.home, TEXTS).values() for word in words}

    # ------------------------------------------------------------ doing
    def step(self) -> None:
        verbs = (self.save, self.save, self.edit, self.move, self.rename)
        verb = self.random.choice((*verbs, self.remove, self.delete, self.archive, self.rewind))
        if self.random.random() < 0.15:
            verb = self.erase
        self.did.append(verb.__name__)
        self.do(verb)
        self.look()

    def do(self, verb: Callable[[str], object]) -> None:
        name = self.random.choice(NAMES)
        self.did.append(name)
        if verb == self.erase:
            self.erase(name)
            return
        with suppress(PerdureError):  # there is nothing to do it to
            verb(name)

    def some(self) -> str:
        return self.random.choice(list(TEXTS.values()))

    def save(self, name: str) -> None:
        """Save exactly one of the texts, so that who has a word has the content."""
        if not self.text(name):
            root(self.context).save(self.some(), category="preference", slug=name)
            return
        node = root(self.context).read(f"{FOLDER}/{name}")
        after = replace(node, content=self.some(), version=node.version + 1)
        self.context.nodes.write_node(after, ROOT)

    def edit(self, name: str) -> None:
        if self.text(name):
            (self.folder(name) / "content.md").write_text(self.some())

    def move(self, name: str) -> None:
        target = self.random.choice(NAMES)
        self.did.append(target)
        self.context.nodes.move_node(f"{FOLDER}/{name}", f"{FOLDER}/{target}", ROOT)
        self.since[target] |= self.since[name]

    def rename(self, name: str) -> None:
        target = self.random.choice(NAMES)
        self.did.append(target)
        if self.folder(name).is_dir() and not self.folder(target).exists():
            self.folder(name).rename(self.folder(target))
            self.since[target] |= self.since[name]

    def remove(self, name: str) -> None:
        if self.folder(name).is_dir():
            rmtree(self.folder(name))

    def delete(self, name: str) -> None:
        self.context.nodes.delete_node(f"{FOLDER}/{name}", ROOT)

    def archive(self, name: str) -> None:
        root(self.context).forget(f"{FOLDER}/{name}")

    def rewind(self, _name: str) -> None:
        position = self.random.randint(0, self.context.recorded.history.position())
        root(self.context).rewind(IndexState(0, position))

    def erase(self, name: str) -> None:
        others = {other: self.text(other) for other in NAMES if other != name}
        try:
            done = root(self.context).forget(f"{FOLDER}/{name}", erase=True)
        except NodeNotFoundError:  # or nobody noticed what somebody put there and took away
            assert not self.recorded(name)
            return
        self.since[name] = set()
        assert not self.folder(name).exists()
        assert {other: self.text(other) for other in others} == others
        self.check(name, done)

    def check(self, name: str, done: ForgetReport) -> None:
        """Check that what is left of what it ever said is with those who are told of."""
        report = done.erased or done.plan
        assert report is not None
        keys = {*(each.key for each in report.shared), *(new for _, new in report.moved)}
        named = {key.split("/")[-2] for key in keys}
        assert name not in named
        held = {word for other in named for word in self.since[other]}
        assert self.texts[name] & self.left() <= held
        if done.erased is not None:
            assert check_receipt(self.context, done.erased.path) == []


def play(home: Path, seed: int) -> Play:
    with opened(home, semantic=False) as context:
        root(context).save("Prefers tabs.", category="event", slug="tabs")
        played = Play(home, context, Random(tiers.seed(seed)))
        try:
            for _ in range(STEPS):
                played.step()
            for name in played.random.sample(NAMES, len(NAMES)):
                played.erase(name)
            assert played.left() == set()
            assert context.recorded.history.store.verify().ok
        except BaseException as error:
            error.add_note(f"seed {seed}: {' '.join(played.did)}")
            raise
    return played


def test_after_any_actions_what_is_erased_is_gone_or_listed(tmp_path: Path) -> None:
    every = [play(tmp_path / str(seed), seed) for seed in range(EXAMPLES)]

    verbs = {word for each in every for word in each.did}
    assert verbs >= {"save", "edit", "move", "rename", "remove", "delete", "rewind", "erase"}
    assert sum(any(each.texts.values()) for each in every) > EXAMPLES // 2
