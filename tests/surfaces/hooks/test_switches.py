"""What is private, excluded or switched off is in no file of ours, and gets nothing from memory."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import perdure
from perdure.agents.capture import capture_session
from perdure.agents.pending_sessions import PendingSession
from perdure.app import Context, open_context
from tests.surfaces.hooks.calling import (
    SESSION,
    call,
    ending,
    environment,
    heard,
    line,
    log,
    stored,
    waiting,
)
from tests.surfaces.terminals import perdure as command
from tests.transfer.samples import codex_message

CODE_NAME = "bluewalrus"
SECRET = f"The code name is {CODE_NAME} for the launch."
COMMAND = (
    "<command-message>private</command-message>\n<command-name>/private</command-name>\n"
    "<command-args>{}</command-args>"
)
ON, OFF = COMMAND.format("on"), COMMAND.format("off")


def left_of(home: Path, *words: str) -> list[str]:
    """Return the files below the home that have one of these words, in whatever case."""
    folder = home / ".perdure"
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and any(each.lower().encode() in path.read_bytes().lower() for each in words)
    ]


def session(path: Path, *payload: str, first: int = 0, **more: object) -> Path:
    """Write a session of Claude Code, or go on with it; users and agent take turns."""
    kinds = ("user", "assistant")
    with path.open("a" if first else "w") as file:
        for n, text in enumerate(payload, start=first):
            one = line(f"u{n}", f"u{n - 1}" if n else None, kinds[n % 2], text, path.stem)
            file.write(f"{json.dumps({**one, **more})}\n")
    return path


def written_config(home: Path, text: str) -> None:
    (home / ".perdure").mkdir(exist_ok=True)
    (home / ".perdure" / "config.toml").write_text(text)


def stop(home: Path, path: Path, environ: Mapping[str, str] | None = None) -> None:
    """Let a real hook keep a session, and wait for it."""
    words = ("stop", "--agent", "claude-code", "--foreground")
    code, printed, complained = call(home, *words, payload=ending(path), environ=environ)
    assert (code, printed, complained) == (0, b"", "")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / f"{SESSION}.jsonl"


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with open_context(environment(tmp_path)) as opened:
        yield opened


def read(context: Context, path: Path, agent: str = "claude-code") -> None:
    capture_session(context, PendingSession(agent, path.stem[-36:], str(path)))
    context.memory.settle()


class TestPrivateWords:
    def test_they_are_in_no_file_and_the_rest_is_stored(self, tmp_path: Path, path: Path) -> None:
        session(
            path,
            f"Always use pnpm in this project. <private>{SECRET}</private>",
            f"Understood. {SECRET}",
            f"Fine. <PRIVATE>And {CODE_NAME} is late",
            "Then let us begin with the tests.",
        )
        prompt = {**ending(path), "prompt": f"What about <private>{SECRET}</private> pnpm here?"}

        heard(tmp_path, "user-prompt-submit", "--agent", "claude-code", payload=prompt)
        stop(tmp_path, path)

        assert left_of(tmp_path, CODE_NAME) == []
        [(_, text)] = stored(tmp_path)
        assert "Always use pnpm" in text
        assert "Then let us begin" in text
        assert waiting(tmp_path) == 0

    def test_a_title_or_a_summary_that_tells_of_them_is_not_stored(
        self, tmp_path: Path, path: Path, context: Context
    ) -> None:
        session(path, f"Begin. <private>{SECRET}</private>", "Yes.", "Go on then, please.")
        summary = line("u3", "u2", "user", f"It is about {CODE_NAME}.", SESSION)
        with path.open("a") as file:
            file.write(json.dumps({**summary, "isCompactSummary": True}) + "\n")
            file.write(json.dumps({"type": "summary", "summary": CODE_NAME, "leafUuid": "u3"}))

        read(context, path)

        assert left_of(tmp_path, CODE_NAME) == []

    def test_a_session_that_is_committed_through_the_api_loses_them(self, tmp_path: Path) -> None:
        messages = [{"role": "user", "content": f"Use tabs. <private>{SECRET}</private>"}]
        with perdure.open(home=tmp_path / ".perdure", user="ana") as memory:
            memory.commit_session(messages, session_id="one")

        assert left_of(tmp_path, CODE_NAME) == []


class TestPrivateMode:
    @pytest.mark.parametrize(("on", "off"), [(ON, OFF), ("/private on", "private off")])
    def test_nothing_between_is_in_any_file(
        self, tmp_path: Path, path: Path, context: Context, on: str, off: str
    ) -> None:
        session(path, "Look at the parser first.", "I did.", on, "Ok.", SECRET, SECRET, off, "Ok.")
        session(path, "Now write the tests for it.", "Done.", first=8)

        read(context, path)

        assert left_of(tmp_path, CODE_NAME) == []
        [(_, text)] = stored(tmp_path)
        assert "Look at the parser" in text
        assert "Now write the tests" in text

    def test_it_holds_when_a_transcript_is_read_in_parts(
        self, tmp_path: Path, path: Path, context: Context
    ) -> None:
        parts = [
            ("Look at the parser first.", "I did."),
            (ON, "Ok."),
            (SECRET, f"I see, {SECRET}"),
            (f"Always use {CODE_NAME} here.", "Yes."),
            (OFF, "Ok."),
            ("Now write the tests for it.", f"Done, without {SECRET}"),
        ]
        for number, part in enumerate(parts):
            session(path, *part, first=2 * number)
            read(context, path)
            assert left_of(tmp_path, CODE_NAME) == []

        [(name, text)] = stored(tmp_path)
        assert name == f"claude-code-{SESSION}"
        assert text.count("Look at the parser") == text.count("Now write the tests") == 1

    def test_a_session_that_is_private_from_its_start_leaves_nothing(
        self, tmp_path: Path, path: Path
    ) -> None:
        folder = f"/srv/{CODE_NAME}"
        session(path, ON, "Ok.", SECRET, SECRET, cwd=folder)
        with path.open("a") as file:
            file.write(json.dumps({"type": "summary", "summary": SECRET, "leafUuid": "u3"}))

        stop(tmp_path, path)

        assert left_of(tmp_path, CODE_NAME, SESSION) == []
        assert list(stored(tmp_path)) == []
        assert waiting(tmp_path) == 0

    def test_memory_gives_nothing_meanwhile(self, tmp_path: Path, path: Path) -> None:
        with perdure.open(home=tmp_path / ".perdure", user="ana") as memory:
            memory.remember("Use pnpm for all packages.", kind="rule", project="")
        asked = {**ending(path), "prompt": "Which package manager do we use for packages?"}
        start = {**ending(path), "source": "startup"}

        assert heard(tmp_path, "user-prompt-submit", payload=asked)
        assert (
            heard(tmp_path, "user-prompt-submit", payload={**asked, "prompt": "/private on"}) == {}
        )
        assert heard(tmp_path, "user-prompt-submit", payload=asked) == {}
        assert heard(tmp_path, "session-start", payload=start) == {}
        heard(tmp_path, "user-prompt-submit", payload={**asked, "prompt": "/private off"})
        assert heard(tmp_path, "session-start", payload=start)

    def test_a_switch_that_no_transcript_shows_counts(
        self, tmp_path: Path, path: Path, context: Context
    ) -> None:
        times = {"before": "2020-01-01T00:00:00Z", "after": "2999-01-01T00:00:00Z"}
        session(path, "Look at the parser first.", "I did.", timestamp=times["before"])
        prompt = {**ending(path), "prompt": "/private on"}
        heard(tmp_path, "user-prompt-submit", "--agent", "claude-code", payload=prompt)
        session(path, SECRET, SECRET, first=2, timestamp=times["after"])

        read(context, path)

        assert left_of(tmp_path, CODE_NAME) == []
        [(_, text)] = stored(tmp_path)
        assert "Look at the parser" in text

    def test_the_command_switches_the_newest_session_of_the_folder(
        self, tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / ".perdure").mkdir()
        refused = command(tmp_path, "private", "on")
        start = {**ending(path), "cwd": str(tmp_path), "source": "startup"}
        heard(tmp_path, "session-start", payload=start)

        done = command(tmp_path, "private", "on")
        session(path, SECRET, SECRET, timestamp="2999-01-01T00:00:00Z")
        stop(tmp_path, path)

        assert "Fix:" in refused.stderr
        assert (done.returncode, command(tmp_path, "private").stdout) == (
            0,
            "private: nothing of this session is stored\n",
        )
        assert list(stored(tmp_path)) == []
        assert command(tmp_path, "private", "off").stdout == "not private\n"

    def test_codex_is_read_in_the_same_way(self, tmp_path: Path, context: Context) -> None:
        name = "0199a213-81c0-7800-8aa1-bbab2a035a53"
        payload = ["Look at the parser.", "private on", SECRET, "private off", "Write the tests."]
        meta = {"id": name, "timestamp": "2026-03-02T09:59:59Z", "cwd": "/srv/app"}
        lines = [{"type": "session_meta", "payload": meta}]
        lines += [codex_message("user", each) for each in payload]
        path = tmp_path / f"rollout-2026-03-02T10-00-00-{name}.jsonl"
        path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))

        read(context, path, "codex")

        assert left_of(tmp_path, CODE_NAME) == []
        [(_, text)] = stored(tmp_path)
        assert "Write the tests" in text


class TestSwitchedOff:
    def test_a_hook_does_nothing_at_all(self, tmp_path: Path, path: Path) -> None:
        session(path, SECRET, "Yes.")
        off = {"PERDURE_OFF": "1"}

        stop(tmp_path, path, off)
        heard(
            tmp_path, "user-prompt-submit", payload={**ending(path), "prompt": SECRET}, environ=off
        )

        assert not (tmp_path / ".perdure").exists()

    @pytest.mark.parametrize("glob", ["/srv/app", "/srv/**", "**/app/**", "/srv/a?p"])
    def test_an_excluded_folder_neither_uses_nor_contributes(
        self, tmp_path: Path, path: Path, glob: str
    ) -> None:
        written_config(tmp_path, f'[agents]\nexclude = ["{glob}"]\n')
        session(path, SECRET, "Yes.")
        with perdure.open(home=tmp_path / ".perdure", user="ana") as memory:
            memory.remember("Use pnpm for all packages.", kind="rule", project="")

        answer = heard(tmp_path, "session-start", payload={**ending(path), "source": "startup"})
        stop(tmp_path, path)
        imported = command(tmp_path, "import", str(path), "--format", "claude-code")

        assert answer == {}
        assert imported.returncode == 0, imported.stderr
        assert left_of(tmp_path, CODE_NAME, SESSION) == []

    def test_using_and_contributing_are_separate(self, tmp_path: Path, path: Path) -> None:
        session(path, "Look at the parser first.", "I did.")
        with perdure.open(home=tmp_path / ".perdure", user="ana") as memory:
            memory.remember("Use pnpm for all packages.", kind="rule", project="")
        start = {**ending(path), "source": "startup"}

        used = heard(tmp_path, "session-start", payload=start, environ={"PERDURE_USE": "0"})
        stop(tmp_path, path, {"PERDURE_CONTRIBUTE": "0"})

        assert used == {}
        assert heard(tmp_path, "session-start", payload=start)
        assert list(stored(tmp_path)) == []
        stop(tmp_path, path, {"PERDURE_USE": "0"})
        assert len(list(stored(tmp_path))) == 1

    def test_a_folder_has_switches_of_its_own(self, tmp_path: Path, path: Path) -> None:
        written_config(tmp_path, '[agents.folders."/srv"]\ncontribute = false\n')
        session(path, "Look at the parser first.", "I did.")

        stop(tmp_path, path)
        assert list(stored(tmp_path)) == []

        stop(tmp_path, path, {"PERDURE_CONTRIBUTE": "1"})
        assert len(list(stored(tmp_path))) == 1

    def test_the_command_says_what_holds_and_why(self, tmp_path: Path) -> None:
        assert command(tmp_path, "private").stdout == "not private\n"

        off = command(tmp_path, "private", "--json", PERDURE_USE="0", CI="true").stdout

        assert json.loads(off) == {
            "private": False,
            "use": "use is switched off",
            "contribute": "it is a headless or CI run",
        }

    def test_a_config_that_is_wrong_keeps_nothing(self, tmp_path: Path, path: Path) -> None:
        written_config(tmp_path, "[agents]\nexclude = 3\n")
        session(path, SECRET, "Yes.")

        stop(tmp_path, path)

        assert "not a list of globs" in log(tmp_path)
        assert left_of(tmp_path, CODE_NAME, SESSION) == []


RUN = {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}


class TestHeadless:
    @pytest.mark.parametrize("environ", [{"CI": "true"}, {"CI": "1"}, RUN])
    def test_a_run_without_a_person_contributes_nothing_but_uses_memory(
        self, tmp_path: Path, path: Path, environ: dict[str, str]
    ) -> None:
        session(path, SECRET, "Yes.")
        with perdure.open(home=tmp_path / ".perdure", user="ana") as memory:
            memory.remember("Use pnpm for all packages.", kind="rule", project="")

        start = {**ending(path), "source": "startup"}
        answer = heard(tmp_path, "session-start", payload=start, environ=environ)
        stop(tmp_path, path, environ)

        assert answer
        assert left_of(tmp_path, CODE_NAME) == []
        assert left_of(tmp_path, SESSION) == ["hooks/emitted"]  # the receipt of what it was shown

    @pytest.mark.parametrize("how", ["config", "environment"])
    def test_it_contributes_if_that_is_allowed(self, tmp_path: Path, path: Path, how: str) -> None:
        session(path, "Look at the parser first.", "I did.", entrypoint="sdk-cli")
        environ = {"CI": "true", **RUN}
        if how == "config":
            written_config(tmp_path, "[agents]\nheadless = true\n")
        else:
            environ["PERDURE_CONTRIBUTE"] = "1"

        stop(tmp_path, path, environ)

        assert len(list(stored(tmp_path))) == 1

    @pytest.mark.parametrize("agent", ["claude-code", "codex"])
    def test_the_reader_knows_a_headless_transcript(
        self, tmp_path: Path, path: Path, context: Context, agent: str
    ) -> None:
        folder = tmp_path / "transcripts"
        folder.mkdir()
        path = headless(folder, agent)

        read(context, path, agent)
        in_folder = command(tmp_path, "import", str(folder), "--format", agent)
        assert list(stored(tmp_path)) == []
        named = command(tmp_path, "import", str(path), "--format", agent)

        assert "headless" in in_folder.stderr
        assert (in_folder.returncode, named.returncode) == (0, 0), named.stderr
        assert len(list(stored(tmp_path))) == 1

    def test_a_person_who_goes_on_with_it_contributes(
        self, tmp_path: Path, path: Path, context: Context
    ) -> None:
        session(path, "Look at the parser first.", "I did.", entrypoint="sdk-cli")
        read(context, path)
        assert list(stored(tmp_path)) == []

        session(path, "Now write the tests.", "Done.", first=2, entrypoint="cli")
        read(context, path)

        assert len(list(stored(tmp_path))) == 1


def headless(folder: Path, agent: str) -> Path:
    """Write the transcript of a run without a person."""
    if agent == "claude-code":
        path = folder / f"{SESSION}.jsonl"
        return session(path, "Look at the parser first.", "I did.", entrypoint="sdk-cli")
    name = "0199a213-81c0-7800-8aa1-bbab2a035a53"
    meta = {"id": name, "timestamp": "2026-03-02T09:59:59Z", "cwd": "/srv/app"}
    run = {**meta, "originator": "codex_exec", "source": "exec"}
    lines: Sequence[Mapping[str, Any]] = [
        {"type": "session_meta", "payload": run},
        codex_message("user", "Look at the parser first."),
    ]
    path = folder / f"rollout-2026-03-02T10-00-00-{name}.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    return path
