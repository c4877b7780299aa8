"""Who asks for what: ids that are easily taken for each other, requests, and places."""

from dataclasses import dataclass

from hypothesis import strategies as st

from perdure.model import RequestContext, Role, Uri

COLLIDING: tuple[tuple[str, ...], ...] = (
    ("a|b", "a/b", "a%2Fb", "a%2fb", "ab", "a/b "),
    ("A", "a", "a ", " a", "a\n", "\uff41"),
    ("\u00e9t\u00e9", "e\u0301te\u0301", "ete", "\u00e9te\u0301", "ete\t"),
    ("..", ".", "...", "con", "CON", "con "),
    ("user:a", "a:b", "agent:a", "a", "account:a", "a:b "),
    ("an", "ann", "anna", "ann ", "an\n"),
    ("x y", "x%20y", "x+y", "x\u00a0y", "x\ty"),
    ("\U0001f5dd", "\U0001f5dd\ufe0f", "%F0%9F%97%9D", "users", "sessions", "resources"),
    ("a.md", "a", "a.b", "a.", "content.md", ".meta.json"),
    ("%", "%25", "%%", "_", "*", "a%"),
    ("a'b", 'a"b', "a--b", "a;b", "a' OR '1'='1"),
)
"""Families of ids that some comparison, folding or encoding would take for each other."""

SLUGS = ("x", "y")
NOBODY = "nobody-here"
"""An id that nobody ever has; what is asked of it is absent for sure."""


@dataclass(frozen=True, slots=True)
class Cast:
    """Everybody that there is in one run."""

    accounts: tuple[str, ...]
    users: tuple[str, ...]
    agents: tuple[str, ...]
    sessions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Who:
    """Somebody of the cast who asks."""

    account: int
    user: int
    agent: int
    role: Role
    shown: frozenset[tuple[str, int]]
    session: int | None

    def asks(self, cast: Cast) -> RequestContext:
        ids = {"user": cast.users, "agent": cast.agents}
        return RequestContext(
            cast.accounts[self.account],
            cast.users[self.user],
            cast.agents[self.agent],
            session_id="" if self.session is None else cast.sessions[self.session],
            role=self.role,
            visible_owner_spaces=frozenset(f"{kind}:{ids[kind][i]}" for kind, i in self.shown),
        )


@dataclass(frozen=True, slots=True)
class Where:
    """A place for a node among the cast, in the account of who asks or in the other."""

    away: bool
    kind: str
    owner: int
    slug: int

    def uri(self, cast: Cast, home: int) -> str:
        slug = SLUGS[self.slug]
        paths = {
            "user": ("users", cast.users[self.owner], "memories", "event", slug),
            "profile": ("users", cast.users[0], "memories", "profile"),
            "agent": ("agents", cast.agents[self.owner % 2], "memories", "event", SLUGS[0]),
            "skill": ("agents", cast.agents[self.owner % 2], "skills", SLUGS[0]),
            "session": ("sessions", cast.sessions[self.owner % 2], slug),
            "resource": ("resources", slug),
        }
        return str(Uri(cast.accounts[home ^ self.away], paths[self.kind]))


def _distinct(count: int) -> st.SearchStrategy[tuple[str, ...]]:
    """Draw ids of one family, or any."""
    drawn = st.text(min_size=1, max_size=6).filter(_is_id)
    anything = st.sampled_from([id_ for family in COLLIDING for id_ in family]) | drawn
    pools = [*map(st.sampled_from, COLLIDING), anything, anything]
    return st.sampled_from(pools).flatmap(
        lambda pool: st.lists(pool, min_size=count, max_size=count, unique=True).map(tuple)
    )


def _is_id(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


CASTS = st.builds(Cast, _distinct(2), _distinct(3), _distinct(2), _distinct(2))
WHOS = st.builds(
    Who,
    account=st.sampled_from([0, 0, 1]),
    user=st.integers(0, 2),
    agent=st.integers(0, 1),
    role=st.sampled_from([Role.MEMBER, Role.MEMBER, Role.MEMBER, Role.ADMIN, Role.ROOT]),
    shown=st.frozensets(
        st.sampled_from([("user", 0), ("user", 1), ("user", 2), ("agent", 0), ("agent", 1)]),
        max_size=2,
    ),
    session=st.sampled_from([None, 0, 1]),
)
_KINDS = ["user", "user", "user", "agent", "session", "session", "resource", "skill", "profile"]
WHERES = st.builds(
    Where,
    away=st.sampled_from([False, False, False, True]),
    kind=st.sampled_from(_KINDS),
    owner=st.integers(0, 2),
    slug=st.integers(0, 1),
)


def everywhere(cast: Cast) -> list[str]:
    """Return every place that the cast can ask for."""
    found = {
        Where(away, kind, owner, slug).uri(cast, 0): None
        for away in (False, True)
        for kind in dict.fromkeys(_KINDS)
        for owner in range(3)
        for slug in range(2)
    }
    return list(found)
