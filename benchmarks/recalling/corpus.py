"""Conversations, notes and questions that nobody wrote, with words as common as people's are.

Word frequencies fall as Zipf found them: the hundred commonest words are those that every sentence
is made of, and the others are made up. A question is made of the others only, as common as in the
texts. The same seed gives the same texts on every machine.
"""

import random
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate

from holdfast.model import ContextNode

MESSAGES = 20
"""In each session."""
NOTE_EVERY = 10
"""After so many sessions there is a note."""
_VOCABULARY = 30_000
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
        self.words = [*_COMMON, *self._made_up(_VOCABULARY - len(_COMMON))]
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

    def questions(self, count: int) -> list[str]:
        """Return different questions, each of 4 to 8 words that mean something."""
        found: dict[str, None] = {}
        while len(found) < count:
            words = [self._word(len(_COMMON)) for _ in range(self._random.randint(4, 8))]
            found[" ".join(dict.fromkeys(words))] = None
        return list(found)

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

    def _word(self, least: int = 0) -> str:
        """Return a word, by its frequency; of the commonest `least` ones, none."""
        low = self._cumulated[least - 1] if least else 0.0
        thrown = self._random.uniform(low, self._cumulated[-1])
        return self.words[min(bisect(self._cumulated, thrown), _VOCABULARY - 1)]

    def _made_up(self, count: int) -> Iterator[str]:
        known = set(_COMMON)
        while len(known) < count + len(_COMMON):
            parts = self._random.choices(_SYLLABLES, k=self._random.randint(2, 4))
            word = "".join(parts) + self._random.choice(_ENDINGS)
            if word not in known:
                known.add(word)
                yield word
