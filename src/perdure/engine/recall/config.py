"""The weights of recall, all in one place."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetrievalConfig:
    """What counts how much when memories are ranked.

    A score is the sum of its parts, each in units of the best match by words. They were chosen on
    conversations between people and with assistants; docs/reference/recall.md says what each gives.
    """

    candidates: int = 150
    """Passages that each search looks at."""
    wholes: int = 200
    """Nodes that are compared as a whole."""

    vector: float = 0.2
    """What nearness in meaning counts where words can be trusted; where they can't, it counts 1."""
    cosine_floor: float = 0.2
    """So near are two texts that have nothing to do with each other."""
    cosine_one: float = 0.8
    """So near are two that say the same."""
    cover_least: float = 0.35
    """Words can't be trusted if the best match has less than this of the question's, by rarity."""
    cover_most: float = 0.55
    """If it has more than this, they can."""
    least_trust: float = 0.005
    """So much words count in any case."""
    cover_of_note: float = 0.3
    """So much more a note must have than a message: people answer in the words of the question."""
    one_word: float = 0.5
    """If it has only one of several, that counts so much less."""

    answer: float = 0.8
    """The share that a message borrows of the one before it, if that one ends with a question."""
    before: float = 0.1
    """... if it does not."""
    after: float = 0.3
    """... of the one after it."""
    second_before: float = 0.15
    """... of the one before the one before it."""
    short: int = 35
    """Messages of more words than that lend and borrow less."""
    lenders: int = 50
    """So many of the best are asked what is beside them."""

    whole: float = 0.75
    """What a passage gets because of all else in its node or session."""
    date: float = 0.8
    """What it gets if it is from the time that the question names."""
    exact_days: int = 10
    """A longer time, such as a month, is met or missed."""
    near_days: float = 4.0
    """A shorter one that is missed by so many days counts about a third."""
    vague_days: int = 100
    """A longer time is named so vaguely that it counts for little."""
    vague: float = 0.3
    event: float = 0.05
    """What it gets if it is from the right side of an event that the question names."""
    speaker: float = 0.2
    """What is said by somebody whom the question names."""
    party: float = 0.4
    """What is said where they take part."""
    assistant: float = 0.5
    """What an assistant's message loses, unless the question speaks to it."""

    relation: float = 0.1
    """The share of its score that a node lends to those that it is related to."""
    related: int = 5
    """So many of the best nodes are asked for their relations."""
    hotness: float = 0.02
    """What the newest memory gets for being so."""
    half_life_days: float = 30.0
    """After so many days that is half."""
    parent: float = 0.01
    """What a passage gets if the summary of its node or folder is as near as can be."""
    expanded: int = 3
    """So many folders and nodes whose summaries are near are opened."""
    children: int = 5
    """And so many passages are taken out of each."""
    kind: float = 0.1
    """What a skill or a resource gets if the question asks for one."""
    lapsed: float = 0.5
    """The share that is left to what does not hold any more, or not yet; each further one has this
    share of that of the one before."""
    former: float = 0.3
    """What a former statement gets if the question is about another time than now."""
    phrase: float = 0.3
    """What a passage gets that has all that the question quotes."""
