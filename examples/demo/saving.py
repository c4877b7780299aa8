"""Half a year of conversations becomes memory."""

from collections import Counter
from datetime import date
from itertools import groupby

from examples.demo.stage import MEMORIES, SESSIONS, Stage
from examples.demo.talks import Talk, talks
from perdure.app import open_context
from perdure.engine.memory import Memory
from perdure.surfaces.out import counted

CHATTER = "2026-01-19-monday-chatter"
"""A conversation with nothing to remember in it."""
_FEWEST = 30
"""Statements that half a year must give."""


def show_saving(stage: Stage) -> None:
    given = talks()
    _lay_out(stage, given)
    stage.sees(stage.type("commit", given[0].file), "5 extracted", "Mara lives in Kiel.")
    stage.remark(f"the other {len(given) - 1} in one process, by `memory.commit_session`:")
    learned = _save(stage, given[1:])
    stage.holds("half a year is worth remembering", is_so=sum(learned.values()) >= _FEWEST)
    stage.holds("small talk leaves nothing but the talk", is_so=learned[CHATTER] == 0)
    kept = "".join(file.read_text("utf-8") for file in (stage.folder / SESSIONS).iterdir())
    stage.holds(
        "every conversation is kept",
        is_so=all(f"id: sessions/{each.name}/messages\n" in kept for each in given),
    )
    stage.sees(stage.show_file(f"{MEMORIES}/Profile.md"), "- Mara lives in Porto.")


def _lay_out(stage: Stage, given: list[Talk]) -> None:
    """Put the conversations where commands find them; there is no key in these files."""
    (stage.folder / "conversations").mkdir()
    for talk in given:
        (stage.folder / talk.file).write_text(talk.text, encoding="utf-8")


def _save(stage: Stage, given: list[Talk]) -> Counter[str]:
    """Save conversations, and note where the log stood after each month."""
    learned: Counter[str] = Counter()
    with open_context(stage.environ) as context:
        for month, group in groupby(given, key=lambda talk: talk.month):
            learned.update(_save_month(stage, context.memory, list(group)))
            stage.moments[month] = str(context.recorded.history.position())
    return learned


def _save_month(stage: Stage, memory: Memory, given: list[Talk]) -> dict[str, int]:
    done = [
        memory.commit_session(talk.messages(stage.secret), session_id=talk.name) for talk in given
    ]
    stage.tell(
        f"{date.fromisoformat(given[0].name[:10]):%B}".ljust(9)
        + f"{counted(len(given), 'conversation').rjust(16)}"
        + f"{sum(each.messages for each in done):4} messages"
        + f"{sum(each.extracted for each in done):4} statements learned"
        + f"{sum(each.superseded for each in done):3} superseded"
    )
    return {each.session_id: each.extracted for each in done}
