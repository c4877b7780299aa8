"""What importing promises for every format, as checks that broken importers fail."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure.app import Context
from perdure.storage.recorded import Recorded
from perdure.testing.importer import laid_out
from perdure.transfer.imports import Importer, ImportOptions
from tests.engine.remembering import opened
from tests.transfer import samples
from tests.transfer.import_runs import (
    EVERYTHING,
    OWNER,
    Make,
    contents,
    counted,
    position,
    take,
)

Check = Callable[..., None]


WORDS = {
    "chatgpt": "dinghy",
    "claude": "flour",
    "claude-code": "fixture",
    "codex": "test",
    "mem0": "tea",
    "mcp-memory": "Porto",
    "markdown": "Guide",
    "specstory": "harbours",
    "basic-memory": "acid",
    "letta": "ferry",
    "rules": "tabs",
}
"""A word that is found when the source of a format went in."""


class Killed(BaseException):
    """Nobody catches it."""


def the_same_twice_changes_nothing(place: Path, name: str, make: Make = Importer) -> None:
    folder = laid_out(place / "source", EVERYTHING[name])
    with opened(place / "home", semantic=False) as context:
        first = counted(take(context, folder, name, make=make))
        assert set().union(*first.values()) == {"new"}
        before = position(context)

        again = counted(take(context, folder, name, make=make))

        assert set().union(*again.values()) == {"same"}
        assert position(context) == before


def a_dry_run_says_what_would_be_and_writes_nothing(
    place: Path, name: str, make: Make = Importer
) -> None:
    folder = laid_out(place / "source", EVERYTHING[name])
    with opened(place / "home", semantic=False) as context:
        before = position(context)

        planned = counted(
            take(context, folder, name, options=ImportOptions(dry_run=True), make=make)
        )

        assert position(context) == before
        assert counted(take(context, folder, name, make=make)) == planned
        again = counted(take(context, folder, name, options=ImportOptions(dry_run=True), make=make))
        assert set().union(*again.values()) == {"same"}


def killed_anywhere_it_is_finished_by_doing_it_again(
    place: Path, name: str, make: Make = Importer
) -> None:
    folder = laid_out(place / "source", EVERYTHING[name])
    with opened(place / "whole", semantic=False) as context:
        take(context, folder, name, make=make)
        wanted = contents(context), _hits(context, name)
    step = 0
    while True:
        home = place / f"home-{step}"
        with opened(home, semantic=False) as context:
            if not _killed_at(step, context, folder, name, make):
                assert step > 1, "nobody was killed"
                return
        with opened(home, semantic=False) as context:
            take(context, folder, name, make=make)
            assert (contents(context), _hits(context, name)) == wanted
            before = position(context)
            again = counted(take(context, folder, name, make=make))
            assert set().union(*again.values()) == {"same"}
            assert position(context) == before
        step += 1


def what_went_in_is_found(place: Path, name: str, make: Make = Importer) -> None:
    folder = laid_out(place / "source", EVERYTHING[name])
    with opened(place / "home", semantic=False) as context:
        take(context, folder, name, make=make)

        assert _hits(context, name)


def unusable_items_are_findings_and_the_rest_is_imported(
    place: Path, name: str, make: Make = Importer
) -> None:
    bad = {
        "markdown": "bad.md",
        "specstory": "bad.md",
        "basic-memory": "bad.md",
        "rules": "bad.mdc",
        "chatgpt": "conversations-1.json",
        "claude": "conversations-1.json",
    }
    file = bad.get(name, "bad.jsonl" if name in {"claude-code", "codex"} else "bad.json")
    folder = laid_out(place / "source", {**EVERYTHING[name], file: b'{"a": \xff'})
    whole = laid_out(place / "whole", EVERYTHING[name])
    with opened(place / "one", semantic=False) as context:
        wanted = counted(take(context, whole, name))
    with opened(place / "home", semantic=False) as context:
        report = take(context, folder, name, make=make)

        assert [each.file for each in report.findings if each.refused] == [file]
        assert report.refused == 1
        kinds = {kind: {**states} for kind, states in counted(report).items()}
        for states in kinds.values():
            states.pop("refused", None)
        assert kinds == wanted


def no_name_or_title_brings_a_secret_in(place: Path, name: str, make: Make = Importer) -> None:
    folder = laid_out(place / "source", samples.NAMED[name])
    with opened(place / "home", semantic=False) as context:
        report = take(context, folder, name, make=make)

        history = context.recorded.history
        texts = [history.text(each) for each in history.changes() if not each.unbound]
        keys = history.store.catalogue.names("", history.position())
        assert texts or report.refused
        assert not any(samples.BODY in text for text in (*texts, *keys, *map(str, report.findings)))


EVERY: tuple[Check, ...] = (
    the_same_twice_changes_nothing,
    a_dry_run_says_what_would_be_and_writes_nothing,
    killed_anywhere_it_is_finished_by_doing_it_again,
    what_went_in_is_found,
    unusable_items_are_findings_and_the_rest_is_imported,
    no_name_or_title_brings_a_secret_in,
)


def _hits(context: Context, name: str) -> list[str]:
    result = context.memory.for_caller(OWNER).recall(WORDS[name])
    assert result.index_lag == 0
    return [hit.uri for hit in result.hits]


def _killed_at(step: int, context: Context, folder: Path, name: str, make: Make) -> bool:
    """Import, and be killed before or after the nth commit; say whether it came to that."""
    left = step

    def count() -> None:
        nonlocal left
        if left == 0:
            raise Killed
        left -= 1

    def commit(self: Recorded, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401 - as it is
        count()
        done = whole(self, *args, **kwargs)
        count()
        return done

    whole = Recorded.commit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recorded, "commit", commit)
        try:
            take(context, folder, name, make=make)
        except Killed:
            return True
    return False
