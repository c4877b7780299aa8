"""The golden home: unpacked, asked, and its answers as one JSON."""

import json
import re
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import perdure
from perdure.surfaces.cli import cli
from tests.net.make_golden import ARCHIVE, KEY, MOMENTS, OWNER, RECEIPT

NODES = (
    "profile",
    "preference/indentation",
    "preference/tabs-over-spaces",
    "pattern/project-always-keep-samples-buoys-sqlite",
    "former/profile-ana-lives-in-kiel-96eef80d",
    "event/seals-at-the-pier",
    "entity/olaf",
    "resources/buoy-manual",
    "skills/release",
    "sessions/2026-04-21-moved/messages",
    "agents/default/memories/case/get-error-sqlite3-operationalerror-database-locked-what",
)
GONE = ("note/typo", "note/door", "place/office", "event/seals")
"""Deleted, erased, archived and moved."""
KEYS = (
    "accounts/local/users/ana/memories/profile/content.md",
    "accounts/local/users/ana/memories/preference/indentation/content.md",
    "accounts/local/users/ana/memories/event/seals-at-the-pier/content.md",
    "accounts/local/users/ana/memories/note/typo/content.md",
    "accounts/local/resources/buoy-manual/content.md",
)
QUESTIONS = (
    "Where does Ana live?",
    "Where did Ana live in January?",
    "Where do we keep the samples of the buoys?",
    "database is locked: what helped?",
    "indentation",
    "Who has the spare sensors?",
    "seals",
    "door code",
    "harbour office",
    "What does Olaf do?",
)
THEN = ("Where does Ana live?", "samples of the buoys", "indentation", "calibrate at low tide")
_DERIVED = ("index", "past", "abstracts", "catalogue.*", "tree")
"""What is in the folder of the history and can be made again from its log."""
_HISTORY = re.compile(r"histories/[0-9a-f-]{36}")
_CHANGES_BY_DESIGN = ("disk",)
"""Sizes on the disk, which say nothing of answers."""


@dataclass(frozen=True, slots=True)
class GoldenHome:
    home: Path

    @property
    def environ(self) -> dict[str, str]:
        mine = {"HOME": str(self.home.parent), "PERDURE_HOME": str(self.home), "USER": OWNER}
        return {**mine, "NO_COLOR": "1", "TZ": "UTC", "COLUMNS": "100"}

    @classmethod
    def unpacked(cls, folder: Path) -> "GoldenHome":
        """Unpack the home, as any home that was moved."""
        home = folder.resolve() / "home"
        home.mkdir(mode=0o700)
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(home, filter="data")
        golden = cls(home)
        golden.run("index", "rebuild")  # what is derived may have another format by now
        return golden

    def delete_derived(self) -> None:
        (folder,) = (self.home / "histories").iterdir()
        for pattern in _DERIVED:
            for path in folder.glob(pattern):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def texts(self) -> dict[str, bytes]:
        """Return the canonical files."""
        files = (path for path in (self.home / "memory").rglob("*") if path.is_file())
        return {str(path.relative_to(self.home)): path.read_bytes() for path in files}

    # ------------------------------------------------------------ asking
    def run(self, *words: str) -> Any:  # noqa: ANN401 - whatever a command answers
        """Return what a command answers as JSON, or why it refused."""
        with chdir(self.home):  # which is no project
            result = CliRunner(env=self.environ).invoke(cli, [*words, "--json"])
        remarks = result.stderr or str(result.exception or "")
        if result.exit_code and not result.stdout:
            return {"refused": self._plain(remarks)}
        said = self._plain(result.stdout).splitlines()
        lines = [json.loads(line, parse_float=_rounded) for line in said]
        answer = lines[0] if len(lines) == 1 else lines
        if isinstance(answer, dict):
            answer = {name: of for name, of in answer.items() if name not in _CHANGES_BY_DESIGN}
        return answer

    def answers(self) -> dict[str, Any]:
        """Return the answer to each request, by its words."""
        asked = ((" ".join(words), self.run(*words)) for words in _requests())
        shown = {words.replace(str(RECEIPT), RECEIPT.name): answer for words, answer in asked}
        return {**shown, **dict(self._python())}

    def _python(self) -> Iterator[tuple[str, Any]]:
        """Ask as a program does, which has its own way to the past."""
        moments = json.loads(MOMENTS.read_text(encoding="utf-8"))
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environ.items():
                patch.setenv(name, value)
            with perdure.open() as memory:
                for question in QUESTIONS:
                    hits = memory.recall(question, budget_tokens=400)
                    yield f"memory.recall {question}", [_hit(hit) for hit in hits.hits]
                    yield f"memory.recall {question} as context", hits.context
                for name in moments:
                    past = memory.at(moments[name]["time"])
                    for question in THEN:
                        found = past.recall(question).hits
                        yield f"memory.at {name}: {question}", [_hit(hit) for hit in found]
                for uri in (f"ctx://local/users/{OWNER}/memories/{node}" for node in NODES[:3]):
                    yield f"memory.history {uri}", [_version(each) for each in memory.history(uri)]
                    yield (
                        f"memory.blame {uri}",
                        [[each.text, each.version.number] for each in memory.blame(uri)],
                    )
                    yield f"memory.read {uri}", memory.read(uri).content

    def _plain(self, text: str) -> str:
        return _HISTORY.sub("histories/ID", text.replace(str(self.home), "HOME"))


def as_text(answers: Any, depth: int = 3, indent: str = "") -> str:  # noqa: ANN401 - any JSON
    """Return JSON in which each hit, version or node has a line."""
    if not depth or not answers or not isinstance(answers, dict | list):
        return json.dumps(answers, ensure_ascii=False)
    deeper = f"{indent} "
    if isinstance(answers, list):
        rows, ends = [as_text(each, depth - 1, deeper) for each in answers], "[]"
    else:
        rows, ends = [], "{}"
        for name, each in answers.items():
            rows.append(f"{json.dumps(name)}: {as_text(each, depth - 1, deeper)}")
    inside = ",\n".join(f"{deeper}{row}" for row in rows)
    return f"{ends[0]}\n{inside}\n{indent}{ends[1]}"


def _rounded(number: str) -> float:
    """Read a number so that the last bits, which are the processor's, don't count."""
    return round(float(number), 9)


def _hit(hit: Any) -> list[object]:  # noqa: ANN401 - as public names say
    return [hit.uri, hit.cid, round(hit.score, 9), hit.snippet, list(hit.message_indexes)]


def _version(version: Any) -> list[object]:  # noqa: ANN401 - as before
    return [version.number, version.position, str(version.cid), version.origin, version.actor]


def _requests() -> Iterator[tuple[str, ...]]:
    yield ("status",)
    yield ("doctor", "--all")
    yield ("history", "verify")
    yield ("index", "verify")
    yield ("forget", "--verify", str(RECEIPT), "--key", KEY.read_text(encoding="ascii").strip())
    for words in ("list", "list --archived", "tree /", "lint", "account list", "user list"):
        yield tuple(words.split())
    yield ("list", "--user", "ben")
    yield ("tree", "/", "--account", "club")
    for node in (*NODES, *GONE):
        yield ("read", node, "--all")
        yield ("why", node)
        yield ("relate", node)
    yield ("read", "profile", "--user", "ben")
    yield ("read", "ctx://local/users/ana/memories/profile", "--user", "ben")
    for key in KEYS:
        yield ("history", "log", key)
        yield ("history", "blame", key)
    for question in QUESTIONS:
        yield ("recall", question, "--explain")
    yield ("recall", "Where does Ana live?", "--valid-at", "2026-03-01")
    yield ("recall", "tabs", "--category", "preference")
    yield ("recall", "seals", "--user", "ben")
    yield ("recall", "club", "--account", "club")
    yield from _requests_of_the_past()


def _requests_of_the_past() -> Iterator[tuple[str, ...]]:
    for moment in json.loads(MOMENTS.read_text(encoding="utf-8")).values():
        yield ("tree", "--at", str(moment["position"]))
        for node in ("profile", "preference/indentation", "resources/buoy-manual", "note/typo"):
            yield ("read", node, "--at", str(moment["position"]))
        for question in THEN:
            yield ("recall", question, "--top", "3", "--at", str(moment["position"]))
        yield ("recall", THEN[0], "--top", "1", "--at", moment["time"])
