"""Which links a content has, and what they are called when their target moves."""

import time
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.context import relations
from perdure.model import Uri

START = Uri.parse("ctx://acme/users/ana/memories/preference/start")
B = START.parent.child("b")


class Known:
    """Nodes that are there, as names."""

    def __init__(self, places: Iterable[Uri]) -> None:
        self._places = set(places)

    def is_active(self, place: Uri) -> bool:
        return place in self._places

    def categories(self, owner: Uri) -> list[str]:
        return sorted({place.path[3] for place in self._places if owner.contains(place)})

    def named(self, account: str, name: str) -> list[Uri]:
        return [place for place in self._places if (place.account, place.name) == (account, name)]


@pytest.mark.parametrize(
    ("content", "targets"),
    [
        ("[[a]] [[b|x]] [[c#d]] [[e#^f|g]]", ["a", "b", "c", "e"]),
        ("![[a]] text[[b]]text", ["a", "b"]),
        ("[[ a b ]]", ["a b"]),
        ("| [[a\\|x]] |", ["a"]),
        ("[[[a]]]", ["a"]),
        ("[[a]b]] [[a\nb]] [[]] [[#h]] [a] \\[[a]]", []),
        ("`[[a]]` [[b]]", ["b"]),
        ("`` `[[a]]` `` [[b]]", ["b"]),
        ("`a``[[b]]", ["b"]),
        ("```\n[[a]]\n```\n[[b]]", ["b"]),
        ("~~~ x\n[[a]]\n~~~~\n[[b]]", ["b"]),
        ("```a`b\n[[a]]", ["a"]),
    ],
)
def test_links_are_found(content: str, targets: list[str]) -> None:
    assert list(relations.targets(content)) == targets


@pytest.mark.parametrize(
    "part", ["`", "x`", "``", "[[", "[[a", "[[a|", "~~~", "\n```", "`a\n\n", "\\", ">", "> ", "\n>"]
)
def test_no_content_takes_long(part: str) -> None:
    content = f"x[[{part * (100_000 // len(part))}[[a]]"
    begun = time.perf_counter()
    list(relations.targets(content))

    assert time.perf_counter() - begun < 5


@given(st.text(alphabet="[]|#`~\n\\ab", max_size=40))
def test_a_content_with_no_link_to_follow_stays_as_it_is(content: str) -> None:
    assert relations.relinked(content, lambda _: None, START) == content


@given(st.text(alphabet="[]|#`~\n\\ab", max_size=40))
def test_every_link_is_followed_and_nothing_else(content: str) -> None:
    new = START.parent.child("moved")
    before = list(relations.targets(content))
    after = list(relations.targets(relations.relinked(content, lambda _: new, START)))

    assert after == ["moved"] * len(before)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("ctx://acme/users/ana/memories/preference/c", "c"),
        ("ctx://acme/users/ana/memories/style/c", "style/c"),
        ("ctx://acme/users/ana/memories/profile", "memories/profile"),
        (
            "ctx://acme/users/bob/memories/preference/c",
            "ctx://acme/users/bob/memories/preference/c",
        ),
        ("ctx://acme/resources/c", "ctx://acme/resources/c"),
    ],
)
def test_a_followed_link_is_short_and_leads_to_its_target(target: str, said: str) -> None:
    place = Uri.parse(target)
    content = relations.relinked("[[b]]", lambda _: place, START)
    known = Known(
        [place, START.parent.parent.child("other", "c")]
        if place.path[:2] == START.path[:2]
        else [place]
    )

    assert content == f"[[{said}|b]]"
    assert relations.resolve(said, START, known) == place


def test_a_link_is_filed_under_the_name_of_what_it_leads_to() -> None:
    for target in ("b", "B", "preference/b", "b.md", "x/preference/b/content", str(B)):
        assert relations.resolve(target, START, Known([B])) == B
        assert relations.name_in(target) == relations.name_of(B)
    odd = Uri("acme", ("resources", "Ü b.md"))

    assert relations.name_in(str(odd)) == relations.name_of(odd)
    assert relations.resolve(str(odd), START, Known([odd])) == odd
