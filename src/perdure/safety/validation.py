"""Makes texts safe to store and to show: no secrets, hidden characters, orders or active HTML."""

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
from perdure.safety.injection import Instruction, instructions_in, mark_quoted, mark_quoted_line
from perdure.safety.markup import inert, visible
from perdure.safety.secrets import Secret, SecretPolicy, mask, secrets_in

HIDDEN = "hidden and control characters are gone or shown"
INERT = "HTML or a link does nothing any more"
ORDER = "an instruction is marked as quoted"
MASKED = "masked: "


@dataclass(frozen=True, slots=True)
class Note:
    """What validation changed, and where. It never contains a secret."""

    where: str
    what: str
    line: int = 1

    @property
    def secret(self) -> str:
        """The kind of the masked secret; empty if something else was changed."""
        return self.what.removeprefix(MASKED) if self.what.startswith(MASKED) else ""


@dataclass(frozen=True, slots=True)
class CleanText:
    text: str
    notes: tuple[Note, ...] = ()


def count_masked(notes: Iterable[Note]) -> int:
    return sum(each.what.startswith(MASKED) for each in notes)


def clean(text: str, where: str, policy: SecretPolicy = SecretPolicy.REFUSE) -> CleanText:
    """Return a text of any length as it may be stored, and what was changed in it.

    A secret is masked or refused (`SecretRefusedError`), as the policy says. Idempotent.
    """
    return _clean(text, where, policy, one_line=False)


def clean_line(text: str, where: str, policy: SecretPolicy = SecretPolicy.REFUSE) -> CleanText:
    """Return a short text, such as an abstract or a name, as it may be stored."""
    return _clean(text, where, policy, one_line=True)


def presentable(text: str) -> str:
    """Return a text that is stored verbatim, such as a quote, as it may be shown."""
    return inert(mark_quoted(mask(visible(text))[0]))


def presentable_line(text: str) -> str:
    """Return a name or a title as it may be shown, on one line."""
    line = " ".join(visible(text).split())
    return inert(mark_quoted_line(mask(line)[0]))


def without_secrets(text: str, where: str, policy: SecretPolicy, fix: str) -> str:
    """Return a text verbatim except for its secrets, which are masked or refused."""
    if policy is SecretPolicy.MASK:
        return mask(text)[0]
    refuse_secrets(text, where, fix)
    return text


def refuse_secrets(
    text: str, where: str, fix: str = "leave it out", *, options: Sequence[str] = ()
) -> None:
    """Raise `SecretRefusedError` if a text holds a secret; `options` name what would allow it."""
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
    starts_with_vowel = kind[0] in "AEIOUaeiou" and not kind.startswith("one")
    return f"{'an' if starts_with_vowel else 'a'} {kind}"


def strings_in(value: JSON) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | Sequence):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from strings_in(each)


def _clean(text: str, where: str, policy: SecretPolicy, *, one_line: bool) -> CleanText:
    seen = visible(text)
    if policy is SecretPolicy.REFUSE:
        refuse_secrets(seen, where, options=("mask_secrets",))
    plain, secrets = mask(seen) if policy is SecretPolicy.MASK else (seen, [])
    marked = mark_quoted_line(plain) if one_line else mark_quoted(plain)
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
class ValidatedCandidate:
    candidate: CandidateMemory
    notes: tuple[Note, ...]


def validate(
    candidate: CandidateMemory, policy: SecretPolicy = SecretPolicy.REFUSE
) -> ValidatedCandidate:
    """Return a candidate as it may be stored, and what was changed in it.

    `SecretRefusedError` if it holds a secret that may not be masked; `InvalidValueError` if the
    clean content is too long. Idempotent.
    """
    cleaner = _Cleaner(policy)
    metadata = cleaner.metadata(candidate.metadata)
    refuse_secrets(candidate.slug, "slug", "choose another name.")
    if EVIDENCE in candidate.metadata:
        quote, speaker = candidate.quote, candidate.speaker
        refuse_secrets(quote, "quote", _UNMASKABLE)
        refuse_secrets(speaker, "name of the speaker", _UNMASKABLE)
    else:
        quote = cleaner.block(candidate.quote, "quote")
        speaker = cleaner.line(candidate.speaker, "name of the speaker")
    valid = replace(
        candidate,
        content=cleaner.content(candidate.content),
        abstract=cleaner.line(candidate.abstract, "abstract"),
        overview=cleaner.block(candidate.overview, "overview"),
        where=cleaner.line(candidate.where, "place"),
        who=tuple(cleaner.line(each, "name") for each in candidate.who),
        metadata=metadata,
        quote=quote,
        speaker=speaker,
    )
    return ValidatedCandidate(valid, tuple(cleaner.notes))


@dataclass(frozen=True, slots=True)
class SafeText:
    content: str
    metadata: dict[str, JSON]
    notes: tuple[Note, ...]


def make_safe(
    content: str, metadata: Mapping[str, JSON], policy: SecretPolicy = SecretPolicy.REFUSE
) -> SafeText:
    """Return the content and metadata of a memory as they may be stored; raises as `validate`."""
    cleaner = _Cleaner(policy)
    checked = cleaner.content(content), cleaner.metadata(metadata)
    return SafeText(*checked, tuple(cleaner.notes))


@dataclass(slots=True)
class _Cleaner:
    """Cleans the fields of one memory, and collects the notes."""

    policy: SecretPolicy
    notes: list[Note] = field(default_factory=list)

    def content(self, text: str) -> str:
        result = clean(text, "content", self.policy)
        if len(result.text) > MAX_CONTENT:
            raise InvalidValueError(
                f"the content has {len(result.text):,} characters once it is made safe to show; "
                f"{MAX_CONTENT:,} are allowed. Fix: shorten it, or split it into several."
            )
        return self._noted(result)

    def block(self, text: str, where: str) -> str:
        return self._fitted(text, MAX_OVERVIEW, lambda part: clean(part, where, self.policy))

    def line(self, text: str, where: str) -> str:
        return self._fitted(text, MAX_ABSTRACT, lambda part: clean_line(part, where, self.policy))

    def metadata(self, given: Mapping[str, JSON]) -> dict[str, JSON]:
        result: dict[str, JSON] = {}
        for key, value in given.items():
            self._check_key(key)
            if key == EVIDENCE:
                for each in strings_in(value):
                    refuse_secrets(each, "evidence", _UNMASKABLE)
            result[key] = value if key == EVIDENCE else self._value(key, value)
        return result

    def _value(self, key: str, value: JSON) -> JSON:
        if isinstance(value, str):
            return self._named(key, value)
        if isinstance(value, Mapping):
            return {self._check_key(name): self._value(name, each) for name, each in value.items()}
        if isinstance(value, Sequence):
            return [self._value(key, each) for each in value]
        return value

    def _named(self, key: str, value: str) -> str:
        """Clean a text of the metadata; its key may show that it is a secret."""
        prefix = f"{key}: "
        with_key = clean_line(prefix + value, f"metadata {key}", self.policy)
        alone = clean_line(value, f"metadata {key}", self.policy)
        text = with_key.text.removeprefix(prefix)
        if text == alone.text or not with_key.text.startswith(prefix):
            return self._noted(alone)
        return self._noted(CleanText(text, with_key.notes))

    def _check_key(self, key: str) -> str:
        refuse_secrets(key, "key of the metadata", "choose another name.")
        if presentable(key) != key:
            raise InvalidValueError(
                f"the metadata has a key {shown(key)}. Fix: use plain words as keys."
            )
        return key

    def _fitted(self, text: str, limit: int, cleaned: Callable[[str], CleanText]) -> str:
        while len((result := cleaned(text)).text) > limit:
            text = shortened(text, len(text) * 3 // 4)
        return self._noted(result)

    def _noted(self, result: CleanText) -> str:
        self.notes += result.notes
        return result.text


_ALLOWING = ("mask_secrets", "as_is")


@dataclass(slots=True)
class SecretFilter:
    """Refuses or masks the secrets of a user's own texts, and collects the notes."""

    policy: SecretPolicy
    notes: list[Note] = field(default_factory=list)

    def text(self, text: str, where: str) -> str:
        """Mask the secrets of a text; `SecretRefusedError` if the policy refuses them."""
        return self._named("", text, where)

    def name(self, text: str, where: str) -> None:
        """Raise `SecretRefusedError` for a name with a secret; a masked one would be another."""
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
        """Return a text with its secrets masked; its name may show that it is one."""
        if self.policy is SecretPolicy.REFUSE:
            refuse_secrets(name + text, where, options=_ALLOWING)
            refuse_secrets(text, where, options=_ALLOWING)
            return text
        masked, found = mask(name + text)
        for each in found:
            line = (name + text).count("\n", 0, each.start) + 1
            self.notes.append(Note(where, MASKED + each.kind, line))
        return masked.removeprefix(name) if masked.startswith(name) else mask(text)[0]


@dataclass(frozen=True, slots=True)
class MaskedMessage:
    """The index of a message, and the kinds of the secrets that were masked in it."""

    message: int
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SafeMessage:
    """A message without secrets, and the kinds of those that were masked in it."""

    message: Message
    kinds: tuple[str, ...]


def mask_message(message: Message) -> SafeMessage:
    """Return a message with its secrets masked. Idempotent."""
    content, found = mask(message.content)
    name, in_name = mask(message.name)
    if not found and not in_name:
        return SafeMessage(message, ())
    masked = replace(message, content=content, name=shortened(name, MAX_SHOWN))
    return SafeMessage(masked, tuple(each.kind for each in (*in_name, *found)))


def shared_prefix(before: Sequence[Message], now: Sequence[Message]) -> int:
    """Return how many messages are the same in both, counted from the first.

    A message that was stored when fewer secrets were recognised counts as if it were masked today.
    One in which the user forgot sentences, which are hidden, counts as the same.
    """
    count = 0
    for old, new in zip(before, now, strict=False):
        if old != new and not matches_hidden(old, new) and mask_message(old).message != new:
            break
        count += 1
    return count


def is_continuation(before: Sequence[Message], now: Sequence[Message]) -> bool:
    return shared_prefix(before, now) == min(len(before), len(now))
