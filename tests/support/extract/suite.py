"""The contract of an extractor as a suite that any implementation can run.

class TestMyExtractor(ExtractorSuite):
    promises = frozenset({DATES})
    telling = "I live in Porto."
    asking = "Do I live in Porto?"
    denying = "I don't live in Porto any more."
    unsure = "I think I live in Porto."

    @staticmethod
    def open_extractor() -> CandidateExtractor:
        return MyExtractor()
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.engine.learn.evidence import evidence_of, verified
from perdure.engine.learn.extractors import CandidateExtractor
from perdure.errors import InvalidValueError
from perdure.model import CandidateMemory, RequestContext
from perdure.testing.requirement import requirement
from perdure.testing.suite import Suite, examples, when

DATES = "dates"
"""Events are dated, relative to the day of their message."""

ANA = RequestContext("acme", "ana", session_id="one")
MONDAY = datetime(2026, 3, 2, 10, tzinfo=UTC)
CHAT = (
    "Thanks, that is all for now.",
    "What's the weather like in Oslo?",
    "ok, tell me more about the second one",
    "The river is 40 km long.",
)
"""Says nothing that is worth remembering."""
HOSTILE = {
    "nothing": "",
    "white space": " \t\r\n ",
    "control": "\0\x01\x1a\x1b[31m\x7f I live in \x1a",
    "invisible": "\ufeff\u200b\u200d\u202e\u2066",
    "a pile of accents": "I like e" + "\u0301" * 500,
    "many scripts": "私は福岡に住んでいます。 أعيش في القاهرة. אני גר בחיפה. ผมชอบ I like кофе.",
    "no end": "I like tea and " * 7_000,
    "one long word": "I like " + "x" * 100_000,
    "many sentences": "I really like tea. My name is Bo. " * 3_000,
    "open fences": "```\n`I like tea\n~~~\n" * 5_000,
    "open quotes": "\"I like 'tea \u201cand \u00abmore " * 3_000,
    "many names": "Anna Berta Carla is my friend " * 3_000,
    "many times": "I went home yesterday last Friday on May 3rd " * 2_000,
    "long steps": "To do it:\n" + ("- " + "x" * 9_000 + "\n") * 10,
    "many steps": "To do it:\n" + "1. do that\n" * 5_000,
    "one long error": "Error: " + "x" * 50_000 + "\nThe fix was to " + "y" * 50_000,
    "markup": "<b>I like</b> &amp; {'I': 'like'} | I like | **tea** |",
    "dates that are none": "I went to Rome on 31 February 99999 and on 2026-99-99",
}
FRAGMENTS = (
    *(
        "I live in Porto.",
        "I like tea.",
        "I went to Rome yesterday.",
        "Rex is my dog.",
        "Use tabs.",
    ),
    *("To ship, run `make ship`.", "I'm a nurse at Acme,", "We decided to go.", "My son Bo is 4"),
    *("I", "we", "my", "I'm", "I don't", "like", "live in", "a nurse", "Porto", "tea", "yesterday"),
    *("if", "Tom says", "?", ".", ",", "\n", "```", '"', "`make ship`", "to deploy, run", "always"),
    *(
        "never",
        "use tabs",
        "is my dog",
        "Rex",
        "decided to",
        "the fix was",
        "Error: x",
        "that worked",
    ),
    *(
        "call me",
        "\x1a",
        "é",
        "日本",
        "> ",
        "1. ",
        "- ",
        "To do it:",
        "on May 3rd",
        "went to",
        "and",
    ),
)
_NOT = re.compile(r"\b(?:not|no|never|nobody|nothing)\b", re.IGNORECASE)


def message(content: str, name: str = "Ana", **more: object) -> dict[str, object]:
    """Return a message of the user's, on a Monday."""
    named = {"name": name} if name else {}
    return {"role": "user", "content": content, "time": MONDAY, **named, **more}


def gist(found: Sequence[CandidateMemory]) -> set[tuple[str, str, str, str]]:
    """Return what candidates say, whichever message of a session it was."""
    return {(each.category, each.slug, each.content, each.quote) for each in found}


class ExtractorSuite(Suite):
    """Everything that an extractor must do."""

    hooks = frozenset({"promises", "open_extractor", "telling", "asking", "denying", "unsure"})
    known_promises = frozenset({DATES})

    telling: ClassVar[str]
    """A sentence that says one thing that the extractor finds."""
    asking: ClassVar[str]
    """A question in the same words."""
    denying: ClassVar[str]
    """The contrary."""
    unsure: ClassVar[str]
    """The same, with a doubt."""

    @staticmethod
    def open_extractor() -> CandidateExtractor:
        """Return the extractor under test."""
        raise NotImplementedError("say how to open the extractor under test")

    @pytest.fixture
    def extractor(self) -> CandidateExtractor:
        return self.open_extractor()

    # ---------------------------------------------------------------- shape
    @requirement("003-extract-message-format")
    def test_it_takes_messages_with_role_and_content(self, extractor: CandidateExtractor) -> None:
        assert isinstance(extractor, CandidateExtractor)
        assert extractor.extract([{"role": "user", "content": self.telling}], ANA)

    @requirement("003-extract-confidence")
    def test_a_candidate_has_a_confidence_an_owner_and_a_sentence(
        self, extractor: CandidateExtractor
    ) -> None:
        (found,) = extractor.extract([message(self.telling)], ANA)

        assert 0 < found.confidence < 1
        assert found.owner_space in {"user:ana", "agent:default"}
        assert found.content.strip()
        assert found.metadata["session_id"] == "one"

    def test_what_is_no_message_is_refused(self, extractor: CandidateExtractor) -> None:
        for wrong in ({"content": "x"}, {"role": "nobody", "content": "x"}, {"role": "user"}):
            with pytest.raises(InvalidValueError, match="Fix: "):
                extractor.extract([message(self.telling), wrong], ANA)

    def test_a_conversation_without_statements_has_no_candidates(
        self, extractor: CandidateExtractor
    ) -> None:
        assert extractor.extract([], ANA) == []
        assert extractor.extract([message(text) for text in CHAT], ANA) == []

    # ---------------------------------------------------------------- evidence
    def test_the_words_it_rests_on_are_there_to_the_letter(
        self, extractor: CandidateExtractor
    ) -> None:
        messages = [
            message(CHAT[0]),
            message(f"Well. {self.telling}"),
            message(self.telling, "Tom"),
        ]
        found = extractor.extract(messages, ANA)

        assert verified(found, messages) == (found, [])
        assert {evidence_of(each)[0].message for each in found} >= {1}

    def test_the_speaker_is_that_of_the_message(self, extractor: CandidateExtractor) -> None:
        messages = [message(self.telling, "Ana"), message(self.telling, "Tom")]

        for found in extractor.extract(messages, ANA):
            assert found.speaker == messages[evidence_of(found)[0].message]["name"]
            assert {"Ana": "Tom", "Tom": "Ana"}[found.speaker] not in found.content

    def test_no_message_gives_a_candidate_without_evidence(
        self, extractor: CandidateExtractor
    ) -> None:
        @settings(max_examples=examples(100), deadline=None)
        @given(texts=st.lists(st.lists(st.sampled_from(FRAGMENTS), max_size=14), max_size=4))
        def each_verifies(texts: list[list[str]]) -> None:
            messages = [
                message(" ".join(text), ("Ana", "Tom", "")[len(text) % 3]) for text in texts
            ]
            found = extractor.extract(messages, ANA)

            assert verified(found, messages) == (found, [])

        each_verifies()

    # ---------------------------------------------------------------- what is meant
    def test_a_question_is_no_fact(self, extractor: CandidateExtractor) -> None:
        assert extractor.extract([message(self.asking)], ANA) == []

    def test_what_is_denied_is_not_claimed(self, extractor: CandidateExtractor) -> None:
        for found in extractor.extract([message(self.denying)], ANA):
            assert _NOT.search(found.content)

    def test_a_doubt_lowers_the_confidence(self, extractor: CandidateExtractor) -> None:
        sure, unsure = (extractor.extract([message(t)], ANA) for t in (self.telling, self.unsure))

        assert unsure
        assert all(found.confidence < sure[0].confidence for found in unsure)

    def test_a_supposition_is_no_fact(self, extractor: CandidateExtractor) -> None:
        assert extractor.extract([message(f"Suppose {self.telling}")], ANA) == []

    def test_code_is_nobody_s_word(self, extractor: CandidateExtractor) -> None:
        for text in (f"```\n{self.telling}\n```", f"look:\n\n    {self.telling}\n"):
            assert extractor.extract([message(text)], ANA) == []

    def test_a_quotation_is_not_the_users_own(self, extractor: CandidateExtractor) -> None:
        plain = self.telling.replace("`", "")
        for text in (
            f"> {self.telling}",
            f'She wrote "{plain}"',
            f"The mail says:\n{self.telling}",
        ):
            assert extractor.extract([message(text)], ANA) == []

    def test_what_is_played_is_no_fact(self, extractor: CandidateExtractor) -> None:
        text = f"Write a story in the first person. {self.telling}"
        assert extractor.extract([message(text)], ANA) == []

    def test_what_is_taken_back_is_not_claimed(self, extractor: CandidateExtractor) -> None:
        assert extractor.extract([message(f"{self.telling} No wait.")], ANA) == []

    def test_a_pasted_mail_is_not_the_users_own(self, extractor: CandidateExtractor) -> None:
        text = f"From: tom@example.org\nTo: ana@example.org\n\n{self.telling}"
        assert extractor.extract([message(text)], ANA) == []

    @when(DATES)
    def test_a_time_is_relative_to_the_day_of_its_message(
        self, extractor: CandidateExtractor
    ) -> None:
        for days in range(3):
            stated = MONDAY + timedelta(days=days)
            (found,) = extractor.extract([message(self.telling, time=stated)], ANA)

            assert found.when is not None
            assert (stated - found.when).days == 1
            assert f"{found.when:%Y-%m-%d}" in found.content

    # ---------------------------------------------------------------- always the same
    def test_the_same_messages_give_the_same_candidates(self) -> None:
        messages = [message(self.telling), message(self.denying), message(CHAT[0])]
        extractor = self.open_extractor()
        first = extractor.extract(messages, ANA)

        assert extractor.extract(messages, ANA) == first
        assert self.open_extractor().extract(messages, ANA) == first

    def test_unrelated_messages_change_nothing_wherever_they_stand(
        self, extractor: CandidateExtractor
    ) -> None:
        alone = extractor.extract([message(self.telling)], ANA)
        others = [message(text) for text in CHAT]

        for place in range(len(others) + 1):
            among = [*others[:place], message(self.telling), *others[place:]]
            assert gist(extractor.extract(among, ANA)) == gist(alone)

    def test_messages_are_left_as_they_were(self, extractor: CandidateExtractor) -> None:
        messages: list[Mapping[str, object]] = [message(self.telling), message(CHAT[0])]
        extractor.extract(messages, ANA)

        assert messages == [message(self.telling), message(CHAT[0])]

    # ---------------------------------------------------------------- any text
    @pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
    def test_any_text_is_taken(self, extractor: CandidateExtractor, text: str) -> None:
        messages = [message(text), message(self.telling)]
        found = extractor.extract(messages, ANA)

        assert verified(found, messages) == (found, [])
        assert any(evidence_of(each)[0].message == 1 for each in found)

    def test_a_statement_after_any_length_is_found(self, extractor: CandidateExtractor) -> None:
        long = message("The river is long. " * 4_000 + self.telling)

        assert len(extractor.extract([long], ANA)) == 1
