"""`python -m perdure.process`, as a shell runs it."""

import json

import pytest

from perdure.process import offer_save_here, recall_here, state_path
from perdure.testing.requirement import requirement
from tests.process.conftest import PROJECT, Here

OFFER = ("offer-save-here", "--kind", "decision", "--slug", "database")


class TestRecallHere:
    @requirement("002-shim-recall-here", "002-module-is-the-contract")
    def test_it_prints_the_markdown(self, here: Here) -> None:
        here.save("We chose SQLite.", project=PROJECT)
        here.save("It crashed on Ünïcode.", category="bug", project=PROJECT)

        assert here.run("recall-here") == (0, recall_here(here.context), "")
        arguments = ("--cwd", here.context["cwd"], "--phase", "release", "--limit", "200")
        code, text, _ = here.run("recall-here", *arguments, cwd=here.machine.place)
        assert (code, text) == (
            0,
            recall_here({**here.context, "phase": "release"}, limit=200),
        )
        code, text, _ = here.run("recall-here", "--query", "crashed")
        assert text == recall_here(here.context, query="crashed")
        assert "Ünïcode" in text

    @requirement("002-shim-recall-here-empty", "002-shim-exit-zero")
    def test_it_prints_nothing_if_there_is_nothing(self, here: Here) -> None:
        assert here.run("recall-here") == (0, "", "")
        assert here.run("recall-here", "--query", "x") == (0, "", "")

    @requirement("002-shim-exit-zero")
    def test_an_absent_memory_is_reported_on_stderr_and_is_no_failure(self, here: Here) -> None:
        here.take_away()

        for arguments in (("recall-here",), ("recall-here", "--query", "x")):
            code, text, beside = here.run(*arguments)
            assert (code, text) == (0, "")
            assert beside.startswith("perdure: ")
            assert "Fix: " in beside
            assert beside.count("\n") == 1


class TestStatePath:
    @requirement("002-shim-state-path", "002-module-is-the-contract")
    @pytest.mark.parametrize("which", ["plan", "progress"])
    def test_it_prints_the_path(self, here: Here, which: str) -> None:
        assert here.run("state-path", which) == (0, f"{state_path(here.context, which)}\n", "")
        arguments = ("--cwd", here.context["cwd"], "--plan", "foo")
        _, text, _ = here.run("state-path", which, *arguments, cwd=here.machine.place)
        assert text == f"{state_path({**here.context, 'plan': 'foo'}, which)}\n"

    @requirement("002-shim-exit-zero")
    def test_an_absent_memory_is_reported_on_stderr_and_is_no_failure(self, here: Here) -> None:
        here.take_away()

        code, text, beside = here.run("state-path", "plan")

        assert (code, text) == (0, f"{here.machine.root}/.harness/PLAN.md\n")
        assert beside.startswith("perdure: ")

    def test_a_marker_that_makes_no_sense_is_a_failure(self, here: Here) -> None:
        here.machine.mark("active-plan", "../other")

        code, text, beside = here.run("state-path", "plan")

        assert (code, text) == (1, "")
        assert "is not a valid name of a plan" in beside

    def test_there_is_no_other_file(self, here: Here) -> None:
        code, _, beside = here.run("state-path", "roadmap")

        assert code == 2
        assert "invalid choice: 'roadmap'" in beside


class TestOfferSaveHere:
    @requirement("002-shim-offer-save-here", "002-module-is-the-contract")
    def test_it_prints_the_candidates_as_indented_json(self, here: Here) -> None:
        (here.machine.place / "body").write_text("We chose SQLite.\n")
        more = ("--phase", "plan", "--confidence", "high", "--confidence-reason", "it was said")
        body = ("--body-file", str(here.machine.place / "body"))

        code, text, _ = here.run(*OFFER, *more, *body, "--cwd", here.context["cwd"])

        candidate = {
            "kind": "decision",
            "slug": "database",
            "body": "We chose SQLite.\n",
            "confidence": "high",
            "confidence_reason": "it was said",
        }
        expected = offer_save_here({**here.context, "phase": "plan"}, candidate)
        assert (code, text) == (0, f"{json.dumps(expected, indent=2)}\n")

    @requirement("002-shim-offer-stdin")
    def test_a_dash_reads_the_body_from_stdin(self, here: Here) -> None:
        _, text, _ = here.run(*OFFER, "--body-file", "-", stdin="We chose é.\n")

        (offered,) = json.loads(text)
        assert offered["body"] == "We chose é.\n"
        assert offered["project"] == PROJECT

    @requirement("002-shim-offer-required")
    @pytest.mark.parametrize("missing", ["--kind", "--slug"])
    def test_it_demands_kind_and_slug(self, here: Here, missing: str) -> None:
        at = OFFER.index(missing)

        code, text, beside = here.run(*OFFER[:at], *OFFER[at + 2 :])

        assert (code, text) == (2, "")
        assert missing in beside

    @requirement("002-shim-exit-zero")
    def test_an_absent_memory_is_an_empty_list(self, here: Here) -> None:
        here.take_away()

        code, text, beside = here.run(*OFFER)

        assert (code, text) == (0, "[]\n")
        assert beside.startswith("perdure: ")

    def test_a_body_that_is_not_there_is_a_failure(self, here: Here) -> None:
        code, text, beside = here.run(*OFFER, "--body-file", "nowhere")

        assert (code, text) == (1, "")
        assert "nowhere" in beside


class TestVerbs:
    def test_help_tells_all_of_them(self, here: Here) -> None:
        code, text, _ = here.run("--help")

        assert code == 0
        for verb in ("recall-here", "state-path", "offer-save-here"):
            assert verb in text

    @pytest.mark.parametrize("arguments", [(), ("nonsense",), ("recall-here", "--limit", "x")])
    def test_what_is_none_is_refused(self, here: Here, arguments: tuple[str, ...]) -> None:
        assert here.run(*arguments)[0] == 2
