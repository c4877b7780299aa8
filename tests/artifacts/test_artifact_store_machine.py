"""Any sequence of verbs on two stores at once gives what a dictionary would give."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure.artifacts import CID, ArtifactStore
from perdure.artifacts.content_index import ContentIndex
from perdure.artifacts.disk import Disk, FolderDisk
from perdure.testing.requirement import requirement
from tests.support.artifacts.machine import check_store
from tests.support.artifacts.memory_disk import MemoryDisk


@requirement("004-get-deterministic", "004-state-replayable", "004-put-idempotent")
def test_any_sequence_of_verbs_on_a_disk_in_memory() -> None:
    check_store(MemoryDisk, examples=120)


def test_any_sequence_of_verbs_on_a_folder(tmp_path: Path) -> None:
    def make_disk() -> Disk:
        return FolderDisk(tempfile.mkdtemp(dir=tmp_path))

    check_store(make_disk, examples=12)


def test_any_sequence_of_verbs_when_every_commit_writes_a_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ContentIndex, "is_long", True)

    check_store(MemoryDisk, examples=40)


# ---------------------------------------------------------------- it bites


def forgets_lifts(self: ContentIndex, digest: bytes, commit: int, *, visible: bool) -> None:
    if not visible:
        TOGGLE(self, digest, commit, visible=visible)


def shows_the_present(self: ArtifactStore, cid: CID, state: Any = None) -> bool:  # noqa: ANN401
    return HAS(self, cid)


def has_no_horizon(self: ArtifactStore, position: int) -> None:
    """Answer for any state."""


TOGGLE = ContentIndex._toggle
HAS = ArtifactStore.has


@pytest.mark.parametrize(
    ("kind", "name", "broken"),
    [
        (ContentIndex, "_toggle", forgets_lifts),
        (ArtifactStore, "has", shows_the_present),
        (ArtifactStore, "_check_retained", has_no_horizon),
    ],
)
def test_a_broken_store_is_found_out(
    monkeypatch: pytest.MonkeyPatch, kind: type, name: str, broken: Callable[..., object]
) -> None:
    monkeypatch.setattr(kind, name, broken)

    with pytest.raises(AssertionError):
        check_store(MemoryDisk, examples=60, shrink=False)
