"""The table of the ledger. One row for each call; no text of it. Times are microseconds."""

# ruff: noqa: S608 - the statements are put together from constants of this module only

from perdure.database import Tables

VERSION = 1

_STATEMENTS = (
    # While a call is open, the numbers are the most that it may come to. So they stay if whoever
    # made it never came back.
    """CREATE TABLE calls (
        seq INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        day TEXT NOT NULL,
        memory TEXT NOT NULL,
        account TEXT NOT NULL,
        owner TEXT NOT NULL,
        session TEXT NOT NULL,
        purpose TEXT NOT NULL,
        model TEXT NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        money INTEGER,
        cached INTEGER NOT NULL,
        outcome TEXT NOT NULL)""",
    "CREATE INDEX days ON calls (day)",
    "CREATE INDEX sessions ON calls (memory, account, session)",
    "CREATE INDEX times ON calls (at)",
    f"PRAGMA user_version = {VERSION}",
)

TABLES = Tables(
    name="the ledger of language models",
    version=VERSION,
    statements=_STATEMENTS,
    without="budgets begin anew then, and what was spent is forgotten",
)

ADD = (
    "INSERT INTO calls (at, day, memory, account, owner, session, purpose, model, input_tokens, "
    "output_tokens, money, cached, outcome) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SPENT = "SELECT coalesce(sum(input_tokens + output_tokens), 0), coalesce(sum(money), 0) FROM calls"
SPENT_IN_SESSION = f"{_SPENT} WHERE memory = ? AND account = ? AND session = ?"
SPENT_ON_DAY = f"{_SPENT} WHERE day = ?"
SETTLE = "UPDATE calls SET outcome = ? WHERE seq = ?"
SETTLE_FOR = (
    "UPDATE calls SET outcome = ?, input_tokens = ?, output_tokens = ?, money = ? WHERE seq = ?"
)
TOTALS = {
    name: f"""SELECT {name}, count(*) FILTER (WHERE NOT cached), count(*) FILTER (WHERE cached),
        count(*) FILTER (WHERE outcome = 'open'), sum(input_tokens), sum(output_tokens), sum(money)
        FROM calls WHERE at >= ? GROUP BY 1 ORDER BY 1"""
    for name in ("day", "session", "model", "purpose")
}
ROWS = (
    "SELECT at, account, session, purpose, model, input_tokens, output_tokens, money, cached, "
    "outcome FROM calls WHERE at >= ? ORDER BY seq"
)
FORGET_ACCOUNT = (
    "UPDATE calls SET account = '', owner = '', session = '' WHERE memory = ? AND account = ?"
)
FORGET_OWNER = f"{FORGET_ACCOUNT} AND owner = ?"
