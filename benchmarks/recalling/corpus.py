"""Conversations, notes and questions that nobody wrote, with words as common as people's are.

Word frequencies fall as Zipf found them. The forty commonest words are those that every sentence is
made of; from there on they take turns with words that are made up, and mean something. A question
is made of such words only, as common as people choose them: in the conversations that recall was
measured on, half of the questions share a word with more than 11 % of all messages (LoCoMo) or 28 %
(LongMemEval); here it is 10 %. Questions of rare words are there too, with 2 %: what is the easiest
for who looks words up is the worst for who does more. The same seed gives the same texts.
"""

import random
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate, chain, islice

from perdure.model import ContextNode

MESSAGES = 20
"""In each session."""
NOTE_EVERY = 10
"""After so many sessions there is a note."""
_VOCABULARY = 30_000
_COMMONEST = 40
_USUAL, _RARE = (40, 3_000), (200, 20_000)
"""The ranks of the words that are asked for."""
_SHORTEST, _LONGEST = 10, 60
_MINUTES = 3 * 365 * 24 * 60
_BEGINNING = datetime(2024, 1, 1, 9, tzinfo=UTC)
_COMMON = tuple(
    """the to and of a in that it is was i for on you he be with as by at have are this not but had
    his they from she which or we an there her were one do been all their has would will what if
    can when so my out up no who them some could him into its then two more these about me your
    than only just over also after very any other most how our before because through where down
    now like here made such each those own under again both few why off while once during between
    above too same until further""".split()  # noqa: SIM905 - a text is easier to read than a list
)
_NAMES = ("Ana", "Ben", "Carla", "Dmitri", "Elif", "Farid", "Grete", "Hiro")
_SYLLABLES = tuple(f"{first}{vowel}" for first in "bdfgklmnprstvz" for vowel in "aeiou")
_ENDINGS = ("", "", "n", "r", "l", "st", "nd", "m", "ck", "th")


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    messages: list[dict[str, object]]

    @property
    def texts(self) -> list[str]:
        return [f"{message['name']}: {message['content']}" for message in self.messages]


@dataclass(frozen=True, slots=True)
class Note:
    slug: str
    text: str

    @property
    def texts(self) -> list[str]:
        return [self.text]

    def node(self, account: str) -> ContextNode:
        uri = f"ctx://{account}/users/ana/memories/note/{self.slug}"
        return ContextNode(uri=uri, content=self.text, abstract=self.text.partition("\n")[0][2:])


class Corpus:
    """As many texts as are asked for, and questions about them."""

    def __init__(self, seed: int = 5) -> None:
        self._random = random.Random(seed)  # noqa: S311 - nothing secret
        made_up = self._made_up(_VOCABULARY - len(_COMMON))
        turns = chain.from_iterable((common, next(made_up)) for common in _COMMON[_COMMONEST:])
        self.words = [*_COMMON[:_COMMONEST], *turns, *made_up]
        weights = (1 / rank for rank in range(1, _VOCABULARY + 1))
        self._cumulated = list(accumulate(weights))

    def passages(self, count: int, prefix: str = "s") -> Iterator[Session | Note]:
        """Yield sessions and notes that have so many passages together, at least."""
        for number in range(-(-count // MESSAGES)):
            yield self.session(f"{prefix}{number:06}")
            if number % NOTE_EVERY == 0:
                yield self.note(f"{prefix}{number:06}")

    def session(self, name: str) -> Session:
        start = _BEGINNING + timedelta(minutes=self._random.randrange(_MINUTES))
        return Session(name, list(self._messages(start)))

    def note(self, name: str) -> Note:
        """Return a note of one passage."""
        paragraphs = "\n\n".join(self._sentences(40) for _ in range(2))
        return Note(name, f"# {self._sentences(5)}\n\n{paragraphs}\n")

    def questions(self, count: int, *, rare: bool = False) -> list[str]:
        """Return different questions, each of 4 to 8 words that mean something.

        The words are as common as in questions of people, or rare ones.
        """
        found: dict[str, None] = {}
        while len(found) < count:
            words = [self._asked(rare=rare) for _ in range(self._random.randint(4, 8))]
            found[" ".join(dict.fromkeys(words))] = None
        return list(found)

    def _asked(self, *, rare: bool) -> str:
        """Return a word that means something; as many are of the ranks 100 to 200 as to 400."""
        first, last = _RARE if rare else _USUAL
        rank = int(first * (last / first) ** self._random.random())
        return next(word for word in islice(self.words, rank, None) if word not in _COMMON)

    # ------------------------------------------------------------ texts
    def _messages(self, start: datetime) -> Iterator[dict[str, object]]:
        party = self._random.sample(_NAMES, 2)
        for number in range(MESSAGES):
            said = self._sentences(self._random.randint(_SHORTEST, _LONGEST))
            time = start + timedelta(minutes=2 * number)
            name = party[number % 2]
            yield {"role": "user", "name": name, "content": said, "time": time.isoformat()}

    def _sentences(self, count: int) -> str:
        words = [self._word() for _ in range(count)]
        words[0] = words[0].capitalize()
        for end in range(11, count - 1, 12):
            words[end] += "?" if self._random.random() < 0.2 else "."  # noqa: PLR2004 - a fifth asks
            words[end + 1] = words[end + 1].capitalize()
        return " ".join(words) + "."

    def _word(self) -> str:
        """Return a word, by its frequency."""
        thrown = self._random.uniform(0.0, self._cumulated[-1])
        return self.words[min(bisect(self._cumulated, thrown), _VOCABULARY - 1)]

    def _made_up(self, count: int) -> Iterator[str]:
        known = set(_COMMON)
        while len(known) < count + len(_COMMON):
            parts = self._random.choices(_SYLLABLES, k=self._random.randint(2, 4))
            word = "".join(parts) + self._random.choice(_ENDINGS)
            if word not in known:
                known.add(word)
                yield word
