"""Recall finds as much of what answers a question as recorded, on public conversations.

The data is never in the repository; it is in `shared/data` beside the checkout. Without a model
the ranking is exact, and so are the figures.
"""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from perdure.index.minilm import find_model
from tests.net.recording import HERE, RECORDING, same_as_recorded

REPOSITORY = Path(__file__).parents[2]
DATA = next(
    (found for above in REPOSITORY.parents if (found := above / "shared" / "data").is_dir()),
    REPOSITORY.parent / "shared" / "data",
)
"""Beside the checkout, or further up for a worktree."""
MODELS = Path(sys.prefix) / "models"
HAS_MODEL = find_model(MODELS) is not None
WITHOUT_MODEL = "perdure, words only"
WITH_MODEL = "perdure"
POINTS = 0.5
"""So much may a figure with the model differ: processors round its arithmetic differently."""

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(),
    reason="net: there is no shared/data beside the checkout to measure recall on",
)
Rows = list[dict[str, Any]]
Figures = dict[str, dict[str, Any]]
"""By set and kind of question: how many, and R@10 of turns and of sessions in per cent."""


def test_recall_of_one_conversation_is_as_recorded(tmp_path: Path) -> None:
    rows = _rows(tmp_path, "--only", "locomo", "--conversations", "1")

    same_as_recorded("recall_of_one.json", _json(_figures(rows, WITHOUT_MODEL)))


@pytest.fixture(scope="module")
def all_rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Measure both sets, with and without the model; without it, if none is installed."""
    folder = tmp_path_factory.mktemp("recall")
    with_model = ("--models", str(MODELS)) if HAS_MODEL else ()
    _rows(folder, "--only", "locomo", *with_model)
    return _rows(folder, "--only", "longmemeval", *with_model)


@pytest.mark.net_recall
@pytest.mark.timeout(3600)
def test_recall_by_words_is_as_recorded(all_rows: Rows) -> None:
    same_as_recorded("recall.json", _json(_figures(all_rows, WITHOUT_MODEL)))


@pytest.mark.net_recall
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not HAS_MODEL, reason="net: no model is installed. Fix: make .venv/model.stamp")
def test_recall_with_the_model_is_as_recorded(all_rows: Rows) -> None:
    found = _figures(all_rows, WITH_MODEL)
    if RECORDING:
        same_as_recorded("recall_with_model.json", _json(found))
    recorded: Figures = json.loads((HERE / "recall_with_model.json").read_text(encoding="utf-8"))

    assert found.keys() == recorded.keys()
    for name, figures in recorded.items():
        near = {kind: pytest.approx(of_kind, abs=POINTS) for kind, of_kind in figures.items()}
        assert found[name] == near


def _rows(folder: Path, *options: str) -> Rows:
    """Return how each ranker did on each question, in this run and those before in the folder."""
    file = folder / "rows"
    benchmark = str(REPOSITORY / "benchmarks" / "recall.py")
    command = [sys.executable, benchmark, str(DATA), "--rows", str(file), *options]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _figures(rows: Rows, ranker: str) -> Figures:
    grouped: dict[str, dict[str, Rows]] = defaultdict(lambda: defaultdict(list))
    for row in (row for row in rows if row["ranker"] == ranker):
        for kind in ("all", row["kind"]):
            grouped[row["set"]][kind].append(row)
    return {
        name: {kind: _means(of_kind) for kind, of_kind in sorted(kinds.items())}
        for name, kinds in sorted(grouped.items())
    }


def _means(rows: Rows) -> dict[str, float]:
    shares = {name: fmean(row[name] for row in rows) for name in ("turn", "session")}
    return {"n": len(rows), **{f"{name} R@10": round(100 * s, 3) for name, s in shares.items()}}


def _json(figures: Figures) -> str:
    return json.dumps(figures, indent=1) + "\n"
