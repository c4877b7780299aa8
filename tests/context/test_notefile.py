"""A node as one Markdown file: texts read back as they were written, and people's bytes stay."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.artifacts import CID
from perdure.context.node_files import (
    ARCHIVED,
    CONTENT,
    LEARNED,
    META,
    OWNER,
    Meta,
    short_hash,
    texts_of,
)
from perdure.context.nodes import ordered
from perdure.context.note_names import MARKDOWN, NoteNames, id_of, key_of, logical_text
from perdure.context.notefile import NoteFile, compose, split
from perdure.frontmatter import join
from perdure.model import ContextNode, NodeStatus, RelationEdge, Uri
from perdure.model.values import frozen
from perdure.testing.suite import examples

PLACE = "accounts/local/users/ana/memories/preference/indentation"
SESSION = "accounts/local/sessions/2026-03-02-a/messages"
NOON = datetime(2026, 3, 2, 12, 0, 0, 150057, tzinfo=UTC)
NAMES = NoteNames("local", "ana")

odd = st.sampled_from(
    [
        "",
        "---",
        "---\n",
        "---\na: 1\n---\nb",
        "\ufeffx",
        "a\r\nb\r\n",
        "# T\n",
        "é ü 日本",
        "a: b",
        "- x\n- y\n",
        "```\n---\n```\n",
        "\x0b",
        "\u2028",
        "x\x85y",
        "null",
        "12",
        "  ",
        "'\"",
        "#t",
    ]
)
texts = st.one_of(odd, st.text(max_size=60), st.tuples(odd, odd).map("\n".join))
scalars = st.one_of(
    texts,
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["2026-03-02", "2026-03-02T10:00:00Z", "yes", "1e5", "0x10", "a: b", "{a}"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
names = st.one_of(
    st.sampled_from(
        [
            "kind",
            "project",
            "date",
            "valid_from",
            "valid_until",
            "title",
            "id",
            "created",
            "perdure",
        ]
    ),
    st.sampled_from(
        ["foo", "tags", "aliases", "a-b", "evidence", "yes", "statements", "merges", "owner"]
    ),
    texts.filter(bool),
)
evidence = st.fixed_dictionaries(
    {"message": st.integers(0, 9), "cid": st.just("bafkreiby"), "quote": texts}
)
mentions = st.fixed_dictionaries(
    {"session": texts, "evidence": st.lists(evidence, min_size=1, max_size=2)},
    optional={"speaker": texts, "anchors": values},
)
statements = st.dictionaries(
    st.sampled_from(["bafkreiefpj", "bafkreihfg4"]),
    st.fixed_dictionaries(
        {"confidence": st.floats(0, 1), "kind": st.just("rule")},
        optional={"said": st.lists(mentions, max_size=2), "anchors": values, "topic": texts},
    ),
    max_size=2,
)
metadata = st.tuples(
    st.dictionaries(names, values, max_size=4),
    st.fixed_dictionaries({}, optional={"statements": statements, "merges": st.lists(values)}),
).map(lambda both: {**both[0], **both[1]})
lines = st.sampled_from(["", "tags: [a, b]  # mine\n", "title: Mine\n", "# c\n\nrating: 5\n"])
paths = st.sampled_from(
    [
        PLACE,
        SESSION,
        f"{SESSION}-2",
        "accounts/local/resources/a/b",
        "accounts/o/users/%41/memories",
        "accounts/local/users/ana/memories/profile",
        "accounts/local/agents/default/skills/deploy",
    ]
).map(lambda key: f"{key}/note/x" if key.endswith("memories") else key)


@st.composite
def written(draw: st.DrawFn) -> tuple[str, dict[str, str]]:
    """Draw a place, and its texts as the engine writes them."""
    place = draw(paths)
    uri = Uri.of_key(place)
    assert uri is not None
    other = Uri(uri.account, ("users", "bea", "memories", "note", "x2"))
    edge = RelationEdge(str(uri), str(other), "supports", 0.5, draw(texts)[:50], NOON)
    status = draw(st.sampled_from(NodeStatus))
    given_metadata = draw(metadata)
    node = ContextNode(
        uri=str(uri),
        content=draw(texts),
        abstract=draw(st.one_of(st.just(""), texts))[:150],
        overview=draw(st.one_of(st.just(""), texts)),
        relations=draw(st.sampled_from([(), (edge,)])),
        metadata=frozen({n: given_metadata[n] for n in ordered(given_metadata)}, "metadata"),
        status=status,
        version=draw(st.integers(1, 3)),
        owner_space="user:ana" if uri.session else "",
    )
    pieces = texts_of(node, join(draw(lines), node.content), sparse=draw(st.booleans()))
    meta = Meta(
        status,
        node.version,
        node.owner_space if uri.session else "",
        NOON,
        draw(st.sampled_from([NOON, NOON.replace(hour=13, microsecond=0)])),
        draw(st.sampled_from([{}, {CONTENT: "f0155"}])),
        node.metadata,
        draw(st.sampled_from(["", short_hash(pieces[CONTENT])])),
    )
    found = {**pieces, META: meta.text()}
    if status is NodeStatus.ARCHIVED:
        found[ARCHIVED] = f"{uri}\n"
    if place == SESSION:
        found |= draw(
            st.fixed_dictionaries({OWNER: st.just("user:ana\n")}, optional={LEARNED: texts})
        )
    return place, found


@given(written())
@settings(max_examples=examples(600), deadline=None)
def test_what_was_written_is_read(drawn: tuple[str, dict[str, str]]) -> None:
    place, wanted = drawn

    real = compose(wanted, place, None)

    assert split(real, place) == wanted
    assert real.endswith("\n")


@given(written(), st.data())
@settings(max_examples=examples(300), deadline=None)
def test_any_of_the_texts_may_be_missing_or_change(
    drawn: tuple[str, dict[str, str]], raw: st.DataObject
) -> None:
    place, wanted = drawn
    real = compose(wanted, place, None)
    name = raw.draw(st.sampled_from(sorted(wanted)))
    changed = {**wanted, name: raw.draw(texts)}
    if raw.draw(st.booleans()):
        del changed[name]

    if changed:
        assert split(compose(changed, place, real), place) == changed


@given(written(), written(), st.sampled_from(["tags: [ a,b ] # mine\n", "'k': >\n  a\n\n  b\n"]))
@settings(max_examples=examples(300), deadline=None)
def test_one_state_follows_another(
    drawn: tuple[str, dict[str, str]], after: tuple[str, dict[str, str]], added: str
) -> None:
    place, wanted = drawn
    real = compose(wanted, place, None)
    file = NoteFile.parse(real)
    edited = file._replace(entries=(*file.entries, *NoteFile.parse(f"---\n{added}---\n").entries))
    if place == after[0]:
        assert split(compose(after[1], place, edited.text()), place) == after[1]


PERSONS = """\
---
# my own comment
tags: [ a,b ]   # spaced as I like
id: preference/indentation
'quoted key': "x"

created: 2026-03-02T12:00:00.150057Z
nested:
- one
-   two
project: acme   # ours, with a comment
---
Prefers tabs.\r
\r
Really.  \t
"""


@pytest.mark.parametrize(
    "real", [PERSONS, "\ufeff" + PERSONS, PERSONS.replace("\n", "\r\n"), PERSONS[:-1]]
)
def test_a_change_of_metadata_keeps_every_byte_of_a_person(real: str) -> None:
    before = split(real, PLACE)
    meta = Meta.parse(before[META])
    later: Any = meta._replace(version=2, updated_at=NOON.replace(hour=14))
    end = "\r\n" if "---\r\n" in real else "\n"

    after = compose({**before, META: later.text()}, PLACE, real)

    assert meta.metadata == {"project": "acme"}
    added = f"updated: 2026-03-02T14:00:00.150057Z{end}version: 2{end}"
    assert added in after
    assert after.replace(added, "") == real
    assert split(after, PLACE) == {**before, META: later.text()}


def test_a_change_of_the_content_keeps_the_persons_properties() -> None:
    before = split(PERSONS, PLACE)
    content = before[CONTENT].replace("tabs", "spaces")
    meta = Meta.parse(before[META])._replace(content=short_hash(content))
    wanted = {**before, CONTENT: content, META: meta.text()}

    after = compose(wanted, PLACE, PERSONS)

    assert split(after, PLACE) == wanted
    head, _, _ = PERSONS.rpartition("---\n")
    assert after.startswith(head)


def test_a_memory_looks_as_a_person_would_write_it() -> None:
    uri = Uri.of_key(PLACE)
    assert uri is not None
    node = ContextNode(uri=str(uri), content="- Prefers tabs over spaces.\n")
    pieces = texts_of(node, node.content, sparse=True)
    cid = str(CID.of(b"Prefers tabs over spaces."))
    said = [
        {
            "session": "a",
            "evidence": [{"message": 0, "cid": "bafy", "quote": "tabs"}],
            "speaker": "user",
        }
    ]
    statements: Any = {cid: {"confidence": 0.9, "kind": "preference", "said": said}}
    meta = Meta(
        NodeStatus.ACTIVE,
        1,
        "",
        NOON,
        NOON,
        {},
        {"kind": "preference", "project": "acme-web", "statements": statements},
        short_hash(node.content),
    )
    assert compose({**pieces, META: meta.text()}, PLACE, None) == (
        "---\nid: preference/indentation\nkind: preference\nproject: acme-web\n"
        "created: 2026-03-02T12:00:00.150057Z\nevidence:\n"
        '  - {session: "a", message: 0, quote: "tabs", confidence: 0.9, cid: "bafy", '
        f'statement: "{cid[7:19]}"}}\n'
        "---\n- Prefers tabs over spaces.\n"
    )


@pytest.mark.parametrize(
    ("category", "kind", "folder"),
    [
        ("note", "", "Notes"),
        ("decision", "", "Decisions"),
        ("pattern", "decision", "Decisions"),
        ("pattern", "rule", "Rules"),
        ("rule", "", "Rules"),
        ("case", "task", "Tasks"),
        ("case", "rejected", "Rejected"),
        ("entity", "fact", "Facts"),
        ("event", "", "Events"),
        ("health", "", "Health"),
        ("to-read", "", "To read"),
        ("notes", "", "Notes"),
        ("system", "", "System (system)"),
    ],
)
def test_a_category_that_is_not_ours_names_its_folder_and_the_id_says_which_it_is(
    category: str, kind: str, folder: str
) -> None:
    place = Uri("local", ("users", "ana", "memories", category, "tea")).key

    assert NAMES.folder(place, kind) == (folder,)
    assert NAMES.place(f"{folder}/Tea.md", f"{category}/tea") == place
    assert NAMES.place("Preferences/Moved.md", f"{category}/tea") == place


@pytest.mark.parametrize(
    ("slug", "title", "name"),
    [
        ("never-push-directly-main", "Never push directly to main.", "Never push directly to main"),
        ("dark-mode-every-editor", "The user prefers dark mode in every editor.", None),
        ("tea", "The user likes tea.", "Tea"),
        ("other-words-than-these", "The user likes tea.", "Other words than these"),
        ("heron-7c1f76a1", "The staging server is heron…", "The staging server is heron"),
    ],
)
def test_a_slug_of_a_sentence_gives_its_file_the_words_of_it(
    slug: str, title: str, name: str | None
) -> None:
    place = Uri("local", ("users", "ana", "memories", "rule", slug)).key

    assert NAMES.stem(place, title, "") == (name or "Dark mode in every editor")


@given(st.text(max_size=80))
def test_a_text_that_is_no_node_is_a_note_of_the_system(text: str) -> None:
    place = "accounts/local/users/ana/.forgotten"

    assert split(compose({"": text}, place, None), place) == {"": text}


# ---------------------------------------------------------------- names
slugs = st.from_regex(r"[a-z0-9_-]{1,100}", fullmatch=True)
ids = st.text(min_size=1, max_size=20).filter(
    lambda text: text.encode(errors="ignore").decode() == text
)


@st.composite
def places(draw: st.DrawFn) -> str:
    account = draw(st.sampled_from(["local", "Acme"]))
    shape = draw(st.integers(0, 4))
    owner = (
        draw(st.sampled_from(["users", "agents"])),
        draw(st.sampled_from(["ana", "Ana", "a b"])),
    )
    category = draw(slugs.filter(lambda each: each != "profile"))
    if shape == 0:
        return Uri(account, (*owner, "memories", category, draw(slugs))).key
    if shape == 1:
        return Uri(account, (*owner, "memories", "profile")).key
    if shape == 2:
        return Uri(account, ("agents", owner[1], "skills", draw(slugs))).key
    if shape == 3:
        return Uri(account, ("sessions", draw(ids), draw(ids))).key
    return Uri(account, ("resources", *draw(st.lists(ids, min_size=1, max_size=3)))).key


@given(places(), st.text(max_size=30))
@settings(max_examples=examples(500))
def test_a_note_is_found_at_its_place_again(place: str, title: str) -> None:
    path = "/".join((*NAMES.folder(place), NAMES.stem(place, title, "2026-03-02") + MARKDOWN))

    assert NAMES.place(path, id_of(place)) == place


@given(slugs, slugs)
@settings(max_examples=examples(500))
def test_a_slug_can_be_derived_from_the_name_of_its_file(category: str, slug: str) -> None:
    if category == "profile":
        return
    place = Uri("local", ("users", "ana", "memories", category, slug)).key
    path = "/".join((*NAMES.folder(place), NAMES.stem(place, "", "") + MARKDOWN))
    found = NAMES.place(path, None)

    assert NAMES.place(path, id_of(place)) == place
    assert found is not None
    assert found.endswith(f"/{slug}")


@pytest.mark.parametrize(
    ("key", "place"),
    [
        (f"{PLACE}/content.md", PLACE),
        (f"{PLACE.rpartition('/')[0]}/.archived/indentation", PLACE),
        ("accounts/local/sessions/2026-03-02-a/.owner", SESSION),
        ("accounts/local/users/ana/.forgotten", "accounts/local/users/ana/.forgotten"),
        ("projects/acme/state/content.md", "projects/acme/state/content.md"),
    ],
)
def test_each_text_is_in_one_note(key: str, place: str) -> None:
    part = logical_text(key)

    assert part.place == place
    assert key_of(part) == key
