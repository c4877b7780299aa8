"""What a statement is made of."""

from dataclasses import dataclass

from perdure.engine.merge.english import SYNONYMS, lemmas
from perdure.engine.merge.tokens import Kind, Token

_SAID = {"~atleast": "at least", "~atmost": "at most", "~anymore": "any more"}


@dataclass(frozen=True, slots=True)
class Term:
    """Something that a statement says. Two terms say the same if they share a key."""

    text: str
    kind: Kind
    keys: frozenset[str]
    is_name: bool = False
    negation: str = ""
    preposition: str = ""
    """The weak one before it."""
    is_strong: bool = False
    """It is a preposition or a conjunction itself."""
    after_be: str = ""
    """The form of "to be" that says it of what stands before."""
    tense: str = ""
    is_passive: bool = False
    is_listed: bool = False
    """Follows the one before after a comma or "and"."""
    is_joined: bool = False
    """Follows the one before with nothing between."""
    is_possessor: bool = False
    begins: bool = False
    """Is the first of a clause."""
    is_definite: bool = False
    """Has "the" or a possessive before it."""

    @property
    def shown(self) -> str:
        """Return the text as people are told of it."""
        if self.kind is Kind.QUANTITY:
            return self.text.removeprefix("--")
        return _SAID.get(self.text, self.text.removeprefix("~"))

    @property
    def exact(self) -> str:
        """Return the one key of terms that are written alike."""
        return self.text.casefold() if self.kind is Kind.WORD else f"{self.kind.name} {self.text}"


@dataclass(frozen=True, slots=True)
class Statement:
    terms: tuple[Term, ...]
    persons: frozenset[str]
    obligations: frozenset[str]
    is_lightened: bool = False
    """A verb that says where something is was left out."""


def doing_of(token: Token) -> frozenset[str]:
    """Return what somebody does who is said to be a doer: a reader reads."""
    if token.kind is not Kind.WORD or not token.word.endswith(("er", "or")):
        return frozenset()
    return lemmas(f"{token.word[:-2]}ing")


def _is_like_lucas(word: str) -> bool:
    """Whether the word, with a capital, may be a name that is another one without its "s"."""
    return word.endswith("as") and len(word) > 3 and word not in SYNONYMS  # noqa: PLR2004 - "has"


def keys_of(token: Token) -> frozenset[str]:
    if token.kind is not Kind.WORD:
        bare = {token.text.casefold()} if token.text.isalpha() else set()
        return frozenset({f"{token.kind.name} {token.text}"} | bare)
    word = token.word
    is_capital = token.text[:1] != token.text[:1].lower()
    if token.is_name or (is_capital and _is_like_lucas(word)):
        return frozenset({word})
    found = lemmas(word)
    return found.union(*(SYNONYMS.get(lemma, ()) for lemma in found))
