"""Properties of every `Memory`: callers, closing, threads, asyncio, edits made by hand."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import perdure
from perdure import AccessDeniedError, ClosedError, InvalidValueError, Memory, PerdureError
from perdure.model import RequestContext, Role

pytestmark = pytest.mark.usefixtures("agfs")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USER", "ana")
    return tmp_path / ".perdure"


class TestCallers:
    def test_the_default_caller_is_the_user_of_the_machine_who_may_do_all(self, home: Path) -> None:
        with perdure.open(home=home) as memory:
            caller = memory.caller
        assert (caller.account_id, caller.user_id, caller.agent_id) == ("local", "ana", "default")
        assert caller.role is Role.ROOT

    def test_a_named_user_is_a_member(self, home: Path) -> None:
        with perdure.open(user="bob", agent="helper", account="acme", home=home) as memory:
            caller = memory.caller
        assert (caller.account_id, caller.user_id, caller.agent_id) == ("acme", "bob", "helper")
        assert caller.role is Role.MEMBER

    def test_a_caller_does_not_reach_what_is_another_users(self, home: Path) -> None:
        with (
            perdure.open(home=home) as root,
            root.for_caller(user="ana") as ana,
            root.for_caller(user="bob") as bob,
        ):
            uri = ana.save("Prefers tabs.", category="preference", slug="indentation")
            with pytest.raises(AccessDeniedError):
                bob.read(uri)
            assert bob.recall("tabs").hits == ()

    def test_a_member_acts_for_nobody_else(self, home: Path) -> None:
        with perdure.open(user="bob", home=home) as bob:
            root = replace(bob.caller, role=Role.ROOT)
            with pytest.raises(AccessDeniedError, match="may not act for 'ana'"):
                bob.for_caller(user="ana")
            with pytest.raises(AccessDeniedError):
                bob.for_caller(root)
            bob.for_caller(project="apollo").close()

    def test_an_admin_acts_for_the_members_of_the_account_only(self, home: Path) -> None:
        admin = RequestContext("acme", "boss", role=Role.ADMIN)
        with perdure.open(home=home) as root, root.for_caller(admin) as boss:
            boss.for_caller(user="ana").close()
            for other in (replace(admin, role=Role.ROOT), replace(admin, account_id="other")):
                with pytest.raises(AccessDeniedError):
                    boss.for_caller(other)

    def test_a_project_is_a_name_or_a_folder_in_one(self, home: Path, tmp_path: Path) -> None:
        (tmp_path / ".harness").mkdir()
        (tmp_path / ".harness" / "project.json").write_text('{"slug": "my-checkout"}')
        (tmp_path / "deep").mkdir()
        with perdure.open(project=tmp_path / "deep", home=home) as memory:
            assert memory.project == "my-checkout"
        with perdure.open(project="My App", home=home) as memory:
            assert memory.project == "my-app"
        with perdure.open(project="apollo", home=home) as memory:
            assert memory.project == "apollo"
            assert memory.for_caller(user="bob").project == "apollo"

    @pytest.mark.parametrize("project", ["/nowhere/at/all", "./nothing"])
    def test_what_is_no_folder_is_refused(self, home: Path, project: str) -> None:
        with pytest.raises((InvalidValueError, PerdureError)):
            perdure.open(project=project, home=home)


class TestClosing:
    def test_closing_one_callers_memory_leaves_the_others_open(self, home: Path) -> None:
        memory = perdure.open(home=home)
        bob = memory.for_caller(user="bob")
        memory.close()
        assert bob.save("Likes tea.", category="preference", slug="tea").created
        bob.close()

    def test_the_last_one_closes_the_store(self, home: Path) -> None:
        memory = perdure.open(home=home)
        memory.save("Likes tea.", category="preference", slug="tea")
        store = memory._services.recorded.history.store
        with memory.for_caller(user="bob"):
            pass
        assert memory.read("preference/tea").version == 1
        memory.close()
        with pytest.raises(ClosedError):
            store.current()

    def test_a_closed_memory_says_so_and_closing_twice_is_closing_once(self, home: Path) -> None:
        memory = perdure.open(home=home)
        other = memory.for_caller(user="bob")
        memory.close()
        memory.close()
        with pytest.raises(ClosedError, match="Fix: open it again"):
            memory.list()
        assert other.list() == ()
        other.close()


class TestThreads:
    THREADS = 8
    EACH = 6

    def test_eight_threads_save_recall_and_append_on_one_memory(self, home: Path) -> None:
        with perdure.open(home=home) as memory, ThreadPoolExecutor(self.THREADS) as pool:
            done = list(pool.map(lambda number: self.work(memory, number), range(self.THREADS)))
            assert done == [self.EACH] * self.THREADS
            assert len(memory.list("note")) == self.THREADS * self.EACH
            assert memory.recall("zebra", top_k=100).index_lag == 0

    def work(self, memory: Memory, number: int) -> int:
        for each in range(self.EACH):
            text = f"zebra {number} of round {each}"
            uri = memory.save(text, category="note", slug=f"z-{number}-{each}")
            assert memory.read(uri).content == text
            found = memory.recall(text, top_k=50)
            assert uri in {hit.uri for hit in found.hits}
        messages = [{"role": "user", "content": f"zebra {number}"}]
        memory.append(f"session-{number}", messages)
        return self.EACH

    def test_one_memory_of_one_slug_is_written_by_all_without_loss(self, home: Path) -> None:
        with perdure.open(home=home) as memory, ThreadPoolExecutor(self.THREADS) as pool:
            texts = [f"text {number}" for number in range(self.THREADS * 2)]
            saved = list(
                pool.map(lambda text: memory.save(text, category="note", slug="one"), texts)
            )
            versions = memory.history("note/one")
        assert sorted(each.version for each in saved) == list(range(1, len(texts) + 1))
        assert len(versions) == len(texts)


class TestAsync:
    def test_the_verbs_are_those_of_memory(self, home: Path) -> None:
        async def use() -> tuple[str, list[str], int]:
            async with perdure.open_async(user="ana", home=home) as memory:
                saved = await memory.save("Prefers tabs.", category="preference", slug="tabs")
                found = await memory.recall("tabs")
                past = await memory.at("2999-01-01")
                node = await past.read("preference/tabs")
                return saved, [hit.snippet for hit in found.hits], node.version

        assert asyncio.run(use()) == (
            "ctx://local/users/ana/memories/preference/tabs",
            ["Prefers tabs."],
            1,
        )

    def test_tasks_run_side_by_side_and_keep_apart(self, home: Path) -> None:
        async def one(memory: perdure.AsyncMemory, user: str) -> list[str]:
            async with await memory.for_caller(user=user) as own:
                await own.save(f"The cat of {user}.", category="note", slug="cat")
                return [hit.snippet for hit in (await own.recall("cat")).hits]

        async def use() -> list[list[str]]:
            async with perdure.open_async(home=home) as memory:
                return await asyncio.gather(*(one(memory, f"user-{n}") for n in range(8)))

        assert asyncio.run(use()) == [[f"The cat of user-{n}."] for n in range(8)]

    def test_one_that_is_not_open_says_so(self, home: Path) -> None:
        memory = perdure.open_async(home=home)
        with pytest.raises(ClosedError, match="async with"):
            asyncio.run(memory.list())


class TestEdits:
    def test_an_edit_by_hand_is_found_as_of_today_and_reported_once(self, home: Path) -> None:
        with perdure.open(home=home) as memory:
            memory.save("Call the bank.", category="note", slug="plan")
            memory.recall("bank")
            file = home / "memory" / memory.key("note/plan")
            file.write_text(f"{file.read_text()}\nBuy rye bread.\n")

            found = memory.recall("rye bread", at="2999-01-01").hits

            assert [hit.uri for hit in found] == [memory.uri("note/plan")]
            (edits,) = memory.edits()
            assert [each.locator.key for each in edits.recorded] == [memory.key("note/plan")]
            assert memory.edits() == ()

    def test_an_older_state_stays_what_it_was(self, home: Path) -> None:
        with perdure.open(home=home) as memory:
            memory.save("Call the bank.", category="note", slug="plan")
            position = memory._services.recorded.history.position()
            memory.save("Something else.", category="note", slug="other")
            file = home / "memory" / memory.key("note/plan")
            file.write_text(f"{file.read_text()}\nBuy rye bread.\n")

            assert "rye" not in memory.at(position).read("note/plan").content
            assert memory.edits() == ()
