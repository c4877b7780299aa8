"""Make the golden home: a small memory in which each kind of change happened at least once.

    python -m tests.net.make_golden

It is made once and then only opened: later versions must read what this one wrote. Make it again
only when the on-disk format changes on purpose, and say so in the commit. The private signing key
is not kept. No path of the machine that made it is in there: a store finds its history by its id.
"""

import gzip
import io
import json
import os
import shutil
import tarfile
import tempfile
import time
from pathlib import Path

from click.testing import CliRunner

from perdure.surfaces.cli import cli

HERE = Path(__file__).parent
ARCHIVE = HERE / "golden" / "home.tar.gz"
MOMENTS = HERE / "golden" / "moments.json"
RECEIPT = HERE / "golden" / "erased.receipt"
KEY = HERE / "golden" / "public.key"
OWNER = "ana"

SESSIONS = {
    "2026-01-05-hello": (
        ("user", "Ana", "2026-01-05T09:00:00Z", "Hello. I am a marine biologist."),
        ("assistant", "", "2026-01-05T09:01:00Z", "Welcome. What are we going to work on?"),
        ("user", "Ana", "2026-01-05T09:02:00Z", "I live in Kiel. I prefer tabs over spaces."),
        ("user", "Ana", "2026-01-05T09:03:00Z", "The app is called Kelpwatch."),
        ("user", "Ana", "2026-01-05T09:04:00Z", "Olaf is our sysadmin. Olaf lives in Bergen."),
    ),
    "2026-01-09-database": (
        ("user", "Ana", "2026-01-09T10:00:00Z", "We decided to use SQLite for the samples."),
        (
            "user",
            "Ana",
            "2026-01-09T10:01:00Z",
            "In this project we always keep the samples of the buoys in SQLite.",
        ),
        ("assistant", "", "2026-01-09T10:02:00Z", "Noted: the samples are in SQLite."),
    ),
    "2026-02-11-locked": (
        (
            "user",
            "Ana",
            "2026-02-11T15:00:00Z",
            "I get this error: sqlite3.OperationalError: database is locked. What now?",
        ),
        (
            "assistant",
            "",
            "2026-02-11T15:01:00Z",
            "Try `PRAGMA journal_mode=WAL` on the file.",
        ),
        ("user", "Ana", "2026-02-11T15:09:00Z", "That fixed it, thanks."),
        ("user", "Ana", "2026-02-11T15:10:00Z", "I prefer short answers in the morning."),
    ),
    "2026-04-21-moved": (
        ("user", "Ana", "2026-04-21T09:10:00Z", "The boxes are here. I live in Porto now."),
        ("assistant", "", "2026-04-21T09:11:00Z", "The tide there is three metres."),
        (
            "user",
            "Ana",
            "2026-04-21T09:12:00Z",
            "In this project we always keep the samples of the buoys in Postgres.",
        ),
        ("user", "Ana", "2026-04-21T09:13:00Z", "I am a marine biologist and a diver."),
    ),
}


class Golden:
    """A home that is being made, by the command line."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.moments: dict[str, dict[str, object]] = {}
        self._environ = {
            "HOME": str(folder),
            "PERDURE_HOME": str(self.home),
            "USER": OWNER,
            "NO_COLOR": "1",
            "TZ": "UTC",
            "PERDURE_LAYOUT": "agfs",
        }

    def run(self, *words: str, typed: str = "") -> str:
        result = CliRunner(env=self._environ).invoke(cli, words, input=typed)
        if result.exit_code:
            raise RuntimeError(f"perdure {' '.join(words)}: {result.output}{result.exception}")
        return result.output

    def mark(self, name: str) -> None:
        """Note the position and the time, at least a second away from what comes next."""
        *_, last = self.run("history", "log", "--json").splitlines()
        time.sleep(1.1)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.moments[name] = {"position": json.loads(last)["position"], "time": now}
        time.sleep(1.1)

    def commit(self, session: str, *options: str) -> None:
        messages = [
            {"role": role, "time": when, "content": text, **({"name": name} if name else {})}
            for role, name, when, text in SESSIONS[session]
        ]
        self.run("commit", "-", "--session", session, *options, typed=json.dumps(messages))

    def text(self, *parts: str) -> Path:
        return self.home.joinpath("memory", "accounts", *parts, "content.md")


def make(golden: Golden) -> None:
    golden.home.mkdir()
    (golden.home / "config.toml").write_text('[embedding]\nprovider = "none"\n')
    golden.run("save", "Tabs, four wide.", "--category", "preference", "--slug", "indentation")
    golden.run("save", "Green tea, no milk.", "--category", "preference", "--slug", "tea")
    golden.run("save", "Ana signs mails with A.", "--category", "note", "--meta", "from=a letter")
    golden.mark("saved")
    golden.commit("2026-01-05-hello")
    golden.commit("2026-01-09-database")
    golden.mark("learned")
    golden.commit("2026-02-11-locked")
    golden.run("save", "Tabs, eight wide.", "--category", "preference", "--slug", "indentation")
    golden.run(
        "write",
        "resources/buoy-manual",
        "# Buoys\n\nCalibrate each buoy in spring.\n\nOlaf has the spare sensors.\n",
        "--abstract",
        "How the buoys are calibrated.",
    )
    golden.run("write", "skills/release", "1. Run the tests.\n2. Tag.\n3. Tell Olaf.\n")
    golden.run("relate", "resources/buoy-manual", "skills/release", "--type", "depends_on")
    golden.mark("versions")
    golden.commit("2026-04-21-moved")
    golden.mark("superseded")
    _edit_by_hand(golden)
    _put_away(golden)
    _others(golden)
    golden.mark("others")
    _erase(golden)
    golden.mark("erased")
    golden.run("recall", "buoys", "--at", str(golden.moments["learned"]["position"]))
    golden.run("index", "verify")


def _edit_by_hand(golden: Golden) -> None:
    file = golden.text("local", "resources", "buoy-manual")
    text = file.read_text(encoding="utf-8")
    file.write_text(text + "\nNever calibrate at low tide.\n", encoding="utf-8")
    golden.run("history", "log")
    golden.mark("edited")


def _put_away(golden: Golden) -> None:
    golden.run("save", "The old harbour office.", "--category", "place", "--slug", "office")
    golden.run("archive", "place/office", "--reason", "it was torn down")
    golden.run("save", "A typo.", "--category", "note", "--slug", "typo")
    golden.run("delete", "note/typo", "--yes")
    golden.run("save", "Seals near the pier.", "--category", "event", "--slug", "seals")
    golden.run("move", "event/seals", "event/seals-at-the-pier")
    golden.run("restore", "preference/indentation", str(golden.moments["saved"]["time"]))
    golden.mark("put away")


def _others(golden: Golden) -> None:
    golden.run("user", "create", "ben")
    golden.run("save", "Ben counts seals.", "--category", "profile", "--user", "ben")
    golden.run("account", "create", "club")
    golden.run("save", "The club meets on Fridays.", "--category", "note", "--account", "club")


def _erase(golden: Golden) -> None:
    golden.run("save", "The door code is on the fridge.", "--category", "note", "--slug", "door")
    receipt = golden.home.parent / "receipt"
    golden.run("forget", "note/door", "--erase", "--yes", "--receipt", str(receipt))
    RECEIPT.write_bytes(receipt.read_bytes())
    KEY.write_text(golden.run("history", "prove", "--public-key"), encoding="ascii")


def _packed(home: Path) -> bytes:
    """Return the home as an archive that says nothing of who made it, nor when."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(home.rglob("*")):
            archive.add(path, path.relative_to(home).as_posix(), recursive=False, filter=_plain)
    return gzip.compress(buffer.getvalue(), mtime=0)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def main() -> None:
    os.environ.pop("PERDURE_HOME", None)
    ARCHIVE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        golden = Golden(Path(folder).resolve())
        make(golden)
        home = golden.home
        (home / "signing-key").unlink()
        shutil.rmtree(home / "locks", ignore_errors=True)
        ARCHIVE.write_bytes(_packed(home))
    MOMENTS.write_text(json.dumps(golden.moments, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
