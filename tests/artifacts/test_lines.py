"""Differences that can be applied, and lines that know who wrote them."""

import random
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perdure.artifacts.lines import LineOrigin, blame, diff, matching_runs, split

LINES = st.sampled_from(["", "a", "b", "c", "\r", "a\r", "-- x", "++ y", "\\ No", "\x0b", "\u2028"])
TEXTS = st.builds(
    lambda lines, end: "\n".join(lines) + end, st.lists(LINES, max_size=12), st.sampled_from("\n ")
)


def apply(old: str, patch: str) -> str:
    """Do what a unified diff says, and check all that it says of the old text."""
    if not patch:
        return old
    lines, built, at = split(old), list[str](), 0
    hunks = re.split(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@\n", patch, flags=re.MULTILINE)
    for start, length, body in zip(hunks[1::3], hunks[2::3], hunks[3::3], strict=True):
        first = int(start) - (length != "0")
        built += lines[at:first]
        at = first
        for mark, line in marked_lines(body):
            if mark in " -":
                assert lines[at] == line
                at += 1
            if mark in " +":
                built.append(line)
    return "".join(built + lines[at:])


def marked_lines(body: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in split(body):
        if line.startswith("\\"):
            mark, before = found[-1]
            found[-1] = mark, before.removesuffix("\n")
        else:
            found.append((line[0], line[1:]))
    return found


class TestDiff:
    def test_the_same_text_has_no_difference(self) -> None:
        assert diff("a\n", "a\n") == ""
        assert diff("", "") == ""

    def test_it_reads_as_others_write_it(self) -> None:
        assert diff("a\nb\nc\n", "a\nB\nc\n", old_name="x", new_name="y") == (
            "--- x\n+++ y\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
        )

    def test_a_missing_end_is_reported(self) -> None:
        assert diff("a", "a\n").endswith("-a\n\\ No newline at end of file\n+a\n")
        assert diff("a\n", "a").endswith("-a\n+a\n\\ No newline at end of file\n")

    def test_only_a_newline_ends_a_line(self) -> None:
        assert diff("a\rb\x0bc\u2028d\n", "").count("\n-") == 1
        assert "-a\r\n+a\n" in diff("a\r\n", "a\n")

    def test_as_much_context_is_shown_as_was_asked_for(self) -> None:
        old = "".join(f"{number}\n" for number in range(20))
        new = old.replace("10\n", "ten\n")

        assert diff(old, new, context=0).count("\n") == 5
        assert diff(old, new, context=2).count("\n") == 9

    @given(TEXTS, TEXTS)
    @example("", "a")
    @example("a", "")
    @example("\n", "")
    def test_applied_to_the_old_text_it_gives_the_new_one(self, old: str, new: str) -> None:
        assert apply(old, diff(old, new)) == new

    def test_a_well_known_tool_can_apply_it(self, tmp_path: Path) -> None:
        git = shutil.which("git")
        if git is None:
            pytest.fail("git is not installed")
        for old, new in (
            ("a\nb", "a\nb\n"),
            ("a\r\nb\rc\n\n", "x\r\nb\rc"),
            ("1\n2\n3\n", "3\n1\n"),
        ):
            (tmp_path / "note").write_bytes(old.encode())
            patch = diff(old, new, old_name="a/note", new_name="b/note").encode()
            subprocess.run((git, "apply", "-"), cwd=tmp_path, input=patch, check=True)

            assert (tmp_path / "note").read_bytes() == new.encode()


class TestSplit:
    @given(st.text(alphabet="a\n\r\x0b\u2028"))
    def test_lines_joined_are_the_text(self, text: str) -> None:
        lines = split(text)

        assert "".join(lines) == text
        assert [line.count("\n") for line in lines[:-1]] == [1] * len(lines[:-1])


class TestMatches:
    @given(st.lists(st.sampled_from("abcd"), max_size=30), st.lists(st.sampled_from("abcd")))
    def test_what_matches_is_equal_and_in_order(self, old: list[str], new: list[str]) -> None:
        old_at = new_at = 0
        for run in matching_runs(old, new):
            assert run.length > 0
            assert run.old >= old_at
            assert run.new >= new_at
            old_at, new_at = run.old + run.length, run.new + run.length
            assert old[run.old : old_at] == new[run.new : new_at]

    @given(
        st.lists(st.sampled_from("abcd"), max_size=14),
        st.lists(st.sampled_from("abcd"), max_size=14),
    )
    def test_a_few_edits_are_the_fewest(self, old: list[str], new: list[str]) -> None:
        assert sum(run.length for run in matching_runs(old, new)) == longest_common(old, new)

    def test_many_edits_are_held_together_by_lines_that_occur_once(self) -> None:
        old = [line for number in range(100) for line in (f"{number}", "", f"old {number}")]
        new = [line for number in range(100) for line in (f"{number}", "", f"new {number}", "")]

        same = {old[run.old + at] for run in matching_runs(old, new) for at in range(run.length)}

        assert {f"{number}" for number in range(100)} <= same

    def test_many_edits_among_lines_that_all_occur_often_are_found_too(self) -> None:
        old = ["a", "b", "c"] * 100
        new = [line for at, line in enumerate(old) if at % 6]

        assert sum(run.length for run in matching_runs(old, new)) == len(new)

    def test_a_block_that_moved_is_put_in_once_and_taken_out_once(self) -> None:
        block, rest = [f"b{n}" for n in range(40)], [f"r{n}" for n in range(60)]

        runs = matching_runs([*block, *rest], [*rest, *block])

        assert [(run.old, run.new, run.length) for run in runs] == [(40, 0, 60)]


def longest_common(old: Sequence[str], new: Sequence[str]) -> int:
    row = [0] * (len(new) + 1)
    for left in old:
        above = row
        row = [0]
        for at, right in enumerate(new):
            row.append(above[at] + 1 if left == right else max(above[at + 1], row[at]))
    return row[-1]


class TestBlame:
    def test_each_line_was_written_by_the_version_that_last_changed_it(self) -> None:
        versions = ["a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\nd\n"]

        assert blame(versions) == [
            LineOrigin("a\n", 0),
            LineOrigin("B\n", 1),
            LineOrigin("c\n", 0),
            LineOrigin("d\n", 2),
        ]

    def test_a_line_that_came_back_was_written_by_who_brought_it_back(self) -> None:
        assert blame(["a\nb\n", "a\n", "a\nb\n"]) == [("a\n", 0), ("b\n", 2)]

    def test_after_a_removal_everything_is_written_again(self) -> None:
        assert blame(["a\n", None, "a\n"]) == [("a\n", 2)]
        assert blame(["a\n", None]) == []
        assert blame([]) == []

    def test_a_line_that_got_its_end_is_another_line(self) -> None:
        assert blame(["a", "a\n"]) == [("a\n", 1)]

    def test_one_of_many_equal_lines_is_distinguished_from_the_others(self) -> None:
        assert [line.version for line in blame(["\n" * 5, "\n" * 6])].count(1) == 1

    @given(st.lists(TEXTS, min_size=1, max_size=6))
    def test_lines_are_those_of_the_last_version_and_were_there_when_blamed(
        self, versions: list[str]
    ) -> None:
        lines = blame(versions)

        assert "".join(line.text for line in lines) == versions[-1]
        for line in lines:
            for version in range(line.version, len(versions)):
                assert line.text in split(versions[version])

    @given(st.lists(st.sampled_from([("i", 0), ("i", 1), ("d", 0), ("d", 1)]), max_size=15))
    def test_with_lines_of_one_kind_each_it_is_what_the_editor_did(
        self, edits: list[tuple[str, int]]
    ) -> None:
        page = [("start\n", 0)]
        versions = ["start\n"]
        for number, (what, where) in enumerate(edits, 1):
            at = where * len(page)
            if what == "i":
                page.insert(at, (f"{number}\n", number))
            elif page:
                del page[min(at, len(page) - 1)]
            versions.append("".join(line for line, _ in page))

        assert blame(versions) == page

    @pytest.mark.parametrize("kinds", [1_000_000, 5])
    def test_a_thousand_versions_of_a_thousand_lines_are_blamed_at_once(self, kinds: int) -> None:
        chance = random.Random(4)
        page = [f"{chance.randrange(kinds)}" for _ in range(1000)]
        versions = []
        for _ in range(1000):
            versions.append("\n".join(page))
            for _ in range(10):
                page[chance.randrange(1000)] = f"{chance.randrange(kinds)}"
        begun = time.process_time()

        assert len(blame(versions)) == 1000
        assert time.process_time() - begun < 10  # takes 0.5 s; without bounds, minutes

    @pytest.mark.parametrize("kinds", [1_000_000, 5, 1])
    def test_long_texts_that_share_little_are_compared_with_bounded_effort(
        self, kinds: int
    ) -> None:
        chance = random.Random(4)
        old, new = ([f"{chance.randrange(kinds)}" for _ in range(50_000)] for _ in range(2))
        begun = time.process_time()

        assert apply("\n".join(old), diff("\n".join(old), "\n".join(new))) == "\n".join(new)
        assert time.process_time() - begun < 10  # takes 1 s
