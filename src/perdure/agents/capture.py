"""Whether the sessions of an agent are still kept; if not, one line says so at the next start."""

import time
from datetime import UTC, datetime
from pathlib import Path

from perdure.agents.pending import Pending
from perdure.agents.runs import (
    KEEPING,
    KEPT,
    WARNED,
    Run,
    last_run,
    record_run,
    runs_of,
    session_digest,
)

PROMPT = "user-prompt-submit"
HOUR, DAY = 3600.0, 86_400.0
_FEWEST_SESSIONS = 2
"""One session without an end may have been killed; several that nothing was kept of were not."""


def stopped_capture(home: Path, agent: str, session: str = "") -> str:
    """Say what stopped sessions of an agent from being kept, and since when; empty if nothing.

    Notes that have waited for over an hour are not kept. Nor are sessions whose prompts came and
    whose end never did, if nothing was kept since the first of them.
    """
    waiting = [each for each in Pending(home).times() if time.time() - each > HOUR]
    if waiting:
        number = f"{len(waiting)} session{'s' if len(waiting) > 1 else ''}"
        return f"{number} could not be kept since {_day(min(waiting))}"
    kept, prompted = last_run(home, agent, KEPT), last_run(home, agent, PROMPT)
    if prompted <= kept + HOUR:  # as nearly always
        return ""
    ended = {run.session for event in KEEPING for run in runs_of(home, agent, event)}
    first: dict[str, float] = {}
    for run in runs_of(home, agent, PROMPT):
        if kept < run.time < time.time() - HOUR and run.session not in {
            *ended,
            session_digest(session),
        }:
            first.setdefault(run.session, run.time)
    if len(first) < _FEWEST_SESSIONS:
        return ""
    since = _day(min(first.values()))
    return f"no session of {agent} was kept since {since}: its stop hook did not run"


def capture_warning(home: Path, agent: str, session: str) -> str:
    """Return one line for a session that starts if capture stopped; at most one a day."""
    if time.time() - last_run(home, agent, WARNED) < DAY:
        return ""
    stopped = stopped_capture(home, agent, session)
    if not stopped:
        return ""
    record_run(home, agent, WARNED, Run(session_digest(session)))
    return f"Memory: {stopped}. The user can run `perdure doctor --agents` to see why."


def _day(then: float) -> str:
    return datetime.fromtimestamp(then, UTC).strftime("%Y-%m-%d %H:%M UTC")
