"""Diff, blame and merge of texts by lines.

A line ends with LF only, so CRLF, a bare CR and a missing final LF are content.
"""

import difflib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

_CONTEXT = 3
_UNENDED = "\\ No newline at end of file\n"
_FEW_EDITS = 32
_EFFORT = 100_000
_DEEPEST = 24


class LineOrigin(NamedTuple):
    """A line with its ending, and the index of the version that wrote it."""

    text: str
    version: int


class MatchRun(NamedTuple):
    """A number of equal lines, at these indexes in the old and the new text."""

    old: int
    new: int
    length: int


def split(text: str) -> list[str]:
    """Return the lines with their endings; joined, they are the text."""
    *ended, rest = text.split("\n")
    lines = [f"{line}\n" for line in ended]
    return [*lines, rest] if rest else lines


def diff(
    old: str, new: str, *, old_name: str = "old", new_name: str = "new", context: int = _CONTEXT
) -> str:
    """Return the unified diff, which can be applied exactly; empty if nothing differs."""
    if old == new:
        return ""
    matcher = _Matcher(split(old), split(new))
    hunks = [_hunk(matcher, codes) for codes in matcher.get_grouped_opcodes(context)]
    return "".join((f"--- {old_name}\n", f"+++ {new_name}\n", *chain.from_iterable(hunks)))


def blame(versions: Iterable[str | None]) -> list[LineOrigin]:
    """Return the lines of the last version, each with the version that last wrote it.

    None is a version without a text. A line that was removed and added again was written by the
    version that added it again.
    """
    lines: list[str] = []
    writers: list[int] = []
    for version, text in enumerate(versions):
        after = split(text or "")
        now = [version] * len(after)
        for run in matching_runs(lines, after):
            now[run.new : run.new + run.length] = writers[run.old : run.old + run.length]
        lines, writers = after, now
    return list(map(LineOrigin, lines, writers))


class MergeResult(NamedTuple):
    """The merged text; conflicting changes are between markers."""

    text: str
    clashes: int


def merge(base: str, mine: str, theirs: str) -> MergeResult:
    """Return `base` with the changes of two texts that are derived from it.

    Changes by one of them, and the same changes by both, are applied. Where both changed the same
    or adjacent lines differently, there is a conflict.
    """
    old, here, there = split(base), split(mine), split(theirs)
    out: list[str] = []
    clashes = 0
    at = left = right = 0  # how much of each of the three is in `out`
    for start, stop, mine_start, theirs_start in _agreed(old, here, there):
        before, ours, others = old[at:start], here[left:mine_start], there[right:theirs_start]
        if ours in (before, others):
            out += others
        elif others == before:
            out += ours
        else:
            clashes += 1
            out += ["<<<<<<< mine\n", *_ended(ours), "=======\n", *_ended(others)]
            out.append(">>>>>>> theirs\n")
        out += old[start:stop]
        at, left, right = stop, mine_start + stop - start, theirs_start + stop - start
    return MergeResult("".join(out), clashes)


def _agreed(
    old: Sequence[str], here: Sequence[str], there: Sequence[str]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the ranges of `old` that both others have, and where; then the end."""
    ours, others = matching_runs(old, here), matching_runs(old, there)
    while ours and others:
        one, other = ours[0], others[0]
        start, stop = (
            max(one.old, other.old),
            min(one.old + one.length, other.old + other.length),
        )
        if start < stop:
            yield start, stop, one.new + start - one.old, other.new + start - other.old
        (ours if one.old + one.length <= other.old + other.length else others).pop(0)
    yield len(old), len(old), len(here), len(there)


def _ended(lines: Sequence[str]) -> list[str]:
    return [line if line.endswith("\n") else f"{line}\n" for line in lines]


# ---------------------------------------------------------------- equal lines
class _Region(NamedTuple):
    old: int
    old_stop: int
    new: int
    new_stop: int
    depth: int = 0

    @property
    def is_empty(self) -> bool:
        return self.old == self.old_stop or self.new == self.new_stop

    @property
    def most_edits(self) -> int:
        """The most edits to search for, so that the effort is bounded."""
        lines = self.old_stop - self.old + self.new_stop - self.new
        return min(lines, max(_FEW_EDITS, _EFFORT // lines))


def matching_runs(old: Sequence[str], new: Sequence[str]) -> list[MatchRun]:
    """Return the unchanged lines, as runs in order.

    If there are few edits, their number is minimal. If there are many, lines that occur once on
    both sides are anchors. The effort is bounded: a large region with many edits and without
    anchors counts as rewritten.
    """
    found: list[MatchRun] = []
    pending = [_Region(0, len(old), 0, len(new))]
    while pending:
        region, ends = _trimmed(old, new, pending.pop())
        found += ends
        if region.is_empty:
            continue
        runs = _fewest_edits(old, new, region, _FEW_EDITS)
        if runs is None and region.depth < _DEEPEST:
            runs = _anchors(old, new, region)
            pending += _gaps(region, runs)
        if not runs and region.most_edits > _FEW_EDITS:
            runs = _fewest_edits(old, new, region, region.most_edits)
        found += runs or ()
    return _joined(sorted(run for run in found if run.length))


def _gaps(region: _Region, anchors: Sequence[MatchRun]) -> Iterator[_Region]:
    old, new, depth = region.old, region.new, region.depth + 1
    for run in anchors:
        if old < run.old and new < run.new:
            yield _Region(old, run.old, new, run.new, depth)
        old, new = run.old + run.length, run.new + run.length
    if anchors and old < region.old_stop and new < region.new_stop:
        yield _Region(old, region.old_stop, new, region.new_stop, depth)


def _trimmed(
    old: Sequence[str], new: Sequence[str], region: _Region
) -> tuple[_Region, tuple[MatchRun, MatchRun]]:
    start, stop = region.old, region.old_stop
    begin, end = region.new, region.new_stop
    while start < stop and begin < end and old[start] == new[begin]:
        start += 1
        begin += 1
    while start < stop and begin < end and old[stop - 1] == new[end - 1]:
        stop -= 1
        end -= 1
    head = MatchRun(region.old, region.new, start - region.old)
    tail = MatchRun(stop, end, region.old_stop - stop)
    return _Region(start, stop, begin, end, region.depth), (head, tail)


def _anchors(old: Sequence[str], new: Sequence[str], region: _Region) -> list[MatchRun]:
    """Return the longest sequence of lines that occur once on both sides, in the same order."""
    here = _once(old, region.old, region.old_stop)
    there = _once(new, region.new, region.new_stop)
    pairs = [(at, there[line]) for line, at in here.items() if line in there]
    return _joined(MatchRun(at, to, 1) for at, to in _longest_rising(pairs))


def _once(lines: Sequence[str], start: int, stop: int) -> dict[str, int]:
    seen: dict[str, int] = {}
    for at in range(start, stop):
        seen[lines[at]] = -1 if lines[at] in seen else at
    return {line: at for line, at in seen.items() if at >= 0}


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of `pairs` in which the second numbers increase."""
    lowest: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, to) in enumerate(pairs):
        length = bisect_left(lowest, to)
        before.append(ends[length - 1] if length else -1)
        lowest[length : length + 1] = [to]
        ends[length : length + 1] = [index]
    rising = []
    index = ends[-1] if ends else -1
    while index >= 0:
        rising.append(pairs[index])
        index = before[index]
    return rising[::-1]


def _fewest_edits(
    old: Sequence[str], new: Sequence[str], region: _Region, most: int
) -> list[MatchRun] | None:
    """Return the unchanged lines for the fewest edits, by Myers' algorithm.

    None if that takes more than `most` edits.
    """
    height, width = region.old_stop - region.old, region.new_stop - region.new
    if abs(height - width) > most:
        return None
    furthest = {1: 0}
    trace: list[dict[int, int]] = []
    for edits in range(min(most, height + width) + 1):
        trace.append(dict(furthest))
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (
                diagonal != edits and furthest[diagonal - 1] < furthest[diagonal + 1]
            )
            x = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            y = x - diagonal
            while x < height and y < width and old[region.old + x] == new[region.new + y]:
                x += 1
                y += 1
            furthest[diagonal] = x
            if x >= height and y >= width:
                return list(_path(trace, region))
    return None


def _path(trace: list[dict[int, int]], region: _Region) -> Iterator[MatchRun]:
    x, y = region.old_stop - region.old, region.new_stop - region.new
    for edits in range(len(trace) - 1, -1, -1):
        furthest, diagonal = trace[edits], x - y
        down = diagonal == -edits or (
            diagonal != edits and furthest[diagonal - 1] < furthest[diagonal + 1]
        )
        before = diagonal + 1 if down else diagonal - 1
        from_x = furthest[before] if edits else 0
        start = (from_x if down else from_x + 1) if edits else 0
        yield MatchRun(region.old + start, region.new + start - diagonal, x - start)
        x, y = from_x, from_x - before


def _joined(runs: Iterable[MatchRun]) -> list[MatchRun]:
    joined: list[MatchRun] = []
    for run in runs:
        last = joined[-1] if joined else MatchRun(-1, -1, 0)
        if (last.old + last.length, last.new + last.length) == run[:2]:
            joined[-1] = last._replace(length=last.length + run.length)
        else:
            joined.append(run)
    return joined


# ---------------------------------------------------------------- unified diffs
class _Matcher(difflib.SequenceMatcher[str]):
    """Groups differences like difflib, but finds them by `matching_runs`, which is bounded."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__(None, old, new, autojunk=False)
        self.old, self.new = old, new
        self._blocks = [difflib.Match(*run) for run in matching_runs(old, new)]

    def get_matching_blocks(self) -> list[difflib.Match]:
        return [*self._blocks, difflib.Match(len(self.old), len(self.new), 0)]


def _hunk(matcher: _Matcher, codes: Sequence[tuple[str, int, int, int, int]]) -> Iterator[str]:
    old, new = matcher.old, matcher.new
    _, old_start, _, new_start, _ = codes[0]
    _, _, old_stop, _, new_stop = codes[-1]
    yield f"@@ -{_range(old_start, old_stop)} +{_range(new_start, new_stop)} @@\n"
    for tag, start, stop, begin, end in codes:
        if tag == "equal":
            yield from _marked(" ", old[start:stop])
            continue
        yield from _marked("-", old[start:stop])
        yield from _marked("+", new[begin:end])


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line
        if not line.endswith("\n"):
            yield "\n" + _UNENDED
