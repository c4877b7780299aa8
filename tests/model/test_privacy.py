"""What a user marks as private is in nothing that a session keeps."""

from datetime import UTC, datetime, timedelta

import pytest

from perdure.model.privacy import PrivacyFilter, switch_in, without_private
from perdure.model.trust import PrivacySwitch

COMMAND = (
    "<command-message>private</command-message>\n<command-name>/private</command-name>\n"
    "<command-args>on</command-args>"
)
START = datetime(2026, 3, 2, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("prompt", "public"),
    [
        ("Use <private>the red key</private> here.", "Use [private] here."),
        ("Use <PRIVATE>the red key</Private> here.", "Use [private] here."),
        ("Use <private>the <private>red</private> key</private> here.", "Use [private] here."),
        ("Use this. <private>The red key\n\nand more", "Use this. [private]"),
        ("cut off here</private> Go on.", "[private] Go on."),
        ("&lt;private&gt;the red key&lt;/private&gt; Go on.", "[private] Go on."),
        ("<private>all of it</private>", ""),
        ("Two <private>one</private>, <private>two</private>.", "Two [private], [private]."),
        ("This has a private method.", "This has a private method."),
    ],
)
def test_a_prompt_loses_what_is_between_the_tags(prompt: str, public: str) -> None:
    assert without_private(prompt) == public


@pytest.mark.parametrize(
    ("prompt", "state"),
    [
        ("/private on", True),
        (" /private  ON ", True),
        ("/private", True),
        ("private off.", False),
        ("/perdure:private off", False),
        (COMMAND, True),
        (
            "<command-name>/perdure:private</command-name>\n<command-args>off</command-args>",
            False,
        ),
        ("Make the field private on the class.", None),
        ("/privately on", None),
        ("on", None),
    ],
)
def test_private_mode_is_switched_by_a_prompt_of_its_own(
    prompt: str,
    state: bool | None,  # noqa: FBT001 - what is expected
) -> None:
    assert switch_in(prompt) is state


class TestAScreen:
    def test_all_messages_are_private_until_the_mode_ends(self) -> None:
        screen = PrivacyFilter()

        text = [
            screen.public("user", "Before."),
            screen.public("user", "/private on"),
            screen.public("user", "Secret."),
            screen.public("assistant", "Secret answer."),
            screen.public("tool", "[failed] secret output"),
            screen.public("user", "/private off"),
            screen.public("user", "After."),
        ]

        assert [each for each in text if each] == ["Before.", "After."]

    def test_an_agent_does_not_switch(self) -> None:
        screen = PrivacyFilter()

        screen.public("assistant", "/private on")

        assert screen.public("user", "Go on.") == "Go on."

    def test_later_messages_lose_the_words_that_were_private(self) -> None:
        screen = PrivacyFilter()
        screen.public("user", "<private>The code name is blue walrus, PIN 4417.</private>")

        answer = screen.public("assistant", "Noted: the code name is Blue Walrus; PIN: 4417. Next?")

        assert answer == "Noted: [private]. Next?"

    @pytest.mark.parametrize(
        ("later", "public"),
        [
            ("Ask Walrus for the logo.", "Ask [private] for the logo."),
            ("Clone walrus-api into src/walrus.", "Clone [private] into src/[private]."),
            ("WalrusClient is in walrus_db.py", "[private] is in [private].py"),
            ("It is on blue-whale now.", "It is on [private] now."),
            ("Walrus's key is there.", "[private] key is there."),
            ("The client pays Acme.", "The client pays [private]."),
            ("Use React for it.", "Use React for it."),
            ("acme is a word. Acme is not.", "acme is a word. Acme is not."),
            ("Since March we wait.", "Since March we wait."),
        ],
    )
    def test_a_name_that_was_private_is_private_by_itself(self, later: str, public: str) -> None:
        screen = PrivacyFilter()
        screen.public("user", "We use React.")
        screen.public(
            "user",
            "Go on. <private>Acme pays. "
            "The React client since March is Walrus, on Blue-Whale.</private>",
        )

        assert screen.public("assistant", later) == public

    def test_a_name_is_private_in_the_message_that_marks_it(self) -> None:
        assert without_private("Ask <private>the boss of Walrus</private> about Walrus.") == (
            "Ask [private] about [private]."
        )

    def test_earlier_messages_stay_as_they_were_stored(self) -> None:
        messages = [
            "The code name is blue walrus.",
            "<private>the code name is blue walrus</private>",
        ]
        screen = PrivacyFilter()

        assert screen.public("user", messages[0]) == messages[0]
        assert screen.public("user", messages[1]) == ""

    def test_words_of_private_mode_that_an_agent_repeats_later_are_private(self) -> None:
        screen = PrivacyFilter()
        for text in ("/private on", "We call it blue walrus until the launch.", "/private off"):
            screen.public("user", text)

        assert screen.public("assistant", "So: we call it blue walrus until the launch") == (
            "So: [private]"
        )
        assert (
            screen.public("assistant", "Until the launch we test.") == "Until the launch we test."
        )

    def test_an_agent_may_name_the_tag(self) -> None:
        assert (
            PrivacyFilter().public("assistant", "Put it in `<private>`.")
            == "Put it in `<private>`."
        )

    def test_a_summary_of_private_words_is_private(self) -> None:
        screen = PrivacyFilter()
        screen.public("user", "Do it. <private>The red key.</private>")

        assert screen.public("system", "[summary]\nThe user has a key that is red.") == ""

    def test_switches_from_outside_count_by_time(self) -> None:
        minute = timedelta(minutes=1)
        screen = PrivacyFilter(
            [
                PrivacySwitch(START + minute, is_on=True),
                PrivacySwitch(START + 3 * minute, is_on=False),
            ]
        )

        text = [screen.public("user", f"At {n}.", START + n * minute) for n in range(5)]

        assert text == ["At 0.", "", "", "At 3.", "At 4."]

    def test_a_message_without_a_time_is_private_if_the_session_ever_was(self) -> None:
        assert PrivacyFilter([PrivacySwitch(START, is_on=True)]).public("user", "When?") == ""
