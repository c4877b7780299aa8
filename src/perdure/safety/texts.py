"""Single texts on their way into memory, and on their way to who reads them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from perdure.dataclass import dataclass, field, replace
from perdure.errors import InvalidValueError, SecretRefusedError
from perdure.model import CandidateMemory
from perdure.model.transcript import Message, matches_hidden
from perdure.model.values import (
    JSON,
    MAX_ABSTRACT,
    MAX_CONTENT,
    MAX_OVERVIEW,
    MAX_SHOWN,
    shortened,
    shown,
)
from perdure.safety.characters import visible
from perdure.safety.instructions import Instruction, instructions_in, quoted, quoted_inline
from perdure.safety.markup import inert
from perdure.safety.secrets import Secret, SecretPolicy, masked, secrets_in

HIDDEN = "hidden and control characters are gone or shown"
INERT = "HTML or a link does nothing any more"
ORDER = "an instruction is marked as quoted"
MASKED = "masked: "


@dataclass(frozen=True, slots=True)
class Note:
    """What validation changed, and where. It never tells a secret."""

    where: str
    what: str
    line: int = 1

    @property
    def secret(self) -> str:
        """The kind of the secret that was masked; empty if something else was changed."""
        return self.what.removeprefix(MASKED) if self.what.startswith(MASKED) else ""


@dataclass(frozen=True, slots=True)
class CleanText:
    text: str
    notes: tuple[Note, ...] = ()


def count_masked(notes: Iterable[Note]) -> int:
    return sum(each.what.startswith(MASKED) for each in notes)


def cleaned(text: str, where: str, policy: SecretPolicy = SecretPolicy.REFUSE) -> CleanText:
    """Return a text of any length as it may be stored, and what was changed in it.

    With a secret in it, it is masked or refused (`SecretRefusedError`), as the policy says.
    Cleaning twice is cleaning once.
    """
    return _cleaned(text, where, policy, one_line=False)


def cleaned_line(text: str, where: str, policy: SecretPolicy = SecretPolicy.REFUSE) -> CleanText:
    """Return a short text, such as an abstract or a name, as it may be stored."""
    return _cleaned(text, where, policy, one_line=True)


def presentable(text: str) -> str:
    """Return a text for who reads it, if it is stored to the letter, such as a quote."""
    return inert(quoted(masked(visible(text))[0]))


def presentable_line(text: str) -> str:
    """Return a name or a title as `presentable`, and on one line."""
    line = " ".join(visible(text).split())
    return inert(quoted_inline(masked(line)[0]))


def without_secrets(text: str, where: str, policy: SecretPolicy, fix: str) -> str:
    """Return a text that is kept to the letter but for its secrets, masked or refused."""
    if policy is SecretPolicy.MASK:
        return masked(text)[0]
    refuse_secrets(text, where, fix)
    return text


def refuse_secrets(
    text: str, where: str, fix: str = "leave it out", *, options: Sequence[str] = ()
) -> None:
    """Raise `SecretRefusedError` for a secret, without its value; `options` would allow it."""
    found = secrets_in(visible(text))
    if found:
        first = found[0]
        line = visible(text).count("\n", 0, first.start) + 1
        more = f", and {len(found) - 1} more secrets" if found[1:] else ""
        raise SecretRefusedError(
            f"the {where} holds {with_article(first.kind)} in line {line}{more}. Fix: {fix}",
            options=dict.fromkeys(options, True),
        )


def with_article(kind: str) -> str:
    spoken = kind[0] in "AEIOUaeiou" and not kind.startswith("one")
    return f"{'an' if spoken else 'a'} {kind}"


def strings_in(value: JSON) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | Sequence):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from strings_in(each)


def _cleaned(text: str, where: str, policy: SecretPolicy, *, one_line: bool) -> CleanText:
    seen = visible(text)
    if policy is SecretPolicy.REFUSE:
        refuse_secrets(seen, where, options=("mask_secrets",))
    plain, secrets = masked(seen) if policy is SecretPolicy.MASK else (seen, [])
    marked = quoted_inline(plain) if one_line else quoted(plain)
    result = inert(marked)
    notes = [Note(where, HIDDEN)] * (seen != text)
    notes += _lines(where, seen, ((MASKED + each.kind, each) for each in secrets))
    if marked != plain:
        notes += _lines(where, plain, ((ORDER, each) for each in instructions_in(plain)))
    notes += [Note(where, INERT)] * (result != marked)
    return CleanText(result, tuple(notes))


def _lines(where: str, text: str, found: Iterable[tuple[str, Secret | Instruction]]) -> list[Note]:
    notes: list[Note] = []
    line, at = 1, 0
    for what, place in found:
        line, at = line + text.count("\n", at, place.start), place.start
        notes.append(Note(where, what, line))
    return notes


EVIDENCE = "evidence"
_UNMASKABLE = "mask secrets in the messages before they are read."


@dataclass(frozen=True, slots=True)
class Validated:
    candidate: CandidateMemory
    notes: tuple[Note, ...]
    """What was changed, in no text's own words."""


def validated(candidate: CandidateMemory, policy: SecretPolicy = SecretPolicy.REFUSE) -> Validated:
    """Return a candidate as it may be stored, and what was changed in it.

    `SecretRefusedError` if it holds a secret that may not be masked; `InvalidValueError` if it is
    too long once it is clean. Validating twice is validating once.
    """
    found = _Cleaning(policy)
    metadata = found.metadata(candidate.metadata)
    refuse_secrets(candidate.slug, "slug", "choose another name.")
    if EVIDENCE in candidate.metadata:
        quote, speaker = _proof(candidate)
    else:
        quote = found.block(candidate.quote, "quote")
        speaker = found.line(candidate.speaker, "name of the speaker", MAX_ABSTRACT)
    clean = replace(
        candidate,
        content=found.content(candidate.content),
        abstract=found.line(candidate.abstract, "abstract", MAX_ABSTRACT),
        overview=found.block(candidate.overview, "overview"),
        where=found.line(candidate.where, "place", MAX_ABSTRACT),
        who=tuple(found.line(each, "name", MAX_ABSTRACT) for each in candidate.who),
        metadata=metadata,
        quote=quote,
        speaker=speaker,
    )
    return Validated(clean, tuple(found.notes))


@dataclass(frozen=True, slots=True)
class Safe:
    content: str
    metadata: dict[str, JSON]
    notes: tuple[Note, ...]


def safe(
    content: str, metadata: Mapping[str, JSON], policy: SecretPolicy = SecretPolicy.REFUSE
) -> Safe:
    """Return a text and the metadata of a memory as they may be stored; refused as candidates."""
    found = _Cleaning(policy)
    clean = found.content(content), found.metadata(metadata)
    return Safe(*clean, tuple(found.notes))


def _proof(candidate: CandidateMemory) -> tuple[str, str]:
    refuse_secrets(candidate.quote, "quote", _UNMASKABLE)
    refuse_secrets(candidate.speaker, "name of the speaker", _UNMASKABLE)
    return candidate.quote, candidate.speaker


@dataclass(slots=True)
class _Cleaning:
    policy: SecretPolicy
    notes: list[Note] = field(default_factory=list)

    def content(self, text: str) -> str:
        clean = cleaned(text, "content", self.policy)
        if len(clean.text) > MAX_CONTENT:
            raise InvalidValueError(
                f"the content has {len(clean.text):,} characters once it is made safe to show; "
                f"{MAX_CONTENT:,} are the most. Fix: shorten it, or split it into several."
            )
        return self._noted(clean)

    def block(self, text: str, where: str) -> str:
        return self._fitted(text, MAX_OVERVIEW, lambda part: cleaned(part, where, self.policy))

    def line(self, text: str, where: str, limit: int) -> str:
        return self._fitted(text, limit, lambda part: cleaned_line(part, where, self.policy))

    def metadata(self, given: Mapping[str, JSON]) -> dict[str, JSON]:
        clean: dict[str, JSON] = {}
        for key, value in given.items():
            self._check_key(key)
            if key == EVIDENCE:
                for each in strings_in(value):
                    refuse_secrets(each, "evidence", _UNMASKABLE)
                clean[key] = value
            else:
                clean[key] = self._value(key, value)
        return clean

    def _value(self, key: str, value: JSON) -> JSON:
        if isinstance(value, str):
            return self._named(key, value)
        if isinstance(value, Mapping):
            return {self._check_key(name): self._value(name, each) for name, each in value.items()}
        if isinstance(value, Sequence):
            return [self._value(key, each) for each in value]
        return value

    def _named(self, key: str, value: str) -> str:
        """Return a text of the metadata; its key tells whether it is a secret."""
        beginning = f"{key}: "
        clean = cleaned_line(beginning + value, f"metadata {key}", self.policy)
        alone = cleaned_line(value, f"metadata {key}", self.policy)
        named = clean.text.removeprefix(beginning)
        if named == alone.text or not clean.text.startswith(beginning):
            return self._noted(alone)
        return self._noted(CleanText(named, clean.notes))

    def _check_key(self, key: str) -> str:
        refuse_secrets(key, "key of the metadata", "choose another name.")
        if presentable(key) != key:
            raise InvalidValueError(
                f"the metadata has a key {shown(key)}. Fix: use plain words as keys."
            )
        return key

    def _fitted(self, text: str, limit: int, clean: Callable[[str], CleanText]) -> str:
        result = clean(text)
        while len(result.text) > limit:
            text = shortened(text, len(text) * 3 // 4)
            result = clean(text)
        return self._noted(result)

    def _noted(self, clean: CleanText) -> str:
        self.notes += clean.notes
        return clean.text


_ALLOWING = ("mask_secrets", "as_is")


@dataclass(slots=True)
class Owned:
    """Looks at text after text for secrets, which are refused or masked; keeps the notes."""

    policy: SecretPolicy
    notes: list[Note] = field(default_factory=list)

    def text(self, text: str, where: str) -> str:
        """Return a text without its secrets; `SecretRefusedError` if they may not be masked."""
        return self._named("", text, where)

    def name(self, text: str, where: str) -> None:
        """Let a name pass that holds no secret; one that is masked would name something else."""
        refuse_secrets(text, where, "choose another name.")

    def metadata(self, given: Mapping[str, JSON]) -> dict[str, JSON]:
        for key in given:
            self.name(key, "key of the metadata")
        return {key: self._value(key, each) for key, each in given.items()}

    def _value(self, key: str, value: JSON) -> JSON:
        if isinstance(value, str):
            return self._named(f"{key}: ", value, f"metadata {key}")
        if isinstance(value, Mapping):
            return self.metadata(value)
        if isinstance(value, Sequence):
            return [self._value(key, each) for each in value]
        return value

    def _named(self, name: str, text: str, where: str) -> str:
        """Return a text without its secrets, which its name may tell too."""
        if self.policy is SecretPolicy.REFUSE:
            refuse_secrets(name + text, where, options=_ALLOWING)
            refuse_secrets(text, where, options=_ALLOWING)
            return text
        clean, found = masked(name + text)
        for each in found:
            line = (name + text).count("\n", 0, each.start) + 1
            self.notes.append(Note(where, MASKED + each.kind, line))
        return clean.removeprefix(name) if clean.startswith(name) else masked(text)[0]


@dataclass(frozen=True, slots=True)
class Masked:
    message: int
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """A message as it may be kept, and the kinds of the secrets that were masked in it."""

    message: Message
    kinds: tuple[str, ...]


def kept(message: Message) -> Kept:
    """Return a message without its secrets. Masking twice is masking once."""
    content, found = masked(message.content)
    name, in_name = masked(message.name)
    if not found and not in_name:
        return Kept(message, ())
    clean = replace(message, content=content, name=shortened(name, MAX_SHOWN))
    return Kept(clean, tuple(each.kind for each in (*in_name, *found)))


def common(before: Sequence[Message], now: Sequence[Message]) -> int:
    """Return how many messages are the same in both, counted from the first.

    What was kept when fewer secrets were known counts as if it were masked today; so does what
    is hidden in a kept message, because its user forgot it.
    """
    count = 0
    for old, new in zip(before, now, strict=False):
        if old != new and not matches_hidden(old, new) and kept(old).message != new:
            break
        count += 1
    return count


def same(before: Sequence[Message], now: Sequence[Message]) -> bool:
    return common(before, now) == min(len(before), len(now))
