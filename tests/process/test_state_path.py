"""Where the plan is, and its progress, on each backend."""

from pathlib import Path

import pytest

from perdure.errors import ActivePlanError
from perdure.harness.state_files import named_plan
from perdure.harness.state_writer import start_plan
from perdure.process import state_path
from perdure.testing.requirement import requirement
from tests.harness.test_plans import UNSAFE
from tests.process.conftest import Here


def begin(here: Here, name: str) -> None:
    opened = here.machine.opened()
    start_plan(opened.place, opened.device, named_plan(name), "- [ ] do it\n")


class TestPath:
    @requirement("002-state-path-plan-or-progress", "002-state-path-vault")
    @requirement("002-context-cwd", "002-context-keys-optional")
    @pytest.mark.parametrize(("which", "file"), [("plan", "PLAN.md"), ("progress", "progress.md")])
    def test_it_is_where_the_state_is_stored(self, here: Here, which: str, file: str) -> None:
        path = state_path(here.context, which)

        assert path == here.machine.state / file
        assert isinstance(path, Path)

    @requirement("002-context-plan", "002-state-path-named-plan")
    def test_a_plan_can_be_named(self, here: Here) -> None:
        context = {**here.context, "plan": "foo"}

        assert state_path(context, "plan") == here.machine.state / "PLAN-foo.md"
        assert state_path(context, "progress") == here.machine.state / "progress-foo.md"

    @requirement("002-context-plan-default", "002-state-path-named-plan")
    def test_else_it_is_the_active_one(self, here: Here) -> None:
        begin(here, "foo")

        for context in (here.context, {**here.context, "plan": None}):
            assert state_path(context, "plan") == here.machine.state / "PLAN-foo.md"
            assert state_path(context, "progress") == here.machine.state / "progress-foo.md"

    @requirement("002-context-none", "002-context-cwd-default")
    def test_without_a_context_it_is_where_the_process_works(
        self, here: Here, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(here.machine.root)

        assert state_path(None, "plan") == here.machine.state / "PLAN.md"

    @requirement("001-hook-progress-beside-plan")
    def test_progress_lies_beside_the_plan(self, here: Here) -> None:
        begin(here, "foo")

        plan, progress = (state_path(here.context, which) for which in ("plan", "progress"))

        assert plan.parent == progress.parent
        assert plan.is_file()
        assert progress.is_file()


class TestDegrading:
    @requirement("002-state-path-degrades", "002-state-path-never-none")
    def test_without_a_memory_it_is_in_the_project(self, here: Here) -> None:
        here.take_away()

        for which, file in (("plan", "PLAN.md"), ("progress", "progress.md")):
            assert state_path(here.context, which) == here.machine.root / ".harness" / file

    @requirement("002-state-path-degrades")
    def test_so_it_is_with_a_config_that_is_wrong(self, here: Here) -> None:
        (here.machine.home / "config.toml").write_text("[storage\n")

        assert state_path(here.context, "plan") == here.machine.root / ".harness" / "PLAN.md"

    @requirement("002-state-path-never-none")
    def test_so_it_is_where_nothing_is(self, here: Here) -> None:
        nowhere = here.machine.place / "nowhere"

        assert state_path({"cwd": str(nowhere)}, "plan") == nowhere / ".harness" / "PLAN.md"

    @requirement("002-state-path-degrades")
    def test_so_it_is_for_who_opted_out(self, here: Here) -> None:
        here.machine.mark(".project-mode", "local")

        assert state_path(here.context, "plan") == here.machine.root / ".harness" / "PLAN.md"


class TestLoud:
    @requirement("002-state-path-unknown-which")
    @pytest.mark.parametrize("which", ["plans", "", "PLAN", None, 1])
    def test_there_is_no_other_file(self, here: Here, which: str) -> None:
        with pytest.raises(ValueError, match="Fix: use plan or progress"):
            state_path(here.context, which)

    @requirement("002-state-path-dangling-marker", "002-state-path-corrupt-never-local")
    def test_a_marker_that_leads_nowhere_is_an_error(self, here: Here) -> None:
        begin(here, "bar")
        here.machine.mark("active-plan", "foo")

        for which in ("plan", "progress"):
            with pytest.raises(ActivePlanError):
                state_path(here.context, which)

    @requirement("002-state-path-corrupt-never-local", "002-state-path-dangling-marker")
    def test_so_it_is_without_a_memory(self, here: Here) -> None:
        here.take_away()
        here.machine.mark("active-plan", "foo")

        with pytest.raises(ActivePlanError):
            state_path(here.context, "plan")

    @requirement("002-state-path-unsafe-marker", "002-state-path-corrupt-never-local")
    @pytest.mark.parametrize("text", UNSAFE)
    def test_a_marker_that_could_lead_anywhere_is_an_error(self, here: Here, text: str) -> None:
        here.machine.mark("active-plan", text)

        with pytest.raises(ValueError, match="Fix"):
            state_path(here.context, "plan")

    @pytest.mark.parametrize("name", [each for each in UNSAFE if each])
    def test_so_is_a_name_that_could(self, here: Here, name: str) -> None:
        with pytest.raises(ValueError, match="Fix"):
            state_path({**here.context, "plan": name}, "plan")

    @pytest.mark.parametrize("name", [".project-mode", "project.json"])
    def test_so_are_other_marks_that_make_no_sense(self, here: Here, name: str) -> None:
        here.machine.mark(name, "nonsense")

        with pytest.raises(ValueError, match="Fix"):
            state_path(here.context, "plan")
