"""The home that every request is put to: small, with something of everything."""

import shutil
from pathlib import Path

import perdure
from perdure import Memory

MEMORIES = "ctx://local/users/ana/memories"
MESSAGES = (
    ("2026-03-02-a", "2026-03-02T10:00:00Z", "I live in Berlin."),
    ("2026-05-02-a", "2026-05-02T10:00:00Z", "I live in Lisbon now."),
    ("2026-05-03-a", "2026-05-03T10:00:00Z", "We decided to release every second Thursday."),
)


def make_home(folder: Path) -> None:
    """Fill a home for Ana, with some of Bob's, and leave an edit by hand that nothing has seen."""
    with perdure.open(home=folder / ".perdure") as memory:
        _remember(memory)
        bob = memory.for_caller(user="bob")
        bob.save("Bob's door code is on the fridge.", category="note", slug="door")
        bob.close()
    (note,) = (folder / ".perdure/memory").rglob("Plan.md")
    note.write_text(note.read_text() + "\nBuy rye bread on Friday.\n")


def _remember(memory: Memory) -> None:
    save = memory.save
    save("Prefers tabs over spaces.", category="preference", slug="indentation")
    save("Drinks tea without milk.", category="preference", slug="tea", metadata={"cup": "blue"})
    save("Prefers tabs of width four.", category="preference", slug="indentation")
    save("Call the bank on Monday.", category="note", slug="plan")
    save("Über die Brücke gehen: naïve café, 東京.", category="note", slug="umlaute")
    save("An old habit of smoking.", category="habit", slug="smoking")
    save("A draft to throw away.", category="note", slug="draft")
    for session, time, text in MESSAGES:
        message = {"role": "user", "name": "Ana", "time": time, "content": text}
        memory.commit_session([message], session_id=session)
    memory.write("resources/handbook", "# Handbook\n\nReleases leave from main.", abstract="Rules")
    memory.relate("preference/tea", "preference/indentation", "depends_on", reason="both are taste")
    memory.archive("habit/smoking", reason="given up")
    memory.delete("note/draft", reason="not needed")
    memory.recall("tabs")


class Snapshot:
    """A home that can be put back, at the same path: history knows a memory by its path."""

    def __init__(self, home: Path, copy: Path) -> None:
        self._home, self._copy = home, copy
        shutil.copytree(home, copy, symlinks=True)

    def put_back(self) -> None:
        shutil.rmtree(self._home)
        shutil.copytree(self._copy, self._home, symlinks=True)
