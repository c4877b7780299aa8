"""Constructions that say the same, made one."""

from dataclasses import replace

from perdure.engine.merge.english import is_gerund
from perdure.engine.merge.terms import Term, keys_of
from perdure.engine.merge.tokens import Kind, Token


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
