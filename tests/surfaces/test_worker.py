"""`perdure worker`: works on waiting events, and ends at a signal."""

import os
import signal
from pathlib import Path
from threading import Event

import pytest

from perdure.app import open_context
from perdure.errors import AccessDeniedError
from tests.index.endpoints import Handler, embeddings, says, serving
from tests.surfaces.nodes import TABS, objects, one, perdure, refusal, stdout_of
from tests.surfaces.processes import DEADLINE_SECONDS, running, until

pytestmark = pytest.mark.parametrize("memory", ["device-local"], indirect=True)

DONE = "{} done, 0 to be tried again, 0 dead; {} indexed\n"


def waiting(account: str = "local") -> int:
    with open_context(os.environ) as context:
        return len(context.outbox.list_unfinished(account))


def asks(base_url: str) -> None:
    """Let an endpoint embed."""
    Path(os.environ["HOME"], ".perdure", "config.toml").write_text(
        f'[embedding]\nprovider = "openai"\nbase_url = "{base_url}"\nmodel = "m"\n'
    )


# ---------------------------------------------------------------- once
class TestOnce:
    def test_it_works_on_what_waits_and_ends(self, tabs: Path) -> None:
        assert stdout_of("worker", "--once") == DONE.format("1 event", "1 place")

        assert (waiting(), one("index", "status")["behind"]) == (0, 0)
        assert stdout_of("worker", "--once") == DONE.format("0 events", "0 places")

    @pytest.mark.timeout(60)
    def test_files_that_no_log_tells_of_become_nodes(self, memory: Path) -> None:
        folder = memory / "accounts/local/users/ana/memories/preference/tea"
        folder.mkdir(parents=True)
        (folder / "content.md").write_text("Likes tea.")

        assert stdout_of("worker", "--once") == DONE.format("1 event", "1 place")
        assert stdout_of("worker", "--once") == DONE.format("0 events", "0 places")

    def test_it_works_for_all_accounts(self, tabs: Path) -> None:
        stdout_of("write", "preference/soup", "Likes soup.", "--account", "acme")

        stdout_of("worker", "--once")

        assert (waiting(), waiting("acme")) == (0, 0)
        assert one("index", "status", "--account", "acme")["places"] == 1

    def test_failures_are_reported_and_wait(self, tabs: Path) -> None:
        with serving() as server:
            asks(server.base_url)
            stdout_of("worker", "--once")
            stdout_of("write", "preference/tea", "Likes tea.")
            server.answers.extend([says(b"{}", 401)] * 9)
            done = perdure("worker", "--once")

        assert done.exit_code == 1
        first, second = done.stderr.splitlines()
        assert first == "local: 1 failed, 0 dead"
        assert second.startswith("  preference/tea: ")
        assert "status 401" in second
        assert done.stdout.startswith("0 events done, 1 to be tried again, 0 dead; ")
        assert "status 401" in str(one("outbox", "list")["last_error"])
        assert int(str(one("index", "status")["places"])) > 1  # by its words, it is found

    def test_without_a_model_that_answers_no_index_is_built(self, tabs: Path) -> None:
        with serving() as server:
            asks(server.base_url)
            server.answers.extend([says(b"{}", 401)] * 9)
            done = perdure("worker", "--once")

            assert "status 401" in done.stderr
            assert (waiting(), one("index", "status")["built"]) == (1, False)
            server.answers.clear()
            stdout_of("worker", "--once")

        assert (waiting(), one("index", "status")["built"]) == (0, True)

    def test_one_account_that_is_broken_does_not_stop_the_others(
        self, tabs: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stdout_of("write", "preference/soup", "Likes soup.", "--account", "acme")
        stdout_of("worker", "--once")
        stdout_of("write", "preference/tea", "Likes tea.")
        home = Path(os.environ["HOME"], ".perdure")
        (file,) = home.glob("histories/*/index/*/acme.sqlite")
        file.write_bytes(b"x" * 9_000)

        done = perdure("worker", "--once")

        assert done.exit_code == 1
        assert done.stderr.startswith("acme: ")
        assert waiting() == 0

    def test_it_is_for_those_who_govern(self, tabs: Path) -> None:
        refused = refusal("worker", "--once", "--as-role", "member")

        assert isinstance(refused, AccessDeniedError)


# ---------------------------------------------------------------- until a signal
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_runs_until_a_signal(tabs: Path, number: signal.Signals) -> None:
    with running("worker") as worker:
        until(lambda: waiting() == 0)
        stdout_of("write", "preference/coffee", "Drinks coffee black.")
        until(lambda: waiting() == 0)
        worker.tell(number)

        code, printed, complained = worker.end()

    assert (code, complained) == (0, "")
    assert printed.startswith("2 events done, 0 to be tried again, 0 dead; ")


def test_at_a_signal_it_finishes_its_step(tabs: Path) -> None:
    asked, go_on = Event(), Event()

    def slowly(handler: Handler) -> None:
        asked.set()
        go_on.wait(DEADLINE_SECONDS)
        embeddings(handler)

    with serving() as server:
        asks(server.base_url)
        server.answers.append(slowly)
        with running("worker") as worker:
            assert asked.wait(DEADLINE_SECONDS)
            worker.tell()
            go_on.set()
            code, printed, complained = worker.end()

        assert (code, complained) == (0, "")
        assert printed.startswith("1 event done, 0 to be tried again, 0 dead; ")
        assert objects("outbox", "list") == []
        assert one("index", "verify")["ok"] is True


def test_two_side_by_side_do_each_event_once(tabs: Path) -> None:
    for number in range(8):
        stdout_of("write", f"event/n{number}", f"Number {number}.")

    ended = []
    with running("worker") as first, running("worker") as second:
        until(lambda: waiting() == 0)
        for worker in (first, second):
            worker.tell()
            ended.append(worker.end())

    # A worker that got the signal before it began had nothing to finish.
    assert {code for code, _, _ in ended} in ({0}, {0, -signal.SIGTERM})
    assert sum(int(printed.partition(" ")[0]) for code, printed, _ in ended if code == 0) == 9
    assert one("index", "verify")["ok"] is True
    assert one("recall", "tabs", "--top", "1")["hits"][0]["uri"] == TABS  # type: ignore[index] # JSON
