"""What no extractor may make a memory of, and what must stay to the letter."""

import pytest

from perdure.engine.learn.persons import third_person
from perdure.engine.learn.extractors import extractors
from perdure.model import CandidateMemory
from tests.engine.test_extract_rules import found_in

NOTHING: list[str] = []


def everything(text: str, name: str = "Ana") -> list[CandidateMemory]:
    return [each for extractor in extractors() for each in found_in(extractor, text, name)]


def told(text: str, name: str = "Ana") -> list[str]:
    return [each.content for each in everything(text, name)]


# ---------------------------------------------------------------- to the letter
TO_THE_LETTER = [
    ("I live in the US, I'm from the UK.", ["Ana lives in the US.", "Ana is from the UK."]),
    ("I prefer `git rebase -i HEAD~3`.", ["Ana prefers `git rebase -i HEAD~3`."]),
    ("I prefer git rebase -i over git merge.", ["Ana prefers git rebase -i over git merge."]),
    (
        "We decided to rename `my_table` to `our_table`.",
        ["Ana and others decided to rename `my_table` to `our_table`."],
    ),
    (
        "We decided to rename my_table to our_table.",
        ["Ana and others decided to rename my_table to our_table."],
    ),
    (
        "My favourite command is `export MY_VAR=I`.",
        ["Ana's favourite command is `export MY_VAR=I`."],
    ),
    ("I love the book 'Me Before You'.", ["Ana loves the book 'Me Before You'."]),
    ("I love the book Me Before You.", ["Ana loves the book Me Before You."]),
    ("My favourite band is You Me At Six.", ["Ana's favourite band is You Me At Six."]),
    ("My favourite song is I Will Survive.", ["Ana's favourite song is I Will Survive."]),
    ("I like \u201cCall Me by Your Name\u201d.", ["Ana likes \u201cCall Me by Your Name\u201d."]),
    ("I like my job at \u00ab Us \u00bb.", ["Ana likes their job at \u00ab Us \u00bb."]),
    (
        'I can\'t stand people who say "I love meetings".',
        ['Ana can\'t stand people who say "I love meetings".'],
    ),
    ("My favourite topic is World War I.", ["Ana's favourite topic is World War I."]),
    ("I like World War I history.", ["Ana likes World War I history."]),
    ("I prefer me.com over we.org/us.", ["Ana prefers me.com over we.org/us."]),
    ("I prefer i18n over l10n.", ["Ana prefers i18n over l10n."]),
    ("I like C:\\my\\us.", ["Ana likes C:\\my\\us."]),
    ("I like <img src=x onerror=alert(1)>", ["Ana likes <img src=x onerror=alert(1)>."]),
    ("I like ../../etc/passwd", ["Ana likes ../../etc/passwd."]),
    ("I LOVE pizza.", ["Ana loves pizza."]),
    ("I LIVE IN MAFRA!!!", NOTHING),
    ("I Will Survive is my favourite song.", NOTHING),
    ("My Chemical Romance is my favourite band.", NOTHING),
    ("I like people who mind MY time.", NOTHING),
    ('I "love" tea.', NOTHING),
]


@pytest.mark.parametrize(("text", "expected"), TO_THE_LETTER)
def test_names_code_and_quotations_stay_to_the_letter(text: str, expected: list[str]) -> None:
    assert told(text) == expected


def test_a_verb_agrees_with_its_subject() -> None:
    assert told("I live in Berlin and like tea") == ["Ana lives in Berlin.", "Ana likes tea."]
    assert told("I sold my boat today and have no regrets") == [
        "Ana sold their boat on 2026-04-15 and has no regrets."
    ]
    assert third_person("I sleep when I am tired", "Ana") == "Ana sleeps when they are tired."
    assert third_person("I don't like tea and like coffee", "Ana") == ""


# ---------------------------------------------------------------- no claim of their own
NO_CLAIM = [
    "Maybe I live in a simulation",
    "Perhaps I like tea.",
    "I guess I like tea.",
    "I like tea, I guess.",
    "I probably prefer tabs.",
    "I like jazz, maybe.",
    "Write a story in the first person that begins with: I am Vlad. I live in a castle.",
    "Write a poem in the first person.\n\nI live in a castle.",
    "Imagine I'm a pirate. I live on a ship.",
    "My character in D&D: I am an elf. I live in a forest.",
    "Roleplay: I am the king. I live in London.",
    "You are Peter. I am your boss. I live in London.",
    "Pretend to be my doctor. I live in London.",
    "Act as a recruiter. I work at Tesla.",
    "Suppose the following. I live in Rome.",
    "Translate to German: I work at Tesla.",
    "Please proofread: I live in Rome. My name is Bob.",
    "Can you correct this text? I live in Rome.",
    "Rewrite this:\nI live in Rome.",
    "Summarise this: I work at Tesla. I like tea.",
    "Repeat after me: I love tea.",
    "Example sentence - I live in Weimar.",
    "Lyrics: I live in a yellow submarine.",
    "The test data has users like: I am Max",
    "From: bob@example.org\nTo: ana@example.org\n\nI live in Rome. I like tea.",
    "Subject: hello\n\nI live in Rome.",
    "Hi Ana,\n\nI live in Rome now. I like tea.\n\nBest,\nTom",
    "Bob: I like whisky",
    "[10:32] tom: I like whisky",
    "Interviewer: Where do you live? Candidate: I live in Rome. I like tea.",
    "Alice: hi\nBob: I live in Rome\nand I like tea",
    "As a user, I like dark mode.",
    "> > I live in Rome",
    "If I lived in Rome I'd swim. I wish I lived in Rome.",
    "I am a nurse, aren't I?",
    "I like jazz... NOT!",
    "I like my boss. Not.",
    "I like Mondays (said no one ever).",
    "I like cigars. Or rather, I did until last month.",
    "I prefer tabs. No wait, spaces.",
    "Yeah right, I love Mondays.",
    "I love meetings. Yeah right.",
    "Oh great, I just love it when the build breaks.",
    "He is like: I live in Rome, dude.",
    "According to Bob, I live in Rome.",
    "For the sake of the argument: I live in Rome.",
    "In the novel that I write, I am a spy. I live in Prague.",
    "Me and my wife live in Porto.",
]


@pytest.mark.parametrize("text", NO_CLAIM)
def test_what_nobody_claims_of_themselves_is_no_memory(text: str) -> None:
    assert told(text) == NOTHING


OWN_CLAIM = [
    "You are great! I live in Porto.",
    "I can't imagine living elsewhere. I live in Porto.",
    "Note: I live in Porto.",
    "Ana: I live in Porto.",
    "Hi Tom, I live in Porto.\n\nBest,\nAna",
    "Can you write to my landlord? I live in Porto.",
    "I'm not sure what to do. I live in Porto.",
    "Maybe we can meet, but I live in Porto.",
    "I live in Porto, so tell me if it rains.",
    "Suppose it rained: what then? I live in Porto.",
    "Alice: hi\nBob: I live in Rome\n\nI live in Porto.",
    "I live in Rome. Sorry, typo: I meant I live in Porto.",
]


@pytest.mark.parametrize("text", OWN_CLAIM)
def test_what_somebody_says_beside_it_is_found(text: str) -> None:
    assert told(text) == ["Ana lives in Porto."]


# ---------------------------------------------------------------- all that was said, or nothing
WHOLE = [
    ("I like swimming, but not in winter.", NOTHING),
    ("I like tea if it is hot.", NOTHING),
    ("I like tea, just not the green kind.", NOTHING),
    ("My name is Anna, sorry, Hanna.", NOTHING),
    ("I like tea, except green tea.", NOTHING),
    ("I'm vegan, except for honey.", NOTHING),
    ("I live in Porto (mostly).", NOTHING),
    ("I prefer tabs unless the repo uses spaces.", NOTHING),
    ("I lived in Cologne until 2015.", ["Ana lived in Cologne until 2015."]),
    ("I've lived in Porto since 1980", ["Ana has lived in Porto since 1980."]),
    ("I used to smoke, but I quit in 2019.", NOTHING),
    ("I quit smoking in 2019.", ["Ana quit smoking in 2019."]),
    (
        "Always check the file of Petra (92,000 EUR) before answering.",
        ["Always check the file of Petra (92,000 EUR) before answering."],
    ),
    ("I live in Porto (Portugal).", ["Ana lives in Porto."]),
    ("I live in Porto, not in Lisbon.", NOTHING),
    ("I am Ana.", ["Ana's name is Ana."]),
]


@pytest.mark.parametrize(("text", "expected"), WHOLE)
def test_a_statement_says_no_more_than_was_said(text: str, expected: list[str]) -> None:
    assert told(text) == expected


# ---------------------------------------------------------------- of oneself
OF_ONESELF = [
    ("I have 2 cats.", ["Ana has 2 cats."]),
    ("I have 2 cats and a dog.", ["Ana has 2 cats and a dog."]),
    ("I have a cat video.", NOTHING),
    ("I weigh 72 kg and I am 1.80 m tall.", ["Ana weighs 72 kg.", "Ana is 1.80 m tall."]),
    (
        "My daughter Mia was born on 2020-03-02",
        ["Ana's daughter Mia was born on 2020-03-02."],
    ),
    (
        "My daughter Mia was born on 02/03/2020",
        ["Ana's daughter Mia was born on 02/03/2020."],
    ),
    ("I switched from vim to emacs.", ["Ana switched from vim to emacs."]),
    ("We switched off the lights.", NOTHING),
    ("I like both Kotlin and Java.", ["Ana likes both Kotlin and Java."]),
]


@pytest.mark.parametrize(("text", "expected"), OF_ONESELF)
def test_plain_facts_of_oneself_are_found(text: str, expected: list[str]) -> None:
    assert told(text) == expected


# ---------------------------------------------------------------- slugs
def test_signs_and_pictures_tell_slugs_apart() -> None:
    things = ("C", "C#", "C++", "F#", ".NET", "\U0001f600", "\U0001f600 and \U0001f389")
    slugs = [found.slug for thing in things for found in everything(f"I like {thing}")]

    assert slugs == [
        *("c", "c-sharp", "c-plus-plus", "f-sharp", "dot-net"),
        *("grinning-face", "grinning-face-party-popper"),
    ]
