import contextlib
import copy
import pickle
import re
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perdure.errors import InvalidUriError, InvalidValueError
from perdure.model import Uri, check_slug, slugify
from perdure.model.uri import MAX_ID_BYTES, MAX_KEY_BYTES, SHAPES, name_of, segment_of
from perdure.storage import Locator
from perdure.storage.changes import marked_original, original_of
from perdure.storage.locator import MAX_SEGMENT_BYTES, TEMPORARY_SUFFIX
from perdure.testing.suite import examples

FILES = ("content.md", ".relations.json", ".abstract.md", ".overview.md", ".meta.json")
DEVICES = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{n}" for port in ("com", "lpt") for n in range(10)),
}

TRIED = (
    *("a|b", "ab", "a/b", "a%2Fb", "a%2fb", "a%252fb", "A", "a", "\u00e9", "e\u0301", "E\u0301"),
    *(
        "..",
        ".",
        "...",
        " ",
        "  ",
        "con",
        "CON",
        "con.",
        "con ",
        "con.txt",
        "nul.txt",
        "lpt1",
        "com0",
    ),
    *(
        "x",
        "x.",
        "x..",
        "x ",
        ".x",
        "x.y",
        "x .y",
        "\U0001f511",
        "\0",
        "\n",
        "a\nb",
        "\\",
        ":",
        "*",
    ),
    *("\u0131", "\u0130", "i", "I", "\u00df", "ss", "\u017f", "s", "S", "\u212a", "k", "K"),
    *("\ufb01", "fi", "\uff41", "\u2024", "\u2025", "\uff0e", "\u2100", "a/c", "\u200b", "\ufeff"),
    *("a.perdure-tmp", ".perdure-tmp", "x.sync-conflict-20260102-030405", "x (Conflict)", "x 2"),
    *(
        "x.sync-conflict-20260102-030405-ABCDEFG.md",
        "x (1)",
        "x (Ana's conflicted copy 2026-01-02)",
    ),
    *("content.md", "Content.md", "a.content.md", ".meta.json", "accounts", "profile", "memories"),
    *("desktop.ini", "~", "-rf", "%", "%25", "%41", "a+b", "a b", "?", "#", "user:a"),
)
REFUSED = (
    "",
    "x" * 10_000,
    "\u00e9" * 34,
    "\ud800",
    "a\udfffb",
    "x" * (MAX_ID_BYTES + 1),
    "X" * 67,
)

CHARACTERS = st.characters(codec="utf-8")
PIECES = st.sampled_from((*TRIED, "/", "%", ".", " ", "A", "con", "md", "-", "_", "~"))
IDS = (
    st.lists(PIECES | CHARACTERS, min_size=1, max_size=5)
    .map("".join)
    .filter(lambda name: len(segment_of(name)) <= MAX_ID_BYTES)
)
SLUGS = st.from_regex(r"[a-z0-9_-]{1,100}", fullmatch=True)
CATEGORIES = SLUGS.filter(lambda slug: slug != "profile")


def places(ids: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    """Return the paths of every shape, and of the folders above them."""
    owners = st.tuples(st.sampled_from(("users", "agents")), ids)
    free = st.lists(ids, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.sampled_from(((), ("users",), ("agents",), ("resources",), ("sessions",))),
        owners,
        st.builds(lambda owner, *rest: (*owner, "memories", *rest), owners),
        st.builds(lambda owner, *rest: (*owner, "memories", *rest), owners, CATEGORIES),
        st.builds(lambda owner, *rest: (*owner, "memories", *rest), owners, CATEGORIES, SLUGS),
        owners.map(lambda owner: (*owner, "memories", "profile")),
        ids.map(lambda agent: ("agents", agent, "skills")),
        st.builds(lambda agent, name: ("agents", agent, "skills", name), ids, SLUGS),
        free.map(lambda names: ("resources", *names)),
        free.map(lambda names: ("sessions", *names)),
    )


def fits(uri: tuple[str, tuple[str, ...]]) -> bool:
    segments = ("accounts", *map(segment_of, (uri[0], *uri[1])))
    return len("/".join(segments)) <= MAX_KEY_BYTES


URIS = st.tuples(IDS, places(IDS)).filter(fits).map(lambda uri: Uri(*uri))

NODES = (
    "ctx://a/users/b/memories/event/x",
    "ctx://a/agents/b/memories/profile",
    "ctx://a/agents/b/skills/x",
    "ctx://a/resources/x",
    "ctx://a/resources/x/memories/event",
    "ctx://a/sessions/s/memories/event",
    "ctx://a/sessions/s/x/y",
)
FOLDERS = (
    "ctx://a",
    "ctx://a/users",
    "ctx://a/users/b",
    "ctx://a/users/b/memories",
    "ctx://a/users/b/memories/event",
    "ctx://a/agents/b/skills",
    "ctx://a/resources",
    "ctx://a/sessions",
    "ctx://a/sessions/s",
)

FOLDS: dict[str, Callable[[str], str]] = {
    "casefold": str.casefold,
    "lower": str.lower,
    "upper": str.upper,
    "NFC": lambda name: unicodedata.normalize("NFC", name),
    "NFD": lambda name: unicodedata.normalize("NFD", name),
    "NFKC": lambda name: unicodedata.normalize("NFKC", name),
    "NFKD": lambda name: unicodedata.normalize("NFKD", name),
    "strip": lambda name: name.rstrip(". "),
    "all": lambda name: unicodedata.normalize("NFKC", name.casefold()).rstrip(". ").upper(),
}
"""What a file system may do to a name before it looks it up."""


def at_every_place(name: str) -> list[Uri]:
    return [
        Uri(name, ("resources", "x")),
        Uri("a", ("users", name, "memories", "profile")),
        Uri("a", ("agents", name, "skills", "x")),
        Uri("a", ("sessions", name, "x")),
        Uri("a", ("sessions", "x", name)),
        Uri("a", ("resources", name)),
        Uri("a", ("resources", "x", name)),
    ]


class TestParsing:
    @pytest.mark.parametrize(
        ("text", "path"),
        [
            ("ctx://local", ()),
            ("ctx://local/users", ("users",)),
            ("ctx://local/users/ana", ("users", "ana")),
            ("ctx://local/agents/ana/memories", ("agents", "ana", "memories")),
            ("ctx://local/users/ana/memories/event", ("users", "ana", "memories", "event")),
            ("ctx://local/users/ana/memories/event/x", ("users", "ana", "memories", "event", "x")),
            ("ctx://local/users/ana/memories/profile", ("users", "ana", "memories", "profile")),
            ("ctx://local/agents/x/skills/deploy", ("agents", "x", "skills", "deploy")),
            ("ctx://local/resources/Q1/Report.pdf", ("resources", "Q1", "Report.pdf")),
            ("ctx://local/sessions/2026-03-02-a/3", ("sessions", "2026-03-02-a", "3")),
            ("ctx://local/users/%2E.", ("users", "..")),
            ("ctx://local/users/a%2Fb", ("users", "a/b")),
            ("ctx://local/users/%C3%A9%00", ("users", "\u00e9\0")),
        ],
    )
    def test_every_shape_and_the_folders_above_it_are_read(
        self, text: str, path: tuple[str, ...]
    ) -> None:
        assert Uri.parse(text) == Uri("local", path)
        assert str(Uri("local", path)) == text

    @pytest.mark.parametrize(
        "text",
        [
            *(
                "",
                "ctx:",
                "ctx:/a",
                "ctx://",
                "ctx:///",
                "CTX://a",
                "Ctx://a",
                " ctx://a",
                "http://a",
            ),
            *("ctx://a/", "ctx://a//users", "ctx://a/users/", "ctx://a/users//memories"),
            *("ctx://a/b", "ctx://a/Users", "ctx://a/accounts", "ctx://a/users/b/notes"),
            *("ctx://a/users/b/skills", "ctx://a/users/b/skills/x", "ctx://a/agents/b/skills/x/y"),
            *("ctx://a/users/b/memories/profile/x", "ctx://a/users/b/memories/event/x/y"),
            *("ctx://a/users/b/memories/Event/x", "ctx://a/users/b/memories/event/X"),
            *("ctx://a/users/b/memories/event/x.y", "ctx://a/users/b/memories/event/%61"),
            *("ctx://a/users/b/memories/event/" + "x" * 101, "ctx://a/agents/b/skills/x%20y"),
            *(
                "ctx://a/users/a%2fb",
                "ctx://a/users/%61",
                "ctx://a/users/a b",
                "ctx://a/users/\u00e9",
            ),
            *("ctx://a/users/..", "ctx://a/users/.", "ctx://a/users/.x", "ctx://a/users/%2E%2E"),
            *("ctx://a/users/a%", "ctx://a/users/a%2", "ctx://a/users/%zz", "ctx://a/users/a+b"),
            *("ctx://a/users/%FF", "ctx://a/users/%ED%A0%80", "ctx://a/users/\ud800", "ctx://\0"),
            *("ctx://a/users/b?x=1", "ctx://a/users/b#x", "ctx://u@a/users", "ctx://a/users/b\n"),
            *("ctx://" + "a" * 201, "ctx://" + "a" * 10_000, "ctx://a" + "/resources/x" * 90),
        ],
    )
    def test_everything_else_is_refused_with_the_shape_to_write(self, text: str) -> None:
        with pytest.raises(InvalidUriError) as caught:
            Uri.parse(text)

        error_text = str(caught.value)
        assert "Fix: write it as 'ctx://" in error_text or all(
            shape in error_text for shape in SHAPES
        )
        assert "Fix: " in error_text
        assert error_text.isascii()
        assert len(error_text) < 1500

    @pytest.mark.parametrize(
        "wrong", [None, 3, b"ctx://a", [], {}, ["ctx://a"], Uri("a"), object()]
    )
    def test_what_is_no_text_is_refused_too(self, wrong: object) -> None:
        with pytest.raises(InvalidUriError, match="Fix: write one of"):
            Uri.parse(wrong)

    def test_another_spelling_is_answered_with_the_right_one(self) -> None:
        with pytest.raises(InvalidUriError, match=r"Fix: write it as 'ctx://a/users/a%2Fb'\."):
            Uri.parse("ctx://a/users/a%2fb")

    @settings(deadline=None, max_examples=examples(200))
    @given(URIS)
    def test_a_uri_comes_back_from_its_text(self, uri: Uri) -> None:
        assert Uri.parse(str(uri)) == uri
        assert len(str(uri)) < len(uri.key)

    @settings(deadline=None, max_examples=examples(300))
    @given(
        st.lists(
            PIECES | st.sampled_from(("ctx://", "/", "a", "users", "memories", "skills", "%2F")),
            max_size=9,
        ).map("".join)
    )
    @example("ctx://a")
    def test_any_text_is_refused_or_the_one_text_of_its_place(self, text: str) -> None:
        with contextlib.suppress(InvalidUriError):
            assert str(Uri.parse(text)) == text

    def test_a_refusal_keeps_nothing_of_a_huge_text(self) -> None:
        before = segment_of.cache_info().currsize
        for wrong in ("ctx://" + "z" * 10**6, "ctx://a/resources/" + "z" * 10**6):
            with pytest.raises(InvalidUriError):
                Uri.parse(wrong)
        with pytest.raises(InvalidUriError):
            Uri("z" * 10**6)

        assert Uri.of_key("accounts/" + "z" * 10**6) is None
        assert segment_of.cache_info().currsize <= before + 1


class TestBuilding:
    @pytest.mark.parametrize(
        "path",
        [("nowhere",), ("users", ""), ("users", "b", "memories", "E"), ("users", 3), "users"],
    )
    def test_what_could_not_be_parsed_can_not_be_built(self, path: tuple[str, ...]) -> None:
        with pytest.raises(InvalidUriError, match=re.escape(SHAPES[0])):
            Uri("a", path)

    @pytest.mark.parametrize("path", [None, {"users"}, 3])
    def test_a_path_is_a_tuple(self, path: object) -> None:
        with pytest.raises(InvalidUriError, match="is not a path"):
            Uri("a", path)  # type: ignore[arg-type]

    def test_a_list_becomes_a_tuple_so_that_nobody_changes_it(self) -> None:
        path = ["users", "ana"]

        uri = Uri("a", path)  # type: ignore[arg-type]
        path.append("memories")

        assert uri == Uri("a", ("users", "ana"))
        assert hash(uri) == hash(Uri("a", ("users", "ana")))

    @pytest.mark.parametrize("name", REFUSED)
    def test_an_id_that_no_folder_can_have_is_refused_at_every_place(self, name: str) -> None:
        paths = (("users", name), ("agents", name), ("sessions", name), ("resources", "x", name))
        for account, path in ((name, ()), *(("a", path) for path in paths)):
            with pytest.raises(InvalidUriError, match=re.escape(SHAPES[0])):
                Uri(account, path)

    def test_the_longest_id_is_measured_as_its_folder(self) -> None:
        assert Uri("x" * MAX_ID_BYTES).key == "accounts/" + "x" * MAX_ID_BYTES
        assert Uri("\u00e9" * 33).account == "\u00e9" * 33

    def test_a_key_leaves_room_for_every_file_of_the_node(self) -> None:
        names = ("resources", *("x" * 200,) * 4)
        room = MAX_KEY_BYTES - len(Uri("a", names).key) - 1
        longest = Uri("a", (*names, "x" * room))

        assert len(longest.key) == MAX_KEY_BYTES
        assert [Locator(f"{longest.key}/{file}").name for file in FILES] == list(FILES)
        with pytest.raises(InvalidUriError, match="too long: its folder's key has 901 bytes"):
            Uri("a", (*names, "x" * (room + 1)))

    def test_it_can_be_copied_and_pickled(self) -> None:
        uri = Uri("a", ("users", "\u00e9"))

        assert copy.copy(uri) == copy.deepcopy(uri) == pickle.loads(pickle.dumps(uri)) == uri  # noqa: S301 - our own


class TestKey:
    @pytest.mark.parametrize(
        ("text", "key"),
        [
            ("ctx://local", "accounts/local"),
            (
                "ctx://local/users/ana/memories/preference/tabs",
                "accounts/local/users/ana/memories/preference/tabs",
            ),
            ("ctx://local/users/a%7Cb", "accounts/local/users/a%7cb"),
            ("ctx://local/users/Ana", "accounts/local/users/%41na"),
            ("ctx://local/resources/notes.md", "accounts/local/resources/notes.md"),
            ("ctx://local/resources/x/content.md", "accounts/local/resources/x/content%2emd"),
            (
                "ctx://local/users/ana/memories/con/nul",
                "accounts/local/users/ana/memories/%63on/%6eul",
            ),
        ],
    )
    def test_a_plain_name_is_its_folder_and_the_rest_is_escaped(self, text: str, key: str) -> None:
        assert Uri.parse(text).key == key

    @settings(deadline=None, max_examples=examples(200))
    @given(URIS)
    def test_every_key_is_one_of_the_seam_and_leads_back(self, uri: Uri) -> None:
        assert Locator(uri.key).key == uri.key
        assert Uri.of_key(uri.key) == uri
        for file in FILES:
            assert Locator(f"{uri.key}/{file}").key == f"{uri.key}/{file}"

    @pytest.mark.parametrize("name", TRIED)
    def test_every_id_that_was_thought_of_works_at_every_place(self, name: str) -> None:
        for uri in at_every_place(name):
            assert Uri.parse(str(uri)) == uri
            assert Uri.of_key(uri.key) == uri
            assert Locator(uri.key).key == uri.key

    @pytest.mark.parametrize("fold", FOLDS.values(), ids=FOLDS)
    def test_ids_that_were_thought_of_never_share_a_folder(
        self, fold: Callable[[str], str]
    ) -> None:
        folded = {fold(segment_of(name)) for name in TRIED}

        assert len(folded) == len(set(TRIED)) == len(TRIED)

    @settings(deadline=None, max_examples=examples(300))
    @given(IDS, IDS, st.sampled_from([*sorted(FOLDS), ""]))
    def test_two_ids_never_share_a_folder_whatever_folds(
        self, one: str, another: str, fold: str
    ) -> None:
        other = FOLDS[fold](one) if fold else another
        for each in FOLDS.values():
            same = each(segment_of(one)) == each(segment_of(other))
            assert same == (one == other)

    @settings(deadline=None, max_examples=examples(300))
    @given(IDS | SLUGS)
    @example("x.sync-conflict-20260102-030405")
    @example("a.b.perdure-tmp")
    @example("content.md")
    @example("lpt9.tar.gz")
    def test_a_folder_name_is_unambiguous_on_every_disk(self, name: str) -> None:
        segment = segment_of(name)

        assert re.fullmatch(r"[a-z0-9_%-](?:[a-z0-9_%.-]*[a-z0-9_%-])?", segment)
        assert len(segment) <= MAX_SEGMENT_BYTES
        assert segment.partition(".")[0] not in DEVICES
        assert segment not in FILES
        assert marked_original(segment) is None
        assert original_of(segment, [segment, name, "x"], lambda _: "the same") is None
        assert not segment.endswith(TEMPORARY_SUFFIX)

    @settings(deadline=None, max_examples=examples(150))
    @given(
        st.lists(
            IDS.map(segment_of)
            | st.sampled_from(("accounts", "users", "memories", "%41", "%2E", "A", "", ".", "%ff")),
            max_size=6,
        ).map("/".join)
    )
    def test_any_other_key_is_the_folder_of_nothing(self, key: str) -> None:
        uri = Uri.of_key(key)

        assert uri is None or uri.key == key

    @pytest.mark.parametrize(
        "key",
        [
            *(
                "",
                "/",
                "accounts",
                "accounts/",
                "account/a",
                "/accounts/a",
                "accounts/a/",
                "accounts//a",
            ),
            *(
                "accounts/A",
                "accounts/%61",
                "accounts/a%7Cb",
                "accounts/a%7",
                "accounts/%",
                "accounts/.",
            ),
            *("accounts/..", "accounts/x.", "accounts/x ", "accounts/con", "accounts/nul.txt"),
            *("accounts/\u00e9", "accounts/%ff", "accounts/%ed%a0%80", "accounts/\ud800"),
            *(
                "accounts/a/content.md",
                "accounts/a/.meta.json",
                "accounts/a/resources/x/content.md",
            ),
            *("accounts/a/nowhere", "accounts/a/users/b/memories/profile/x", "Accounts/a"),
            *(
                "accounts/a/users/b/memories/x.y",
                "accounts/" + "x" * 201,
                "accounts/" + "x" * 10_000,
            ),
            *(None, 3, b"accounts/a", ["accounts"]),
        ],
    )
    def test_of_anything_else_there_is_no_uri(self, key: object) -> None:
        assert Uri.of_key(key) is None

    @pytest.mark.parametrize(
        "segment", ["", "%61", "a%2Fb", "%2", "A", "\u00e9", "con", "x.", ".x"]
    )
    def test_a_folder_of_no_id_has_no_name(self, segment: str) -> None:
        assert name_of(segment) is None


class TestMeaning:
    @pytest.mark.parametrize(
        ("text", "owner", "category", "session"),
        [
            ("ctx://a", "", "", ""),
            ("ctx://a/users", "", "", ""),
            ("ctx://a/users/b", "user:b", "", ""),
            ("ctx://a/users/b/memories", "user:b", "", ""),
            ("ctx://a/users/b/memories/event", "user:b", "event", ""),
            ("ctx://a/users/b/memories/event/x", "user:b", "event", ""),
            ("ctx://a/agents/b/memories/profile", "agent:b", "profile", ""),
            ("ctx://a/agents/b/skills", "agent:b", "skill", ""),
            ("ctx://a/agents/b/skills/x", "agent:b", "skill", ""),
            ("ctx://a/resources", "account:a", "", ""),
            ("ctx://a/resources/x", "account:a", "", ""),
            ("ctx://a/resources/x/memories/event", "account:a", "", ""),
            ("ctx://a/sessions", "", "", ""),
            ("ctx://a/sessions/s", "", "", "s"),
            ("ctx://a/sessions/s/memories/event", "", "", "s"),
            ("ctx://a/sessions/s/x/y", "", "", "s"),
        ],
    )
    def test_a_place_says_whose_it_is_and_what(
        self, text: str, owner: str, category: str, session: str
    ) -> None:
        uri = Uri.parse(text)

        assert (uri.owner_space, uri.category, uri.session) == (owner, category, session)
        assert uri.level == text.count("/") - 2
        assert uri.name == text.rpartition("/")[2]

    @pytest.mark.parametrize("text", NODES)
    def test_a_node_can_be_where_a_shape_ends(self, text: str) -> None:
        assert Uri.parse(text).is_node

    @pytest.mark.parametrize("text", FOLDERS)
    def test_above_there_are_folders(self, text: str) -> None:
        assert not Uri.parse(text).is_node

    @settings(deadline=None, max_examples=examples(100))
    @given(URIS)
    def test_a_parent_holds_its_children_and_nobody_else_does(self, uri: Uri) -> None:
        assert uri.parent.contains(uri)
        assert uri.contains(uri)
        assert uri.path == () or uri.parent.child(uri.name) == uri
        assert uri.path == () or not uri.contains(uri.parent)
        assert (
            not Uri(f"{uri.account[:20]}x").contains(uri) or uri.account == f"{uri.account[:20]}x"
        )

    def test_an_account_is_its_own_parent(self) -> None:
        assert Uri("a").parent == Uri("a")


class TestSlug:
    @pytest.mark.parametrize("slug", ["a", "0", "_", "-", "a-b_c9", "x" * 100])
    def test_a_slug_is_short_and_plain(self, slug: str) -> None:
        assert check_slug(slug) == slug

    @pytest.mark.parametrize(
        "wrong",
        [
            *(
                "",
                "x" * 101,
                "A",
                "a b",
                "a.b",
                "a/b",
                "a\n",
                "\u00e9",
                "\u0661",
                "\u212a",
                "\ud800",
            ),
            *(None, 3, b"a", ["a"]),
        ],
    )
    def test_anything_else_is_refused_with_one_that_would_do(self, wrong: object) -> None:
        with pytest.raises(InvalidValueError, match=r"1 to 100 of a-z.*Fix: try '") as caught:
            check_slug(wrong)

        assert check_slug(str(caught.value).split("'")[-2])

    @pytest.mark.parametrize(
        ("title", "slug"),
        [
            ("Tabs over Spaces!", "tabs-over-spaces"),
            ("  a -- b  ", "a-b"),
            ("Stra\u00dfe", "strasse"),
            ("\u6f22\u5b57", "untitled"),
            ("", "untitled"),
            ("snake_case", "snake_case"),
            ("x" * 99 + " y", "x" * 99),
        ],
    )
    def test_a_title_suggests_a_slug(self, title: str, slug: str) -> None:
        assert slugify(title) == slug

    @settings(deadline=None, max_examples=examples(100))
    @given(st.text(st.characters(exclude_categories=()), max_size=200))
    def test_any_title_suggests_a_slug_that_is_one(self, title: str) -> None:
        assert check_slug(slugify(title))
