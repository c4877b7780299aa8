"""Which project a folder is of: by its settings, its git remote, or its name."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import ConfigError, ProjectError, StorageSelectionError
from perdure.harness import project
from perdure.harness.project import (
    Project,
    head_at,
    identity_of,
    project_locator,
    remote_of,
    resolve_project,
    slug_of_identity,
    without_secrets,
)
from perdure.model.uri import SLUG, slug_of
from perdure.storage import Locator, StorageBackend
from perdure.storage.in_memory import MemoryBackend
from perdure.testing.requirement import requirement
from tests.harness.conftest import Machine, git

pytestmark = pytest.mark.usefixtures("agfs")


def repository(folder: Path, remote: str = "") -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    git(folder, "commit", "-q", "--allow-empty", "-m", "begin")
    return folder


def slug_at(folder: Path) -> str:
    return resolve_project(str(folder), None).slug


class TestResolution:
    @requirement("001-resolve-project-keys")
    def test_it_has_slug_locator_backend_root_and_layout(self, machine: Machine) -> None:
        project = machine.project()

        assert Project._fields == ("slug", "project_locator", "backend", "project_root", "layout")
        assert project.slug == "my-project"
        assert project.project_root == str(machine.root)
        assert project.layout == "folder"

    @requirement("001-resolve-project-locator", "001-resolve-project-projects-directory")
    def test_the_project_lies_below_projects(self, machine: Machine) -> None:
        project = machine.project()

        assert project.project_locator == Locator("projects/my-project")
        assert project.backend is not None
        assert project.backend.resolve("projects").contains(project.project_locator)

    @requirement("001-resolve-project-backend")
    def test_the_backend_is_the_one_that_selection_chose(self, machine: Machine) -> None:
        backend = machine.project().backend

        assert isinstance(backend, StorageBackend)
        assert type(backend) is type(machine.backend())
        assert backend.identity == str(machine.store)

    @requirement("001-resolve-project-no-vault-path")
    def test_nothing_in_it_is_a_path_into_the_store(self, machine: Machine) -> None:
        content = [each for each in machine.project() if isinstance(each, str | Path)]

        assert not any(str(machine.store) in str(each) for each in content)

    def test_without_a_backend_there_is_no_locator(self, tmp_path: Path) -> None:
        project = resolve_project(str(tmp_path), None)

        assert (project.backend, project.project_locator) == (None, None)

    def test_a_selection_error_goes_up(self, vaulted: Machine) -> None:
        vaulted.configure(path=vaulted.place / "nowhere")

        with pytest.raises(StorageSelectionError):
            vaulted.project()

    def test_a_config_that_is_wrong_goes_up(self, machine: Machine) -> None:
        (machine.home / "config.toml").write_text("[storage\n")

        with pytest.raises(ConfigError):
            machine.project()

    def test_to_resolve_changes_nothing(self, machine: Machine) -> None:
        before = machine.everything()

        machine.project()

        assert machine.everything() == before


class TestRoot:
    def test_it_is_the_top_of_the_checkout(self, tmp_path: Path) -> None:
        top = repository(tmp_path / "repo")
        (top / "src" / "deep").mkdir(parents=True)

        project = resolve_project(str(top / "src" / "deep"), None)

        assert (project.project_root, project.layout) == (str(top), "repository")

    def test_a_folder_that_names_a_project_is_one_within_a_checkout(self, tmp_path: Path) -> None:
        top = repository(tmp_path / "repo")
        part = top / "packages" / "part"
        (part / ".harness").mkdir(parents=True)
        (part / ".harness" / "project.json").write_text('{"slug": "the-part"}')

        project = resolve_project(str(part), None)

        assert (project.slug, project.project_root) == ("the-part", str(part))

    def test_a_folder_with_state_is_one_outside_of_a_checkout(self, tmp_path: Path) -> None:
        (tmp_path / "notes" / ".harness").mkdir(parents=True)
        (tmp_path / "notes" / "deep").mkdir()

        found = resolve_project(str(tmp_path / "notes" / "deep"), None)

        assert found.project_root == str(tmp_path / "notes")

    def test_a_link_to_a_folder_is_that_folder(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "alias").symlink_to("real")

        assert resolve_project(str(tmp_path / "alias"), None).project_root == f"{tmp_path}/real"

    @pytest.mark.parametrize("cwd", ["nowhere", "file", "nul\0byte"])
    def test_what_is_no_folder_is_of_no_project(self, tmp_path: Path, cwd: str) -> None:
        (tmp_path / "file").touch()

        with pytest.raises(ProjectError, match="Fix: name a folder"):
            resolve_project(f"{tmp_path}/{cwd}", None)


class TestSlug:
    def test_the_settings_come_first(self, tmp_path: Path) -> None:
        top = repository(tmp_path / "repo", "https://example.com/a/remote.git")
        (top / ".harness").mkdir()
        (top / ".harness" / "project.json").write_text('{"slug": "chosen", "more": 1}')

        assert slug_at(top) == "chosen"

    def test_it_is_owner_and_name_of_the_remote(self, tmp_path: Path) -> None:
        assert slug_at(repository(tmp_path / "x", "git@github.com:Ana/Remote.git")) == "ana-remote"
        elsewhere = slug_at(repository(tmp_path / "y", "git@example.com:ana/remote.git"))
        assert re.fullmatch("ana-remote-[0-9a-f]{8}", elsewhere)

    def test_settings_that_name_nothing_are_passed_over(self, tmp_path: Path) -> None:
        top = repository(tmp_path / "repo")
        (top / ".harness").mkdir()
        (top / ".harness" / "project.json").write_text('{"other": 1}')

        assert slug_at(top).startswith("git-")

    def test_without_a_remote_it_is_the_first_commit(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        top = repository(tmp_path / "one")
        before = slug_at(top)
        git(top, "commit", "-q", "--allow-empty", "-m", "more")
        git(top, "checkout", "-q", "--orphan", "pages")
        monkeypatch.setenv("GIT_COMMITTER_DATE", "2035-01-01T00:00:00")
        git(top, "commit", "-q", "--allow-empty", "-m", "other")
        git(tmp_path, "clone", "-q", "one", "two")
        top.rename(tmp_path / "moved")

        assert re.fullmatch("git-[0-9a-f]{12}", before)
        assert slug_at(tmp_path / "moved") == slug_at(tmp_path / "two") == before

    def test_a_plain_folder_goes_by_its_path(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for folder in ("a/api", "b/api", "tmp"):
            (tmp_path / folder).mkdir(parents=True)
        monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
        monkeypatch.setattr(project, "_TEMPORARY", str(tmp_path / "tmp"))

        one, other = slug_at(tmp_path / "a" / "api"), slug_at(tmp_path / "b" / "api")

        assert one != other
        assert all(re.fullmatch("api-[0-9a-f]{8}", each) for each in (one, other))

    def test_home_root_and_temporary_folders_are_no_project(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))

        assert [slug_at(each) for each in (tmp_path, Path("/"), tmp_path.parent)] == ["", "", ""]
        assert resolve_project(str(tmp_path), MemoryBackend()).project_locator is None

    def test_origin_comes_before_other_remotes(self, tmp_path: Path) -> None:
        top = repository(tmp_path / "repo")
        git(top, "remote", "add", "a-fork", "https://example.com/b/fork.git")
        assert slug_at(top).startswith("b-fork-")

        git(top, "remote", "add", "origin", "https://example.com/a/original.git")
        assert slug_at(top).startswith("a-original-")

    @pytest.mark.parametrize(
        "content", ["{", "[]", '"x"', "null", '{"slug": 1}', '{"slug": "../x"}', '{"slug": ""}', ""]
    )
    def test_settings_that_make_no_sense_are_reported(self, tmp_path: Path, content: str) -> None:
        (tmp_path / ".harness").mkdir()
        (tmp_path / ".harness" / "project.json").write_text(content)

        with pytest.raises(ProjectError, match="is not valid"):
            slug_at(tmp_path)

    @pytest.mark.parametrize(
        "remote",
        [
            "https://example.com/../../etc/passwd",
            "https://example.com/a/..",
            "../..",
            "https://example.com/%2e%2e%2f",
            "a\\..\\..\\b",
            "x" * 5000,
            "https://example.com/a/.git",
            "https://example.com/a/\x01\x02.git",
        ],
    )
    def test_no_remote_leads_out_of_the_projects(self, tmp_path: Path, remote: str) -> None:
        top = tmp_path / "repo"
        (top / ".git").mkdir(parents=True)
        (top / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {remote}\n')
        backend = MemoryBackend()

        project = resolve_project(str(top), backend)

        assert project.project_locator is not None
        assert project.project_locator.parent == backend.resolve("projects")
        assert len(project.slug) <= 100

    @pytest.mark.parametrize("slug", ["..", "a/b", "", "A", "a" * 101, "."])
    def test_no_slug_but_a_good_one_has_a_place(self, slug: str) -> None:
        with pytest.raises(ValueError, match="Fix"):
            project_locator(MemoryBackend(), slug)

    def test_names_that_a_slug_can_not_say_stay_apart(self) -> None:
        slugs = {slug_of(name) for name in ("日本", "中国", "проект", "проекты", "---", "...")}

        assert len(slugs) == 6

    def test_a_config_of_git_that_is_no_text_is_passed_over(self, tmp_path: Path) -> None:
        (tmp_path / "repo" / ".git").mkdir(parents=True)
        (tmp_path / "repo" / ".git" / "config").write_bytes(b"\xff\xfe[remote\x00")

        assert slug_at(tmp_path / "repo").startswith("repo-")


class TestWorktrees:
    def test_all_worktrees_of_a_repository_are_one_project(self, machine: Machine) -> None:
        top = repository(machine.place / "repo")
        git(top, "worktree", "add", "-q", "../elsewhere")

        main, other = machine.project(top), machine.project(machine.place / "elsewhere")

        assert main.slug == other.slug != ""
        assert main.project_locator == other.project_locator
        assert other.layout == "worktree"
        assert other.project_root == str(machine.place / "elsewhere")

    def test_they_have_one_remote(self, tmp_path: Path) -> None:
        top = repository(tmp_path / "repo", "https://example.com/a/remote")
        git(top, "worktree", "add", "-q", "../elsewhere")

        assert slug_at(tmp_path / "elsewhere") == slug_at(top)
        assert slug_at(top).startswith("a-remote-")

    def test_they_have_the_settings_of_the_first_one(self, tmp_path: Path) -> None:
        top = repository(tmp_path / "repo", "https://example.com/a/remote")
        (top / ".harness").mkdir()
        (top / ".harness" / "project.json").write_text('{"slug": "chosen"}')
        git(top, "worktree", "add", "-q", "../elsewhere")

        assert slug_at(tmp_path / "elsewhere") == "chosen"

    def test_so_are_those_of_a_bare_repository(self, tmp_path: Path) -> None:
        top = repository(tmp_path / "repo")
        git(tmp_path, "clone", "-q", "--bare", "repo", "store.git")
        git(tmp_path / "store.git", "remote", "remove", "origin")
        git(tmp_path / "store.git", "worktree", "add", "-q", "../one", "-b", "one")
        git(tmp_path / "store.git", "worktree", "add", "-q", "../two", "-b", "two")

        assert slug_at(tmp_path / "one") == slug_at(tmp_path / "two") == slug_at(top)

    def test_each_has_its_own_branch_and_commit(self, tmp_path: Path) -> None:
        top = repository(tmp_path / "repo")
        git(top, "worktree", "add", "-q", "../elsewhere", "-b", "one/two")
        git(tmp_path / "elsewhere", "commit", "-q", "--allow-empty", "-m", "more")

        def asked(folder: Path) -> tuple[str, str]:
            return git(folder, "branch", "--show-current"), git(folder, "rev-parse", "HEAD")

        folders = (top, tmp_path / "elsewhere")
        assert [head_at(str(each)) for each in folders] == [asked(each) for each in folders]
        git(top, "pack-refs", "--all")
        assert [head_at(str(each)) for each in folders] == [asked(each) for each in folders]
        git(top, "checkout", "-q", "--detach")
        assert head_at(str(top)) == ("", asked(top)[1])
        (top / ".git" / "HEAD").write_text("ref: refs/../../config\n")
        assert head_at(str(top)) == ("", "")
        assert head_at(str(tmp_path / "gone")) == head_at(str(tmp_path)) == ("", "")

    def test_a_submodule_is_a_project_of_its_own(self, tmp_path: Path) -> None:
        repository(tmp_path / "library", "https://github.com/ana/library")
        top = repository(tmp_path / "repo")
        allowed = ("-c", "protocol.file.allow=always")
        git(top, *allowed, "submodule", "add", "-q", str(tmp_path / "library"), "vendored")

        git(top / "vendored", "remote", "set-url", "origin", "https://github.com/ana/library")
        project = resolve_project(str(top / "vendored"), None)

        assert (project.slug, project.layout) == ("ana-library", "repository")

    def test_a_git_file_that_leads_nowhere_is_passed_over(self, tmp_path: Path) -> None:
        (tmp_path / "repo").mkdir()
        for content in ("gitdir: /nowhere/at/all", "gitdir:", "nonsense", "gitdir: \0"):
            (tmp_path / "repo" / ".git").write_text(content)

            assert re.fullmatch(r"(\w+-[0-9a-f]{8})?", slug_at(tmp_path / "repo"))


class TestRemotes:
    @pytest.mark.parametrize(
        "url",
        [
            "https://github.com/Ana/App.git",
            "https://github.com/ana/app/",
            "https://ana:hunter2@github.com/ana/app",
            "https://a:p@ss@www.github.com/ana/app.git?x=1#y",
            "git@github.com:ana/app.git",
            "github.com:ana/app",
            "ssh://git@github.com:22/ana/app",
            "ssh://git@ssh.github.com:443/ana//app.git/",
            "git+ssh://git@github.com/ana/app",
        ],
    )
    def test_however_a_remote_is_spelled_it_is_one_repository(self, url: str) -> None:
        assert identity_of(url) == "github.com/ana/app"
        assert slug_of_identity(identity_of(url)) == "ana-app"

    @pytest.mark.parametrize(
        "url", ["", "/srv/git/repo.git", "file:///srv/repo", "../repo", "C:/repo", "https://x/"]
    )
    def test_a_path_is_no_identity(self, url: str) -> None:
        assert identity_of(url) == ""

    @given(st.lists(st.text("ab-./é", min_size=1, max_size=6), min_size=2, max_size=4))
    def test_two_repositories_never_share_a_slug(self, parts: list[str]) -> None:
        identity = identity_of(f"https://github.com/{'/'.join(parts)}")
        others = {"github.com/a/b-c", "github.com/a-b/c", "github.com/a/b", "gitlab.com/a/b"}
        slugs = {each: slug_of_identity(each) for each in {identity, *others} if each}

        assert len(set(slugs.values())) == len(slugs)
        assert all(SLUG.fullmatch(each) for each in slugs.values())

    @pytest.mark.parametrize(
        "url",
        [
            "https://ana:hunter2@example.com/a/b",
            "https://token@example.com/a/b",
            "https://example.com/a/b?private_token=hunter2",
            "https://a:p@ss@example.com/a/b",
        ],
    )
    def test_no_secret_of_a_url_is_stored(self, url: str) -> None:
        stored = without_secrets(url)

        assert stored == "https://example.com/a/b"

    def test_the_remote_of_a_project_has_no_secret(self, tmp_path: Path) -> None:
        top = repository(tmp_path / "repo", "https://ana:hunter2@example.com/a/b.git")

        assert remote_of(resolve_project(str(top), None)) == "https://example.com/a/b.git"
