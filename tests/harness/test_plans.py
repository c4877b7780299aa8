"""The plans of a project, on each backend: named ones, the active one, and their tasks."""

import pytest

from perdure.errors import ActivePlanError, HarnessError, PlanNameError
from perdure.harness.state_files import (
    DEFAULT,
    list_plans,
    named_plan,
    resolve_active_plan,
    tasks_in,
)
from perdure.harness.state_writer import clear_plan, start_plan, switch_plan
from perdure.testing.requirement import requirement
from tests.harness.conftest import Machine, git

pytestmark = pytest.mark.usefixtures("agfs")

PLAN = "# Ship it\n\n- [x] build\n- [ ] test\n* [X] name\n1. [ ] sell\n"
UNSAFE = ["../other", "a/b", "..", "", "A B", "PLAN", "x" * 101, "a\nb", "\0"]


class TestActive:
    def test_without_a_marker_it_is_the_one_without_a_name(self, machine: Machine) -> None:
        plan = resolve_active_plan(machine.opened().place)

        assert (plan.plan_file, plan.progress_file) == ("PLAN.md", "progress.md")
        assert plan == DEFAULT

    def test_a_marker_names_it(self, machine: Machine) -> None:
        opened = machine.opened()
        start_plan(opened.place, opened.device, named_plan("foo"), PLAN)

        plan = resolve_active_plan(opened.place)

        assert (plan.plan_file, plan.progress_file) == ("PLAN-foo.md", "progress-foo.md")
        assert (machine.root / ".harness" / "active-plan").read_text() == "foo\n"
        assert (machine.state / "PLAN-foo.md").read_text() == PLAN
        assert (machine.state / "progress-foo.md").is_file()

    def test_who_names_one_gets_it_whatever_the_marker_says(self, machine: Machine) -> None:
        machine.mark("active-plan", "../nonsense")

        assert resolve_active_plan(machine.opened().place, "bar").plan_file == "PLAN-bar.md"

    @requirement("002-state-path-dangling-marker")
    def test_a_marker_that_leads_nowhere_is_loud(self, machine: Machine) -> None:
        opened = machine.opened()
        start_plan(opened.place, opened.device, DEFAULT, PLAN)
        machine.mark("active-plan", "foo")

        with pytest.raises(ActivePlanError, match="there is no PLAN-foo"):
            resolve_active_plan(opened.place)

    @requirement("002-state-path-unsafe-marker")
    @pytest.mark.parametrize("content", UNSAFE)
    def test_a_marker_that_could_lead_anywhere_is_loud(
        self, machine: Machine, content: str
    ) -> None:
        machine.mark("active-plan", content)

        with pytest.raises(ActivePlanError, match="Fix: `perdure plan switch"):
            resolve_active_plan(machine.opened().place)

    def test_a_marker_that_is_no_text_is_loud(self, machine: Machine) -> None:
        machine.mark("active-plan", "").write_bytes(b"\xff\xfe")

        with pytest.raises(ActivePlanError, match="can't be read"):
            resolve_active_plan(machine.opened().place)

    def test_a_marker_that_is_a_link_is_loud(self, machine: Machine) -> None:
        marker = machine.mark("active-plan", "foo")
        marker.rename(machine.root / "elsewhere")
        marker.symlink_to(machine.root / "elsewhere")

        with pytest.raises(ActivePlanError, match="never followed"):
            resolve_active_plan(machine.opened().place)

    def test_two_worktrees_work_on_two_plans_of_one_project(self, vaulted: Machine) -> None:
        top = vaulted.root
        git(top, "init", "-q")
        git(top, "commit", "-q", "--allow-empty", "-m", "begin")
        git(top, "worktree", "add", "-q", "../other")
        one, two = vaulted.opened(top), vaulted.opened(vaulted.place / "other")
        start_plan(one.place, one.device, named_plan("foo"), PLAN)
        start_plan(two.place, two.device, named_plan("bar"), PLAN)

        assert resolve_active_plan(one.place).name == "foo"
        assert resolve_active_plan(two.place).name == "bar"
        assert [each.plan.name for each in list_plans(one.place)] == ["bar", "foo"]


class TestChanging:
    def test_a_plan_that_is_there_is_not_begun_again(self, machine: Machine) -> None:
        opened = machine.opened()
        start_plan(opened.place, opened.device, named_plan("foo"), PLAN)
        clear_plan(opened.place, opened.device)

        with pytest.raises(HarnessError, match="already exists"):
            start_plan(opened.place, opened.device, named_plan("foo"), "# New\n")
        assert list_plans(opened.place)[0].text == PLAN
        assert resolve_active_plan(opened.place) == DEFAULT

    def test_progress_of_before_stays(self, machine: Machine) -> None:
        opened = machine.opened()
        machine.state.mkdir(parents=True, exist_ok=True)
        (machine.state / "progress-foo.md").write_text("noted")

        start_plan(opened.place, opened.device, named_plan("foo"), PLAN)

        assert (machine.state / "progress-foo.md").read_text() == "noted"

    def test_an_existing_one_can_be_activated(self, machine: Machine) -> None:
        opened = machine.opened()
        for name in ("foo", "bar"):
            start_plan(opened.place, opened.device, named_plan(name), PLAN)

        assert switch_plan(opened.place, opened.device, "foo").text == PLAN
        assert resolve_active_plan(opened.place).name == "foo"

    def test_one_that_is_not_there_can_not(self, machine: Machine) -> None:
        opened = machine.opened()
        start_plan(opened.place, opened.device, named_plan("foo"), PLAN)

        with pytest.raises(PlanNameError, match="there is no plan 'bar'"):
            switch_plan(opened.place, opened.device, "bar")
        assert resolve_active_plan(opened.place).name == "foo"

    def test_to_clear_twice_is_as_once(self, machine: Machine) -> None:
        opened = machine.opened()
        clear_plan(opened.place, opened.device)
        start_plan(opened.place, opened.device, named_plan("foo"), PLAN)
        clear_plan(opened.place, opened.device)
        clear_plan(opened.place, opened.device)

        assert resolve_active_plan(opened.place) == DEFAULT

    def test_the_plan_without_a_name_has_no_marker(self, machine: Machine) -> None:
        opened = machine.opened()
        start_plan(opened.place, opened.device, named_plan("foo"), PLAN)
        start_plan(opened.place, opened.device, DEFAULT, PLAN)

        assert not (machine.root / ".harness" / "active-plan").exists()

    @pytest.mark.parametrize("name", UNSAFE)
    def test_no_name_but_a_good_one_is_taken(self, machine: Machine, name: str) -> None:
        with pytest.raises(PlanNameError, match="Fix"):
            named_plan(name)


class TestListing:
    def test_all_plans_are_listed_with_what_is_to_do(self, machine: Machine) -> None:
        opened = machine.opened()
        for plan in (named_plan("foo"), DEFAULT):
            start_plan(opened.place, opened.device, plan, PLAN)
        for stray in ("PLAN-Not A Slug.md", "PLAN-.md", "notes.md", "PLAN-x.txt"):
            (machine.state / stray).write_text("stray")

        plans = list_plans(opened.place)

        assert [each.plan.called for each in plans] == ["default", "foo"]
        assert [(each.open, each.done, each.next) for each in plans] == [(2, 2, "test")] * 2
        assert plans[0].title == "Ship it"

    def test_where_nothing_was_begun_there_are_none(self, machine: Machine) -> None:
        assert list_plans(machine.opened().place) == []


class TestTasks:
    def test_what_stands_in_a_fence_is_no_task(self) -> None:
        text = "- [ ] one\n```\n- [ ] two\n````\n- [x] three\n~~~\n- [ ] four\n"

        assert [task.text for task in tasks_in(text)] == ["one", "three"]

    @pytest.mark.parametrize("line", ["[ ] x", "- [] x", "- [y] x", "-[ ] x", "- [ ]", "- [ ]  "])
    def test_what_is_no_box_is_no_task(self, line: str) -> None:
        assert tasks_in(line) == []

    def test_a_task_may_be_indented(self) -> None:
        (task,) = tasks_in("  - [x] deep  \n")

        assert (task.text, task.done) == ("deep", True)
