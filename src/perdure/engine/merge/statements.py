"""A statement as the terms that it is made of, without the words that may be left out."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from perdure.engine.merge import english
from perdure.engine.merge.english import SYNONYMS, is_gerund, is_participle, is_past, lemmas
from perdure.engine.merge.quantities import measured
from perdure.engine.merge.tokens import Kind, Token, rephrased, tokens

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


# ---------------------------------------------------------------- constructions that say the same
def reworded(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return terms with constructions that say the same made one."""
    return _with_tool(_with_than(_preferring(_since(_having_none(terms)))))


def _having_none(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return "does not have A" as "has no A"."""
    found = list(terms)
    for at, term in enumerate(terms[:-1]):
        if term.negation == "not" and "have" in term.keys and not terms[at + 1].negation:
            found[at : at + 2] = [
                replace(term, negation=""),
                replace(terms[at + 1], negation="not"),
            ]
    return tuple(found)


def _since(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return "started doing A in 2020" as "doing A since 2020"."""
    start = next((at for at, term in enumerate(terms) if _is_started(terms, at)), None)
    if start is None or terms[start].negation:
        return terms
    for at in range(start + 2, len(terms)):
        if terms[at].kind is Kind.QUANTITY and terms[at].preposition in {"in", "on"}:
            since = Term("since", Kind.WORD, keys_of(Token("since", Kind.WORD)), is_strong=True)
            doing = replace(terms[start + 1], preposition="", begins=terms[start].begins)
            date = replace(terms[at], preposition="")
            return (*terms[:start], doing, *terms[start + 2 : at], since, date, *terms[at + 1 :])
    return terms


def _is_started(terms: tuple[Term, ...], at: int) -> bool:
    follows = terms[at + 1].text if at + 1 < len(terms) else ""
    return terms[at].text.lower() in {"started", "began"} and is_gerund(follows)


def _preferring(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return "likes A better than B" as "prefers A over B"."""
    than = next((at for at, term in enumerate(terms) if term.text == "~than"), 0)
    if not than or terms[than - 1].text not in {"better", "more"} or terms[than - 1].negation:
        return terms
    like = next((at for at in range(than - 1) if "like" in terms[at].keys), None)
    if like is None:
        return terms
    prefer = replace(terms[like], text="prefers", keys=keys_of(Token("prefers", Kind.WORD)))
    return (*terms[:like], prefer, *terms[like + 1 : than - 1], *terms[than:])


def _with_than(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return "prefers A to B" as "prefers A over B"."""
    prefer = next((at for at, term in enumerate(terms) if "prefer" in term.keys), None)
    if prefer is None or any(term.text == "~than" for term in terms):
        return terms
    for at in range(prefer + 2, len(terms)):
        if terms[at].preposition == "to":
            than = Term("~than", Kind.WORD, frozenset({"~than"}), is_strong=True)
            return (*terms[:at], than, replace(terms[at], preposition=""), *terms[at + 1 :])
    return terms


def _with_tool(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return "use A to do B" as "do B with A"."""
    for at, term in enumerate(terms[:-2]):
        if "use" not in term.keys or term.negation:
            continue
        for to in range(at + 2, len(terms)):
            if terms[to].begins or terms[to].is_strong:
                break
            if terms[to].preposition == "to":
                tool = replace(terms[at + 1], preposition="with", is_joined=False)
                done = replace(terms[to], preposition="", is_joined=False, begins=term.begins)
                rest = (done, *terms[to + 1 :])
                return (*terms[:at], *rest, tool, *terms[at + 2 : to])
    return terms


# ---------------------------------------------------------------- reading
_NOMINAL = ("ion", "ment", "al", "er", "or", "ness", "ity")
"""How nouns that are made of verbs end."""


@lru_cache(maxsize=2048)
def read(text: str) -> Statement:
    return _Reader(rephrased(_unhyphened(measured(tokens(text))))).read()


def _unhyphened(found: Sequence[Token]) -> list[Token]:
    return [token for token in found if token.text != "-" or token.kind is not Kind.MARK]


@dataclass(slots=True)
class _Around:
    """What was read since the last term, and what it says about the next one."""

    negations: list[str] = field(default_factory=list)
    preposition: str = ""
    be: str = ""
    has_helper: bool = False
    did: bool = False
    listed: bool = False
    joined: bool = True
    begins: bool = False
    definite: bool = False


class _Reader:
    def __init__(self, found: Sequence[Token]) -> None:
        self._tokens = found
        self._terms: list[Term] = []
        self._persons: set[str] = set()
        self._obligations: set[str] = set()
        self._around = _Around(begins=True)

    def read(self) -> Statement:
        for at, token in enumerate(self._tokens):
            if token.kind is Kind.MARK:
                self._mark(token.text)
            elif token.kind is not Kind.WORD or not self._is_small(at, token):
                self._add(token)
        for negation in self._around.negations:
            self._terms.append(Term(negation, Kind.SIGN, frozenset({f"~{negation}"})))
        return Statement(
            reworded(tuple(self._terms)), frozenset(self._persons), frozenset(self._obligations)
        )

    # ------------------------------------------------------------ marks and small words
    def _mark(self, text: str) -> None:
        self._around.joined = False
        if text == ",":
            self._around.listed = True
        if text in {",", ".", ";", ":", "!", "\n", "(", ")"}:
            self._around.begins = True

    def _next(self, at: int, skipped: frozenset[str] = frozenset()) -> str:
        """Return the next word after `at` that is not to be skipped."""
        for token in self._tokens[at + 1 : at + 4]:
            if token.word not in skipped:
                return token.word if token.kind is Kind.WORD else ""
        return ""

    def _is_small(self, at: int, token: Token) -> bool:
        """Whether the word is no term of its own; what it says of others is noted."""
        word, around = token.word, self._around
        if token.is_name and word != "i":
            return False
        if self._is_negation(at, word) or self._is_helper(at, word):
            around.joined = False
            return True
        if word == "~anymore":
            return self._ceases()
        if word == "'s":
            return self._possesses()
        return self._is_connecting(at, word) or self._is_left_out(at, word)

    def _is_negation(self, at: int, word: str) -> bool:
        around = self._around
        if word in english.STOPPING and is_gerund(self._next(at)):
            around.negations.append("ceased")
            return True
        if word not in english.NEGATIONS:
            return False
        last = self._terms[-1] if self._terms else None
        takes = last is not None and "have" not in last.keys and english.TAKES_NO & last.keys
        if word == "no" and last and not last.negation and takes:
            self._terms[-1] = replace(last, negation="not")
        else:
            around.negations.append(english.NEGATIONS[word])
        return True

    def _is_helper(self, at: int, word: str) -> bool:
        around = self._around
        if word in english.BE:
            around.be = english.BE[word]
            return True
        if word in english.OBLIGATIONS:
            self._obligations.add(word)
            return True
        if word in english.DO:
            around.did = around.did or word == "did"
            return bool(self._next(at))
        follows = self._next(at, frozenset({"not", "never", "been", "also", "just", "already"}))
        if word in english.HAVE and (is_participle(follows) or self._next(at) == "been"):
            around.has_helper = True
            around.be = around.be or ("is" if word.startswith("g") else "")
            return True
        return False

    def _ceases(self) -> bool:
        """Read "any more": what was negated has ceased."""
        for at in range(len(self._terms) - 1, -1, -1):
            if self._terms[at].negation == "not":
                self._terms[at] = replace(self._terms[at], negation="ceased")
                return True
        return False

    def _possesses(self) -> bool:
        self._around.definite = True
        if self._terms and self._around.joined:
            self._terms[-1] = replace(self._terms[-1], is_possessor=True)
        self._around.joined = False
        return True

    def _is_connecting(self, at: int, word: str) -> bool:
        around = self._around
        if word in english.PERSONS:
            self._persons.add(english.PERSONS[word])
            around.definite = True
        elif word == "without":
            around.preposition = "with"
            around.negations.append("not")
        elif word in english.WEAK and self._next_exists(at):
            around.preposition = word
        elif word == "using":
            around.preposition = "with"
        elif word == "and":
            around.listed = True
        elif word in {"but", "then"}:
            around.begins, around.listed = True, False
        else:
            return False
        around.joined = False
        return True

    def _next_exists(self, at: int) -> bool:
        after = self._tokens[at + 1 : at + 2]
        return bool(after) and after[0].kind is not Kind.MARK

    def _is_left_out(self, at: int, word: str) -> bool:
        around = self._around
        if word == "user" and self._is_the_user(at):
            around.definite = True
        elif word == "always" and not around.negations:
            pass
        elif word == "about" and not self._is_before_quantity(at):
            around.preposition = word
        elif word not in english.SOFT or (
            not self._next_exists(at) and word in {"a", "own", "that"}
        ):
            return False
        around.definite = around.definite or word in {"the", "this", "their", "your", "its"}
        around.joined = False
        return True

    def _is_before_quantity(self, at: int) -> bool:
        after = self._tokens[at + 1 : at + 2]
        return bool(after) and after[0].kind is Kind.QUANTITY

    def _is_the_user(self, at: int) -> bool:
        """Whether "user" is who this memory is about."""
        before = self._tokens[at - 1].word if at else ""
        after = self._tokens[at + 1] if at + 1 < len(self._tokens) else None
        if before == "the":
            return True
        if after is None or after.kind not in {Kind.WORD, Kind.CODE}:
            return False
        return self._tokens[at].is_first or after.text == "'s"

    # ------------------------------------------------------------ terms
    def _add(self, token: Token) -> None:
        around = self._around
        if self._is_of_the_last(token):
            return
        word = token.word
        if token.kind is Kind.WORD and not token.is_name and word in english.NEGATED:
            token = Token(english.NEGATED[word], Kind.WORD, is_first=True)
            around.negations.append("not")
        is_verb = token.kind is Kind.WORD and (is_participle(token.word) or is_gerund(token.word))
        has_be = bool(around.be) and is_verb
        self._terms.append(
            Term(
                text=token.text,
                kind=token.kind,
                keys=keys_of(token) | (doing_of(token) if around.be else frozenset()),
                is_name=token.is_name,
                negation=" ".join(sorted(around.negations)),
                preposition=around.preposition,
                is_strong=token.kind is Kind.WORD and token.word in english.STRONG,
                after_be="" if has_be else around.be,
                tense=self._tense(token, has_helper=has_be or around.has_helper),
                is_passive=has_be and is_participle(token.word),
                is_listed=around.listed,
                is_joined=around.joined and bool(self._terms),
                begins=around.begins,
                is_definite=around.definite,
            )
        )
        self._around = _Around()

    def _is_of_the_last(self, token: Token) -> bool:
        """Whether a number and this word say together what the number, or the word, says alone."""
        last = self._terms[-1] if self._terms else None
        if last is None or last.kind is not Kind.QUANTITY:
            return False
        if last.text == "1 times" and token.word in english.ADVERBS:
            self._terms.pop()
            self._around.negations += [last.negation] if last.negation else []
            return False
        if token.word in {"long", "tall", "wide"} and " " in last.text:
            self._terms.insert(-1, Term("length", Kind.WORD, frozenset({"length", token.word})))
            return True
        if token.word == "old" and last.text.endswith(" year"):
            age = replace(last, text=last.text.removesuffix(" year"))
            self._terms[-1] = replace(age, keys=frozenset({age.exact}))
            return True
        return False

    def _tense(self, token: Token, *, has_helper: bool) -> str:
        if token.kind is not Kind.WORD or has_helper or token.is_name:
            return ""
        if self._around.did or is_past(token.word):
            return "past"
        is_other = is_gerund(token.word) or is_participle(token.word)
        return "" if is_other or token.word.endswith(_NOMINAL) else "present"
