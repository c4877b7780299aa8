"""Random histories of a small memory, and what it answers."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import strategies as st

from perdure.app import Context
from perdure.artifacts import IndexState
from perdure.engine.recall.result import Hit
from perdure.errors import ContextError
from perdure.model import SUPERSEDED_BY, RelationEdge, RequestContext
from perdure.storage import Locator
from tests.engine.remembering import ADMIN, ANA, BOB, of

WORDS = ("tabs", "coffee", "train", "cat", "lisbon", "soup")
QUESTIONS = ("tabs coffee", "who likes the cat in lisbon?", "train", "soup before?")
SLUGS = ("one", "two", "three")
WHO = (ANA, BOB)

TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
Step = Callable[[Context], object]


def saving(who: int, slug: str, text: str) -> Step:
    return lambda context: of(context, WHO[who]).save(text, category="preference", slug=slug)


def changing(verb: str, who: int, slug: str, other: str) -> Step:
    folder = f"ctx://local/users/{WHO[who].user_id}/memories/preference"

    def run(context: Context) -> None:
        targets = (f"{folder}/{other}",) if verb == "move_node" else ()
        getattr(context.nodes, verb)(f"{folder}/{slug}", *targets, WHO[who])

    return run


def saying(who: int, session: str, texts: Sequence[str]) -> Step:
    messages = [
        {"role": "user", "content": text, "name": f"N{at}"} for at, text in enumerate(texts)
    ]
    return lambda context: of(context, WHO[who]).commit_session(
        messages, session_id=session, extract=False
    )


def editing(slug: str, text: str) -> Step:
    def run(context: Context) -> None:
        root = Path(context.recorded.identity)
        for file in root.glob(f"accounts/local/users/*/memories/preference/{slug}/content.md"):
            file.write_text(text)
            context.recorded.notice([Locator(file.relative_to(root).as_posix())])

    return run


def relating(who: int, slug: str) -> Step:
    folder = f"ctx://local/users/{WHO[who].user_id}/memories/preference"
    edge = RelationEdge(f"{folder}/{slug}", f"{folder}/none", "knows")
    return lambda context: context.relations.upsert_edges([edge], WHO[who])


def superseding(who: int, slug: str, text: str, until: str) -> Step:
    """Save a former statement, valid until a day; without one, until now."""
    memories = f"ctx://local/users/{WHO[who].user_id}/memories"
    edge = RelationEdge(f"{memories}/former/{slug}", f"{memories}/preference/{slug}", SUPERSEDED_BY)

    def run(context: Context) -> None:
        metadata = {"valid_until": until or datetime.now(UTC).isoformat()}
        of(context, WHO[who]).save(text, category="former", slug=slug, metadata=metadata)
        context.relations.upsert_edges([edge], WHO[who])

    return run


def forgetting(who: int) -> Step:
    """Delete a user with all that is theirs."""

    def run(context: Context) -> None:
        context.namespaces.delete_user("local", WHO[who].user_id, context.request)

    return run


def meddling(where: str, text: str) -> Step:
    """Edit files without recording it; no text removes them."""

    def run(context: Context) -> None:
        for file in Path(context.recorded.identity).glob(f"accounts/local/{where}"):
            if text:
                file.write_text(text)
            else:
                file.unlink()

    return run


def littering(who: int, name: str) -> Step:
    """Create a folder that is not a memory beside those that are."""

    def run(context: Context) -> None:
        root = Path(context.recorded.identity) / "accounts/local/users" / WHO[who].user_id
        (root / "memories/preference" / name).mkdir(parents=True, exist_ok=True)

    return run


def looking(rebuild: bool) -> Step:  # noqa: FBT001 - drawn
    """Let the index see what the files are."""

    def run(context: Context) -> None:
        if rebuild:
            context.indexes.configured.follower.rebuild("local")
        for who in WHO:
            of(context, who).recall(" ".join(WORDS))

    return run


PEOPLE = st.sampled_from([0, 1])
SLUGGED = st.sampled_from(SLUGS)
STEPS = st.one_of(
    st.builds(saving, PEOPLE, SLUGGED, TEXTS),
    st.builds(
        changing,
        st.sampled_from(["delete_node", "archive_node", "unarchive_node", "move_node"]),
        PEOPLE,
        SLUGGED,
        SLUGGED,
    ),
    st.builds(superseding, PEOPLE, SLUGGED, TEXTS, st.sampled_from(["", "2020-01-01"])),
    st.builds(saying, PEOPLE, st.sampled_from(["s", "t"]), st.lists(TEXTS, max_size=4)),
    st.builds(editing, SLUGGED, TEXTS),
)

BEHIND = st.one_of(
    st.builds(
        meddling,
        st.sampled_from(
            [
                "users/*/memories/preference/one/content.md",
                "users/*/memories/preference/two/.abstract.md",
                "users/*/memories/preference/t*/.meta.json",
            ]
        ),
        TEXTS | st.just(""),
    ),
    st.builds(littering, PEOPLE, SLUGGED),
    st.builds(looking, st.booleans()),
)
"""Changes that the log does not have, or only later."""
MORE = st.one_of(
    STEPS,
    st.builds(relating, PEOPLE, SLUGGED),
    st.builds(forgetting, PEOPLE),
    BEHIND,
)


def done(steps: Sequence[Step], context: Context) -> list[IndexState]:
    """Do what can be done; return the state after each step."""
    states = []
    for step in steps:
        try:
            step(context)
        except (ContextError, FileExistsError):
            continue
        states.append(IndexState(0, context.recorded.history.position()))
    return states


def answers(recall: Callable[[str, RequestContext], Sequence[Hit]]) -> list[tuple[object, ...]]:
    return [
        (
            question,
            who,
            [
                (hit.uri, hit.cid, hit.snippet, hit.score, hit.holds)
                for hit in recall(question, who)
            ],
        )
        for question in QUESTIONS
        for who in (ANA, BOB, ADMIN)
    ]
