"""A whole conversation, committed at once."""

import time
from collections.abc import Sequence

from perdure.errors import InvalidValueError
from saving import texts
from saving.bare import Files, Rows
from saving.turns import Taken, opened

REPEATS = 3
EACH_FILE, ONE_COMMIT = "a file for each message", "all in one commit of SQLite"
Message = dict[str, object]


def committed(messages: int, repeats: int = REPEATS) -> tuple[dict[str, Taken], str]:
    """Return the seconds of each way to keep a session, and what came of extraction.

    Each time a memory begins with nothing: what is known already is not learned again.
    """
    said = list(texts.session(messages))
    ways = {"messages only": False, "and what is in them": True}
    seconds: dict[str, list[float]] = {}
    came_of_it = ""
    for _ in range(repeats):
        for name, extract in ways.items():
            spent, counts = _commit(said, extract=extract)
            if spent is not None:
                seconds.setdefault(name, []).append(spent)
            came_of_it = counts or came_of_it
        for name, spent in _bare([str(message["content"]) for message in said]).items():
            seconds.setdefault(name, []).append(spent)
    return {name: Taken(tuple(taken)) for name, taken in seconds.items()}, came_of_it


def _commit(said: Sequence[Message], *, extract: bool) -> tuple[float | None, str]:
    with opened() as (context, _):
        memory = context.memory
        memory.save(texts.memory(0), category="event")  # everything is open now
        begun = time.perf_counter()
        try:
            done = memory.commit_session(said, session_id="talk", extract=extract)
        except InvalidValueError as error:
            return None, str(error)
        spent = time.perf_counter() - begun
    counts: dict[str, int] = getattr(done, "counts", {}) if extract else {}
    return spent, ", ".join(f"{many:,} {name}" for name, many in counts.items())


def _bare(contents: Sequence[str]) -> dict[str, float]:
    with opened() as (_, home):
        files, rows = Files(home / "files"), Rows(home / "rows.sqlite")
        begun = time.perf_counter()
        for content in contents:
            files.write(content)
        after_files = time.perf_counter()
        rows.write_all(contents)
        after_rows = time.perf_counter()
        rows.close()
    return {EACH_FILE: after_files - begun, ONE_COMMIT: after_rows - after_files}
