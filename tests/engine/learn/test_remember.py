"""One statement is kept once; what it replaces ends, and what is uncertain says so."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.app import Context
from perdure.engine.learn import statements
from perdure.engine.learn.new_statement import Citation
from perdure.engine.memory import Memory
from perdure.errors import InvalidValueError, SecretRefusedError
from tests.engine.saving.sessions import ANA, contents, open_home, user_messages


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with open_home(tmp_path) as opened:
        yield opened


@pytest.fixture
def memory(context: Context) -> Memory:
    return context.memory.for_caller(ANA, project="web")


@pytest.mark.parametrize(
    ("kind", "category"),
    [
        ("rule", "pattern"),
        ("decision", "pattern"),
        ("preference", "preference"),
        ("fact", "entity"),
        ("command", "skill"),
        ("rejected", "case"),
        ("task", "case"),
        ("person", "profile"),
    ],
)
def test_a_kind_is_stored_in_its_category(memory: Memory, kind: str, category: str) -> None:
    done = memory.remember("The parser is tested with `make fuzz`.", kind=kind)

    node = memory.read(done.uri)
    assert node.category in {category, None} or f"/{category}" in done.uri
    of_person = kind in {"preference", "person"}
    assert node.metadata.get("project", "") == ("" if of_person else "web")


def test_the_same_twice_is_one(context: Context, memory: Memory) -> None:
    first = memory.remember("Never force-push to main.", kind="rule")
    position = context.recorded.history.position()

    again = memory.remember("never force-push to main!", kind="rule")

    assert (again.uri, again.outcome) == (first.uri, "skipped")
    assert again.merged_with == "Never force-push to main."
    assert context.recorded.history.position() == position


def test_what_a_rule_learned_and_a_tool_stored_is_one(memory: Memory) -> None:
    message = {"role": "user", "content": "Always run the linter before you push anything."}
    memory.commit_session([message], session_id="s")

    done = memory.remember("Run the linter always before pushing anything.", kind="rule")

    assert done.merged_with == "Always run the linter before you push anything."
    assert len(memory.list("pattern")) == 1


def test_what_a_tool_stored_and_a_rule_learns_later_is_one(memory: Memory) -> None:
    memory.remember("Always run the linter before a push.", kind="rule")

    message = {"role": "user", "content": "Always run the linter before a push, please."}
    memory.commit_session([message], session_id="s")

    assert len(memory.list("pattern")) == 1


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "Run the tests with `make fast` before committing, never the whole suite.",
            "Run the tests with `make fast` before you commit, never the whole suite.",
        ),
        (
            "Use httpx, not requests, because of its timeouts.",
            "No, don't use requests here, we use httpx because of its timeouts.",
        ),
    ],
)
def test_another_form_of_a_verb_or_a_no_before_it_is_no_other_statement(
    memory: Memory, statement: str, message: str
) -> None:
    memory.remember(statement, kind="rule")

    memory.commit_session([{"role": "user", "content": message}], session_id="s")

    assert len(memory.list("pattern")) == 1


def test_what_was_turned_around_on_the_same_day_is_not_taken_for_the_same(memory: Memory) -> None:
    memory.remember("Use httpx, not requests.", kind="rule")

    message = {"role": "user", "content": "Use requests, not httpx."}
    memory.commit_session([message], session_id="s")

    assert "Use requests, not httpx." in "".join(
        memory.read(each.uri).content for each in memory.list("pattern")
    )


@pytest.mark.parametrize(
    ("old", "new", "stands"),
    [
        ("We use npm.", "we switched to pnpm", "we switched to pnpm"),
        ("We use npm.", "Use pnpm instead of npm.", "Use pnpm instead of npm."),
        (
            "The standup is on Thursdays.",
            "Mondays instead of Thursdays",
            "The standup is on Mondays.",
        ),
        (
            "The poller runs every 5 minutes.",
            "actually make it every 15 minutes",
            "The poller runs every 15 minutes.",
        ),
        ("The port is 8080.", "The port is 9090.", "The port is 9090."),
    ],
)
def test_what_changed_ends_with_date_and_reason(
    memory: Memory, old: str, new: str, stands: str
) -> None:
    memory.remember(old, kind="fact")

    done = memory.remember(new, kind="fact")

    assert (done.text, done.replaced) == (stands, (old,))
    (former,) = memory.list("former")
    node = memory.read(former.uri)
    assert node.metadata["valid_until"]
    assert stands in node.relations[0].reason
    assert node.metadata["project"] == "web"


# ---------------------------------------------------------------- every door, in both orders
DOORS = ("kept by a tool", "learned by a hook")
"""`remember`, as the tool calls it; a session, as the hook commits it."""


def state(memory: Memory, door: str, text: str, kind: str) -> None:
    if door == DOORS[0]:
        memory.remember(text, kind=kind)
    else:
        message = {"role": "user", "content": text}
        memory.commit_session([message], session_id=f"s{len(memory.sessions())}")


def holding(context: Context) -> list[str]:
    """Return every statement that holds now, without the days of it."""
    found = [text for uri, text in contents(context).items() if "/former/" not in uri]
    return [each.text for text in found for each in statements.statements(text)]


@pytest.mark.parametrize("second", DOORS)
@pytest.mark.parametrize("first", DOORS)
@pytest.mark.parametrize(
    ("kind", "old", "new", "stands"),
    [
        ("person", "I live in Oslo.", "I moved to Bergen.", "Bergen"),
        ("fact", "I'm using npm now.", "We switched to pnpm.", "We switched to pnpm."),
        (
            "rule",
            "The poller must always run every 5 minutes.",
            "Actually make it every 15 minutes.",
            "The poller must always run every 15 minutes.",
        ),
        (
            "rule",
            "The standup is always on Thursdays.",
            "Mondays instead of Thursdays.",
            "The standup is always on Mondays.",
        ),
    ],
)
def test_a_changed_statement_is_replaced_whether_a_tool_or_a_rule_stored_it(  # noqa: PLR0913, PLR0917 - a table
    context: Context,
    memory: Memory,
    first: str,
    second: str,
    kind: str,
    old: str,
    new: str,
    stands: str,
) -> None:
    state(memory, first, old, kind)
    (before,) = holding(context)
    state(memory, second, new, kind)

    (after,) = holding(context)
    assert stands in after
    (former,) = memory.list("former")
    node = memory.read(former.uri)
    assert statements.plain(node.content) == before
    assert node.metadata["valid_until"]
    assert node.relations[0].reason.endswith(f": {after}")


@pytest.mark.parametrize("second", DOORS)
@pytest.mark.parametrize("first", DOORS)
def test_what_may_have_changed_is_shown_with_what_came(
    context: Context, memory: Memory, first: str, second: str
) -> None:
    state(memory, first, "We use npm for the nightly images.", "fact")
    state(memory, second, "We switched to pnpm.", "decision")

    assert sorted(holding(context)) == [
        "We switched to pnpm.",
        "We use npm for the nightly images.",
    ]
    doubted = [text for text in contents(context).values() if "(may be outdated since " in text]
    assert [statements.plain(text) for text in doubted] == ["- We use npm for the nightly images."]


@pytest.mark.parametrize("order", [DOORS, DOORS[::-1]])
@pytest.mark.parametrize(
    ("kept", "learned"),
    [
        ("Run the linter before every push.", "Always run the linter before you push anything."),
        ("Never push directly to main.", "From now on, never push to main."),
        ("Use pnpm instead of npm.", "Use pnpm instead of npm."),
    ],
)
def test_what_a_tool_keeps_and_a_hook_learns_is_one(
    context: Context, memory: Memory, order: tuple[str, str], kept: str, learned: str
) -> None:
    for door in order:
        state(memory, door, kept if door == DOORS[0] else learned, "rule")

    assert len(holding(context)) == 1


@pytest.mark.parametrize("door", DOORS)
def test_where_several_statements_may_have_changed_all_are_shown(
    context: Context, memory: Memory, door: str
) -> None:
    for each in ("The poller runs every 5 minutes.", "The cache is cleared every 30 minutes."):
        memory.remember(each, kind="fact")
    state(memory, door, "Actually make it every 15 minutes.", "fact")

    assert len(holding(context)) == 3
    doubted = [text for text in contents(context).values() if "(may be outdated since " in text]
    assert len(doubted) == 2


def test_a_new_value_of_nothing_that_is_known_is_not_learned(
    context: Context, memory: Memory
) -> None:
    state(memory, DOORS[1], "Actually make it every 15 minutes.", "rule")
    state(memory, DOORS[1], "Mondays instead of Thursdays.", "rule")

    assert holding(context) == []


def test_who_moves_lives_there(memory: Memory) -> None:
    memory.remember("Lives in Oslo.", kind="person")

    assert memory.remember("I moved to Bergen", kind="person").replaced == ("Lives in Oslo.",)


def test_if_it_is_not_certain_both_are_stored_and_the_older_is_marked(memory: Memory) -> None:
    old = memory.remember("CI caches the npm folder.", kind="fact")

    done = memory.remember("we switched to pnpm", kind="decision")

    assert (done.replaced, done.doubted) == ((), ("CI caches the npm folder.",))
    assert "(may be outdated since " in memory.read(old.uri).content


def test_a_statement_made_again_is_not_doubted_any_more(memory: Memory) -> None:
    old = memory.remember("CI caches the npm folder.", kind="fact")
    memory.remember("we switched to pnpm", kind="decision")

    memory.remember("CI caches the npm folder.", kind="fact")

    assert memory.read(old.uri).content == "- CI caches the npm folder.\n"


def test_what_is_named_is_replaced(memory: Memory) -> None:
    old = memory.remember("Deploys go out by hand.", kind="fact")

    done = memory.remember("Deploys are made by the pipeline.", kind="fact", replaces=[old.uri])

    assert done.replaced == ("Deploys go out by hand.",)


def test_another_project_keeps_its_own(memory: Memory) -> None:
    first = memory.remember("We use npm.", kind="fact")

    other = memory.remember("We use npm.", kind="fact", project="api")
    memory.remember("we switched to pnpm", kind="decision", project="api")

    assert other.uri != first.uri
    assert memory.read(first.uri).content == "- We use npm.\n"


def test_stored_evidence_is_shown_by_why(memory: Memory) -> None:
    memory.commit_session(
        user_messages("Hm. The cache lives in Redis."), session_id="s", extract=False
    )
    quote = Citation("s", 0, "The cache lives in Redis.")

    done = memory.remember("The cache is in Redis.", kind="fact", evidence=[quote], session_id="s")

    (claim,) = memory.why(done.uri).statements
    assert [q.text for each in claim.evidence for q in each.quotes] == ["The cache lives in Redis."]


@pytest.mark.parametrize(
    "wrong",
    [{"kind": "law"}, {"kind": "rule", "speaker": "agent"}, {"kind": "fact", "speaker": "x"}],
)
def test_what_can_not_be_is_refused(memory: Memory, wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidValueError, match="Fix: "):
        memory.remember("Never push.", **wrong)  # type: ignore[arg-type]


def test_a_secret_is_refused(memory: Memory) -> None:
    with pytest.raises(SecretRefusedError):
        memory.remember("The token is ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8", kind="fact")


# ---------------------------------------------------------------- the review queue
TALK = user_messages("Keep the changelog short and in the past tense.", "go ahead")


def test_what_no_rule_wrote_waits(memory: Memory) -> None:
    memory.commit_session([*TALK, *user_messages("Never force-push to main.")], session_id="s")

    (found,) = memory.candidates()

    assert found.text == "Keep the changelog short and in the past tense."
    assert (found.session_id, found.message) == ("s", 0)


def test_what_is_accepted_is_a_statement_with_its_evidence(memory: Memory) -> None:
    memory.commit_session(TALK, session_id="s")
    (found,) = memory.candidates()

    done = memory.accept(found.id, text="The changelog is short.", kind="rule")

    assert memory.read(done.uri).content == "- The changelog is short.\n"
    assert memory.why(done.uri).statements[0].evidence[0].session == "s"
    assert memory.candidates() == ()


def test_what_is_rejected_is_never_proposed_again(memory: Memory) -> None:
    memory.commit_session(TALK, session_id="s")
    (found,) = memory.candidates()

    assert memory.reject(found.id[:6]) == found

    assert memory.candidates() == ()
    memory.commit_session(
        user_messages("keep the changelog SHORT, and in the past tense"), session_id="t"
    )
    assert memory.candidates() == ()


def test_a_forgotten_session_proposes_nothing(memory: Memory) -> None:
    memory.commit_session(TALK, session_id="s")
    memory.forget("sessions/s")

    assert memory.candidates() == ()
