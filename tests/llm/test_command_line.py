"""The user's own clients: no process and no file of a run is left, also after a kill."""

import json
import os
import select
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from perdure.errors import (
    AnswerMalformedError,
    InvalidValueError,
    LanguageModelError,
    RequestRefusedError,
    ServiceUnreachableError,
)
from perdure.files import locked
from perdure.llm.command_line import ClaudeCode, ClientSettings, Codex, CommandLineCompleter
from perdure.llm.contract import Answer, ChatMessage, Request, ToolDefinition, Usage
from perdure.model.values import JSON
from tests.llm.clients import Fake

SCHEMA: dict[str, JSON] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
ASKED = Request((ChatMessage("user", "How many?"),), schema=SCHEMA)
CLIENTS = {"claude": ClaudeCode, "codex": Codex}
_ALONE = """
import os, sys
from pathlib import Path
from perdure.llm.command_line import ClaudeCode, ClientSettings
from perdure.llm.contract import ChatMessage, Request

adapter = ClaudeCode(ClientSettings(Path(sys.argv[1]), dict(os.environ)))
adapter.complete(Request((ChatMessage("user", "How many?"),)), seconds=60)
"""


@pytest.fixture(params=CLIENTS)
def fake(request: pytest.FixtureRequest, tmp_path: Path) -> Fake:
    fake = Fake.put(tmp_path / "bin", request.param)
    fake.says({"a": 1})
    return fake


def adapter_of(fake: Fake, **more: object) -> CommandLineCompleter:
    environ = fake.environ | {"ANTHROPIC_API_KEY": "k", "CLAUDECODE": "1", "MY_SECRET": "s"}
    given = {"folder": fake.folder.parent / "llm", "environ": environ, **more}
    return CLIENTS[fake.program](ClientSettings(**given))  # type: ignore[arg-type] # each is one of its


def left_by(adapter: CommandLineCompleter) -> list[str]:
    return sorted(path.name for path in adapter._settings.folder.iterdir())


def is_over(process: int) -> bool:
    """Whether a process ends in time."""
    return bool(select.select([process], [], [], 10)[0])


def test_it_answers_in_a_folder_of_its_own_and_leaves_nothing(fake: Fake) -> None:
    adapter = adapter_of(fake)

    assert adapter.complete(ASKED, seconds=30) == Answer('{"a": 1}', usage=Usage(100, 10))

    (seen,) = fake.seen
    environ = seen["environ"]
    assert isinstance(environ, dict)
    assert seen["work"] == []
    assert environ["PERDURE_INTERNAL"] == "1"
    assert environ["HOME"].startswith(str(fake.folder.parent / "llm" / "run"))
    assert not {"MY_SECRET", "CLAUDECODE"} & set(environ)
    assert "How many?" in str(seen["question"])
    assert not any("How many?" in word for word in seen["words"])  # type: ignore[attr-defined] # others may see it
    assert left_by(adapter) == ["run.lock"]


def test_a_client_that_hangs_is_ended_in_time(fake: Fake) -> None:
    fake.does("hang")
    with ThreadPoolExecutor(1) as pool:
        process = pool.submit(fake.hanging)
        begun = time.monotonic()

        with pytest.raises(ServiceUnreachableError, match="did not answer in time"):
            adapter_of(fake).complete(ASKED, seconds=0.5)

        assert time.monotonic() - begun < 4
        assert is_over(process.result())
    assert left_by(adapter_of(fake)) == ["run.lock"]


@pytest.mark.parametrize("does", ["fork", "leave"])
def test_processes_that_leave_the_group_are_ended_too(fake: Fake, does: str) -> None:
    fake.does(does)
    with ThreadPoolExecutor(1) as pool:
        process = pool.submit(fake.hanging)

        if does == "fork":
            with pytest.raises(ServiceUnreachableError):
                adapter_of(fake).complete(ASKED, seconds=0.5)
        else:
            assert isinstance(adapter_of(fake).complete(ASKED, seconds=30), Answer)

        with suppress(ProcessLookupError):  # it ended before we could look
            assert is_over(process.result())


def test_a_client_ends_with_the_process_that_asked(tmp_path: Path) -> None:
    fake = Fake.put(tmp_path / "bin", "claude")
    fake.does("hang")
    folder = tmp_path / "llm"
    environ = {**fake.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", _ALONE, str(folder)], env=environ) as asking:
        process = fake.hanging()
        asking.kill()

        assert is_over(process)

    with locked(folder / "run.lock", 10) as lock:  # the supervisor is gone
        assert lock is not None
    assert [path.name for path in folder.iterdir()] == ["run.lock"]


@pytest.mark.parametrize("does", ["garbage", "fail", "flood"])
def test_what_is_not_an_answer_is_refused(fake: Fake, does: str) -> None:
    fake.does(does)

    with pytest.raises((AnswerMalformedError, ServiceUnreachableError)):
        adapter_of(fake).complete(ASKED, seconds=30)

    assert left_by(adapter_of(fake)) == ["run.lock"]


def test_one_run_at_a_time_has_the_folder(fake: Fake) -> None:
    adapter = adapter_of(fake)

    with (
        locked(adapter._settings.folder / "run.lock"),
        pytest.raises(ServiceUnreachableError, match="another run") as refused,
    ):
        adapter.complete(ASKED, seconds=0.1)

    assert not refused.value.may_be_billed
    assert fake.seen == []


def test_a_client_that_is_not_installed_is_named(fake: Fake) -> None:
    (fake.folder / fake.program).unlink()
    adapter = adapter_of(fake, environ={"PATH": str(fake.folder)})

    with pytest.raises(ServiceUnreachableError, match=r"is not in PATH\. Fix: install") as refused:
        adapter.complete(ASKED, seconds=1)

    assert not refused.value.may_be_billed


def test_tools_are_refused_before_anything_is_started(fake: Fake) -> None:
    with pytest.raises(InvalidValueError, match="can't call tools"):
        adapter_of(fake).complete(
            Request(ASKED.messages, (ToolDefinition("t", "d", SCHEMA),)), seconds=1
        )

    assert fake.seen == []


class TestClaudeCode:
    @pytest.fixture
    def fake(self, tmp_path: Path) -> Fake:
        fake = Fake.put(tmp_path / "bin", "claude")
        fake.says({"a": 1})
        return fake

    def login(self, fake: Fake, seconds: float) -> None:
        folder = fake.folder.parent / ".claude"
        folder.mkdir()
        expires = int((time.time() + seconds) * 1000)
        token = {"accessToken": "access", "refreshToken": "renewing", "expiresAt": expires}
        (folder / ".credentials.json").write_text(json.dumps({"claudeAiOauth": token}))

    def test_it_gets_the_access_token_and_not_the_one_that_renews_it(self, fake: Fake) -> None:
        self.login(fake, 3600)

        adapter_of(fake, environ=fake.environ).complete(ASKED, seconds=30)

        assert '"CLAUDE_CODE_OAUTH_TOKEN": "access"' in json.dumps(fake.seen)
        assert "renewing" not in json.dumps(fake.seen)

    def test_a_login_that_is_about_to_end_is_not_used(self, fake: Fake) -> None:
        self.login(fake, 5)

        with pytest.raises(RequestRefusedError, match="needs to be renewed"):
            adapter_of(fake, environ=fake.environ).complete(ASKED, seconds=30)

        assert fake.seen == []

    @pytest.mark.parametrize(
        ("status", "error"), [(401, RequestRefusedError), (529, ServiceUnreachableError)]
    )
    def test_what_it_reports_is_the_error(
        self, fake: Fake, status: int, error: type[LanguageModelError]
    ) -> None:
        result = {"type": "result", "is_error": True, "result": "Please run /login"}
        fake.prints(json.dumps(result | {"api_error_status": status}))

        with pytest.raises(error, match=r"Please run /login\. Fix: run claude once"):
            adapter_of(fake).complete(ASKED, seconds=30)


class TestCodex:
    @pytest.fixture
    def fake(self, tmp_path: Path) -> Fake:
        fake = Fake.put(tmp_path / "bin", "codex")
        fake.says({"a": 1})
        return fake

    def test_the_login_is_linked_to_and_never_copied(self, fake: Fake) -> None:
        folder = fake.folder.parent / ".codex"
        folder.mkdir()
        (folder / "auth.json").write_text("{}")
        before = (folder / "auth.json").stat()

        adapter_of(fake).complete(ASKED, seconds=30)

        assert (folder / "auth.json").stat() == before
        assert left_by(adapter_of(fake)) == ["run.lock"]

    def test_a_tool_that_was_used_is_not_an_answer(self, fake: Fake) -> None:
        item = {"type": "command_execution", "command": "ls"}
        fake.prints(json.dumps({"type": "item.completed", "item": item}))

        with pytest.raises(AnswerMalformedError, match="it used a tool"):
            adapter_of(fake).complete(ASKED, seconds=30)

    def test_what_it_reports_is_the_error(self, fake: Fake) -> None:
        failed = {"type": "turn.failed", "error": {"message": "not allowed"}}
        fake.prints(json.dumps(failed))

        with pytest.raises(ServiceUnreachableError, match="codex: not allowed") as refused:
            adapter_of(fake).complete(ASKED, seconds=30)

        assert not refused.value.may_be_billed
