"""`repo`, `plan`, `queue` and `state-mode`, on each backend."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from perdure.app import open_recorded
from perdure.errors import (
    AbsentError,
    ActivePlanError,
    HarnessError,
    PerdureError,
    PlanNameError,
    RepoRegistryError,
    SlugTakenError,
)
from perdure.storage import Locator
from perdure.storage.text_history import SAVE
from perdure.surfaces.cli import cli
from perdure.testing.requirement import requirement
from tests.harness.conftest import Machine, git, named_project

pytestmark = pytest.mark.usefixtures("agfs")


@pytest.fixture(autouse=True)
def working_in_the_project(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMORY_VAULT_PATH", raising=False)
    for name, value in machine.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(machine.root)


def ran(*arguments: str) -> tuple[str, str]:
    """Run a command; return its stdout and stderr. Errors are raised."""
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def shown(*arguments: str) -> str:
    return ran(*arguments)[0]


def objects(*arguments: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in shown(*arguments, "--json").splitlines()]


def refused(*arguments: str) -> PerdureError:
    with pytest.raises(PerdureError) as caught:
        ran(*arguments)
    return caught.value


class TestRepo:
    def test_one_is_registered_listed_and_unregistered(self, machine: Machine) -> None:
        assert shown("repo", "register") == "my-project is registered\n"
        (listed,) = objects("repo", "list")
        assert listed == {"slug": "my-project", "remote": None, "roots": [str(machine.root)]}
        assert shown("repo", "list").splitlines()[1].startswith("my-project")

        assert shown("repo", "unregister", "my-project") == "my-project is unregistered\n"
        assert objects("repo", "list") == []
        assert "no repository is registered" in ran("repo", "list")[1]

    def test_its_remote_is_stored_without_secrets(self, machine: Machine) -> None:
        (machine.root / ".harness" / "project.json").unlink()
        git(machine.root, "init", "-q")
        git(machine.root, "remote", "add", "origin", "https://ana:hunter2@github.com/a/b.git")

        (registered,) = objects("repo", "register")

        assert registered["remote"] == "https://github.com/a/b.git"
        assert registered["slug"] == "a-b"
        assert b"hunter2" not in (machine.store / "_meta" / "repos.json").read_bytes()

    def test_another_one_of_the_same_name_is_reported(self, machine: Machine) -> None:
        shown("repo", "register")
        named_project(machine.place / "elsewhere" / "my-project", "my-project")

        error = refused("repo", "register", str(machine.place / "elsewhere" / "my-project"))

        assert isinstance(error, SlugTakenError)

    def test_what_is_not_registered_can_not_be_unregistered(self, machine: Machine) -> None:
        assert isinstance(refused("repo", "unregister", "nonsense"), AbsentError)

    def test_a_registry_that_is_broken_is_reported(self, machine: Machine) -> None:
        (machine.store / "_meta").mkdir(parents=True)
        (machine.store / "_meta" / "repos.json").write_text("{")

        for arguments in (("repo", "list"), ("repo", "register"), ("queue",)):
            assert isinstance(refused(*arguments), RepoRegistryError)


class TestPlan:
    def test_it_is_begun_shown_and_finished(self, machine: Machine) -> None:
        content = shown("plan", "start", "ship-it", "--task", "build", "--task", "sell\nit")
        assert content == f"ship-it is started, in {machine.state / 'PLAN-ship-it.md'}\n"
        text = "# Ship it\n\n- [ ] build\n- [ ] sell it\n"
        assert shown("plan", "show") == text
        assert (machine.state / "PLAN-ship-it.md").read_text() == text

        error = refused("plan", "finish")
        assert isinstance(error, HarnessError)
        assert "2 tasks open, first 'build'" in str(error)

        (machine.state / "PLAN-ship-it.md").write_text(text.replace("[ ]", "[x]"))
        assert shown("plan", "finish") == "ship-it is finished\n"
        assert (machine.state / "PLAN-ship-it.md").is_file()
        (listed,) = objects("plan", "list")
        assert (listed["plan"], listed["active"], listed["done"]) == ("ship-it", False, 2)

    def test_plans_are_listed_with_the_active_one_marked(self, machine: Machine) -> None:
        for name in ("foo", "bar", "default"):
            shown("plan", "start", name, "--title", f"All of {name}")
        shown("plan", "switch", "foo")

        assert shown("plan", "list").splitlines() == [
            "active  plan     open  done  title",
            "        default  0     0     All of default",
            "        bar      0     0     All of bar",
            "*       foo      0     0     All of foo",
        ]
        assert [each["plan"] for each in objects("plan", "list")] == ["default", "bar", "foo"]

    def test_the_one_without_a_name_is_called_default(self, machine: Machine) -> None:
        shown("plan", "start", "default")
        shown("plan", "start", "foo")

        assert shown("plan", "switch", "default") == "default is active\n"
        assert (machine.state / "PLAN.md").is_file()
        assert not (machine.root / ".harness" / "active-plan").exists()

    def test_a_marker_that_leads_nowhere_can_be_cleared(self, machine: Machine) -> None:
        machine.mark("active-plan", "../other")
        assert isinstance(refused("plan", "list"), ActivePlanError)

        assert shown("plan", "clear") == "no named plan is active\n"
        assert objects("plan", "clear") == [{"project": "my-project", "active": "default"}]
        assert "there is no plan" in ran("plan", "list")[1]

    @pytest.mark.parametrize(
        "arguments",
        [("show",), ("show", "foo"), ("switch", "foo"), ("finish",), ("switch", "default")],
    )
    def test_what_is_absent_is_reported(self, machine: Machine, arguments: tuple[str, ...]) -> None:
        assert isinstance(refused("plan", *arguments), PlanNameError)

    def test_another_project_can_be_named(self, machine: Machine) -> None:
        named_project(machine.place / "other", "other")

        (begun,) = objects("plan", "start", "foo", "--cwd", str(machine.place / "other"))

        assert begun["project"] == "other"
        assert begun["active"] is True


class TestBrief:
    @requirement("001-hook-four-line-block")
    def test_it_has_four_lines_if_plan_and_progress_are_there(self, machine: Machine) -> None:
        shown("plan", "start", "foo", "--task", "build", "--task", "test")

        assert shown("plan", "brief").splitlines() == [
            "Project: my-project",
            f"Plan: {machine.state / 'PLAN-foo.md'} (2 open, 0 done)",
            f"Progress: {machine.state / 'progress-foo.md'}",
            "Next: build",
        ]
        (brief,) = objects("plan", "brief")
        assert brief["progress"] == str(machine.state / "progress-foo.md")

    @requirement("001-hook-four-line-block", "001-hook-progress-beside-plan")
    @pytest.mark.parametrize("missing", ["PLAN-foo.md", "progress-foo.md"])
    def test_it_has_none_if_one_of_them_is_not(self, machine: Machine, missing: str) -> None:
        shown("plan", "start", "foo")
        shown("plan", "clear")
        for name in ("PLAN", "progress"):
            file = machine.state / f"{name}-foo.md"
            if file.name != missing:
                file.rename(machine.state / f"{name}.md")

        assert ran("plan", "brief") == ("", "")


class TestQueue:
    def test_it_has_the_plans_of_all_registered_repositories(self, machine: Machine) -> None:
        for name in ("one", "two", "three"):
            folder = named_project(machine.place / name, name)
            shown("plan", "start", "foo", "--task", f"do {name}", "--cwd", str(folder))
            if name != "three":
                shown("repo", "register", str(folder))

        assert shown("queue").splitlines() == [
            "project  plan  open  done  next",
            "one      foo*  1     0     do one",
            "two      foo*  1     0     do two",
        ]
        assert [each["next"] for each in objects("queue")] == ["do one", "do two"]

    def test_what_is_done_is_left_out_unless_all_is_asked_for(self, machine: Machine) -> None:
        shown("repo", "register")
        shown("plan", "start", "foo")
        (machine.state / "PLAN-foo.md").write_text("- [x] done\n")

        assert ran("queue") == ("", "there are no open plans\n")
        (each,) = objects("queue", "--all")
        assert (each["open"], each["done"], each["next"]) == (0, 1, None)

    def test_a_repository_that_can_not_be_read_hides_no_other(self, machine: Machine) -> None:
        for name in ("broken", "fine", "marked"):
            folder = named_project(machine.place / name, name)
            shown("plan", "start", "foo", "--task", "x", "--cwd", str(folder))
            shown("repo", "register", str(folder))
        (machine.place / "broken" / ".harness" / "project.json").write_text("{")
        (machine.place / "marked" / ".harness" / "active-plan").write_text("../x")

        answer, beside = ran("queue")

        assert "fine     foo*" in answer
        assert "broken: " in beside
        assert "marked: " in beside

    def test_one_that_is_not_checked_out_here_is_known_by_the_backend(
        self, machine: Machine
    ) -> None:
        shown("repo", "register")
        shown("plan", "start", "foo", "--task", "x")
        machine.root.rename(machine.place / "moved")

        answer, beside = ran("queue")

        if machine.protocol == "vault":
            assert "my-project  foo" in answer
        else:
            assert "not checked out on this machine" in beside

    def test_worktrees_of_one_repository_are_listed_once(self, machine: Machine) -> None:
        git(machine.root, "init", "-q")
        git(machine.root, "commit", "-q", "--allow-empty", "-m", "begin")
        git(machine.root, "worktree", "add", "-q", "../other")
        shown("repo", "register")
        shown("repo", "register", str(machine.place / "other"))
        shown("plan", "start", "foo", "--task", "x")

        assert len(objects("queue")) == 1


class TestHistory:
    def test_what_a_backend_keeps_of_projects_enters_history(self, machine: Machine) -> None:
        shown("repo", "register")
        shown("plan", "start", "foo")
        plan = "projects/my-project/_harness/PLAN-foo.md"

        with open_recorded(machine.environ) as recorded:
            (registered,) = recorded.history.versions(Locator("_meta/repos.json"))
            begun = recorded.history.versions(Locator(plan))

        assert registered.origin == SAVE
        assert [version.origin for version in begun] == [SAVE] * (machine.protocol == "vault")


class TestStateMode:
    @requirement("001-state-mode-set-by-command")
    def test_it_is_shown_and_changed(self, machine: Machine) -> None:
        assert shown("state-mode") == "backend, set by the default\n"
        assert shown("state-mode", "local") == "local, set by the machine\n"
        assert shown("state-mode", "backend", "--here") == "backend, set by the checkout\n"
        assert objects("state-mode") == [
            {"mode": "backend", "checkout": "backend", "machine": "local"}
        ]

    @requirement("001-state-mode-alias-on-write")
    @pytest.mark.parametrize("here", [(), ("--here",)])
    def test_its_old_name_is_written_as_the_new_one(
        self, machine: Machine, here: tuple[str, ...]
    ) -> None:
        answer, beside = ran("state-mode", "vault", *here)

        assert answer.startswith("backend, set by the ")
        assert "old name" in beside
        written = machine.root / ".harness" / ".project-mode" if here else None
        file = written or machine.home / "config.toml"
        assert "backend" in file.read_text()
        assert "vault" not in file.read_text().partition("[")[0]

    def test_the_folder_of_no_project_is_reported(self, machine: Machine) -> None:
        error = refused("state-mode", "--cwd", str(Path(machine.place, "nowhere")))

        assert "is not a folder" in str(error)
