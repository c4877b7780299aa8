"""The table of requests. Each is run through every door that offers its verb."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.doors.home import MEMORIES


@dataclass(frozen=True)
class Request:
    verb: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    is_refused: bool = False

    @property
    def id(self) -> str:
        given = " ".join(f"{name}={value}" for name, value in self.arguments.items())
        return f"{self.verb} {given}"[:80]


def _asked(verb: str, **arguments: object) -> Request:
    return Request(verb, arguments)


def _refused(verb: str, **arguments: object) -> Request:
    return Request(verb, arguments, is_refused=True)


BOBS = "ctx://local/users/bob/memories/note/door"
ELSEWHERE = "ctx://acme/users/ana/memories/note/plan"
EARLIER = "60"
"""A position of the log: all that is saved is there, no session is."""
KEY = "AKIA" + "Z7QX4PLM2WN6VR3T"

REQUESTS = (
    # recall: now, with limits, filters and budgets
    _asked("recall", query="Which indentation is preferred?"),
    _asked("recall", query="tea", top_k=1),
    _asked("recall", query="Where does Ana live?"),
    _asked("recall", query="When is the release?", top_k=3),
    _asked("recall", query="tabs", category="preference"),
    _asked("recall", query="tabs", category="nothing"),
    _asked("recall", query="rye bread"),  # only an edit by hand has it
    _asked("recall", query="naïve café 東京"),
    _asked("recall", query="smoking"),  # archived
    _asked("recall", query="throw away"),  # deleted
    _asked("recall", query="door code fridge"),  # another user's
    _asked("recall", query="xyzzy"),
    _asked("recall", query="tabs", valid_at="2026-04-01"),
    _asked("recall", query="Where does Ana live?", valid_at="2026-04-01"),
    _refused("recall", query="tabs", valid_at="yesterday"),
    _refused("recall", query="tabs", at="yesterday"),
    # recall: as of a state
    _asked("recall", query="tabs", at="2999-01-01"),
    _asked("recall", query="rye bread", at="2999-01-01"),  # the edit is recorded first
    _asked("recall", query="tabs", at=EARLIER),
    _asked("recall", query="smoking", at="2999-01-01"),
    _refused("recall", query="tabs", at="999999"),
    # read
    _asked("read", uri="preference/indentation"),
    _asked("read", uri=f"{MEMORIES}/preference/tea"),
    _asked("read", uri="note/plan"),
    _asked("read", uri="note/umlaute"),
    _asked("read", uri="profile"),
    _asked("read", uri="resources/handbook"),
    _asked("read", uri="note/plan", at="2999-01-01"),
    _asked("read", uri="preference/indentation", at=EARLIER),
    _refused("read", uri="preference/nothing"),
    _refused("read", uri="habit/smoking"),
    _refused("read", uri="note/draft"),
    _refused("read", uri=BOBS),
    _refused("read", uri=ELSEWHERE),
    _refused("read", uri="preference"),
    _refused("read", uri="ctx://"),
    # list and tree
    _asked("list"),
    _asked("list", folder="preference"),
    _asked("list", folder="resources"),
    _asked("list", folder="habit", archived=True),
    _asked("list", archived=True),
    _refused("list", folder="nothing/here"),
    _refused("list", folder="ctx://local/users/bob"),
    _refused("list", folder=ELSEWHERE),
    _asked("tree"),
    _asked("tree", folder="/"),
    _asked("tree", folder="/", project="none-such"),
    _asked("tree", folder="preference", at="2999-01-01"),
    # save
    _asked("remember", text="Never push to main.", kind="rule"),
    _asked("remember", text="The release is in May.", kind="fact", replaces="note/plan"),
    _refused("remember", text="Never push to main.", kind="law"),
    _refused("remember", text=" ", kind="rule"),
    _asked("candidates"),
    _refused("accept", id="nothing"),
    _refused("reject", id=""),
    _asked("save", text="Likes rain.", category="preference", slug="weather"),
    _asked("save", text="Prefers tabs of width four.", category="preference", slug="indentation"),
    _asked("save", text="Prefers spaces.", category="preference", slug="indentation"),
    _asked("save", text="A note without a name.", category="note"),
    _asked("save", text="<script>alert(1)</script> hello", category="note", slug="html"),
    _asked("save", text=f"key {KEY}", category="note", slug="key", mask_secrets=True),
    _refused("save", text=f"key {KEY}", category="note", slug="key"),
    _refused("save", text="Gone.", category="habit", slug="smoking"),
    _refused("save", text="Ana is somebody else.", category="profile"),
    # history and why
    _asked("history", uri="preference/indentation"),
    _asked("history", uri="note/draft"),
    _asked("why", uri="profile"),
    _asked("why", uri="preference/tea"),
    _asked("why", uri="ctx://local/sessions/2026-03-02-a/messages#0"),
    _refused("why", uri="preference/nothing"),
    _refused("why", uri=BOBS),
    # forget, archive, delete
    _asked("forget", uri="preference/tea"),
    _asked("forget", uri="habit/smoking"),
    _asked("forget", uri="We decided to release every second Thursday."),
    _asked("forget", uri="ctx://local/sessions/2026-03-02-a/messages#0"),
    _refused("forget", uri="The harbour master drinks rum."),
    _refused("forget", uri="~zzzz"),
    _refused("forget", uri="preference/nothing"),
    _refused("forget", uri=BOBS),
    _asked("delete", uri="preference/tea"),
    _refused("delete", uri="preference/nothing"),
    _refused("delete", uri=BOBS),
    _asked("archive", uri="preference/tea"),
    _refused("archive", uri="habit/smoking"),
    _asked("unarchive", uri="habit/smoking"),
    _refused("unarchive", uri="preference/tea"),
    # write and move
    _asked("write", uri="note/new", text="Something new."),
    _asked("write", uri="preference/tea", text="Green tea.", version=2),
    _asked("write", uri="note/plan", text="Call again.", replace=True),
    _refused("write", uri="preference/tea", text="No tea."),
    _refused("write", uri="preference/tea", text="No tea.", version=7),
    _refused("write", uri="preference/nothing", text="x", version=1),
    _refused("write", uri="note/new", text=f"key {KEY}"),
    _refused("write", uri=BOBS, text="x"),
    _asked("move", uri="preference/tea", to="taste/tea"),
    _asked("move", uri="preference/tea", to="taste/"),
    _refused("move", uri="preference/tea", to="preference/indentation"),
    _refused("move", uri="preference/nothing", to="taste/nothing"),
    # relations
    _asked("relations", uri="preference/tea"),
    _asked("relations", uri="preference/indentation"),
    _refused("relations", uri="preference/nothing"),
    _asked("relate", uri="preference/tea", to="note/umlaute", kind="about"),
    _refused("relate", uri="preference/tea", to="preference/nothing", kind="about"),
    _refused("relate", uri="preference/tea", to="note/umlaute", kind="mentions"),
    _asked("unrelate", uri="preference/tea", to="preference/indentation"),
    _refused("unrelate", uri="preference/tea", to="note/umlaute"),
    # restore, rewind, lint, repair
    _asked("restore", uri="preference/indentation", to=EARLIER),
    _refused("restore", uri="preference/nothing", to=EARLIER),
    _asked("rewind", when=EARLIER),
    _asked("rewind", when="2999-01-01", folder="preference"),
    _asked("lint"),
    _asked("lint", folder="preference"),
    _asked("repair"),
    _asked("repair", apply=True),
    # upkeep, for the owner; and what a member may not do
    _asked("status", owner=True),
    _refused("status"),
    _asked("index status", owner=True),
    _refused("index status"),
    _asked("index heal", owner=True),
    _refused("index heal"),
    _asked("index rebuild", owner=True),
    _refused("index rebuild"),
    _asked("outbox list", owner=True),
    _refused("outbox list"),
    _refused("outbox requeue", owner=True, event="nothing"),
    _asked("work", owner=True),
    _refused("work"),
    # accounts, users and agents
    _asked("tenants", kind="user"),
    _asked("tenants", kind="user", owner=True),
    _asked("tenants", kind="account", owner=True),
    _asked("create", kind="agent", name="coder", owner=True),
    _refused("create", kind="agent", name="coder"),
    _refused("create", kind="account", name="acme"),
    _refused("create", kind="user", name="", owner=True),
    _asked("delete tenant", kind="user", name="bob", owner=True),
    _refused("delete tenant", kind="user", name="eve", owner=True),
    _refused("delete tenant", kind="user", name="bob"),
)
