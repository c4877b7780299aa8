"""A value of another kind than expected is never more than a finding, wherever it stands."""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.engine.remembering import opened
from tests.transfer.import_runs import EVERYTHING, run_import

JSON_FORMATS = sorted(EVERYTHING.keys() - {"markdown", "specstory", "basic-memory", "rules"})
ODD: tuple[object, ...] = (None, 2**70, float("nan"), "\ud83d", "x\0\n", [[]], {"a": []})
GONE = object()
Spot = tuple[Any, Any]


def spots(value: object) -> Iterator[Spot]:
    """Yield every place inside a value: what holds it, and its key or number there."""
    if isinstance(value, dict | list):
        for key in [*value] if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from spots(value[key])


def spoiled(values: list[Any], odd: object) -> Iterator[list[Any]]:
    """Yield the values, each time with something odd in one other place."""
    for number in range(len(list(spots(values)))):
        copy = deepcopy(values)
        holder, key = list(spots(copy))[number]
        if odd is GONE:
            del holder[key]
        else:
            holder[key] = odd
        yield copy


@pytest.mark.search
@pytest.mark.parametrize("odd", [*ODD, GONE], ids=lambda odd: "gone" if odd is GONE else None)
@pytest.mark.parametrize("name", JSON_FORMATS)
def test_an_odd_value_anywhere_is_survived(name: str, odd: object, tmp_path: Path) -> None:
    file, data = next(iter(EVERYTHING[name].items()))
    by_line = file.endswith(".jsonl") or name == "mcp-memory"
    whole = None if by_line else json.loads(data)
    values = [json.loads(line) for line in data.splitlines()] if by_line else [whole]
    with opened(tmp_path / "home", semantic=False) as context:
        for copy in spoiled(values, odd):
            texts = [json.dumps(each) for each in copy]
            text = "\n".join(texts) if by_line else "".join(texts)

            report = run_import(context, tmp_path / "source", name, {file: text.encode()})

            assert len(report.findings) >= report.refused
