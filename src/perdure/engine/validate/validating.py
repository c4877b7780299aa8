"""Candidates and owners' texts as they may be remembered.

Every text of a candidate is cleaned, with one exception. Its evidence, and with evidence its
`quote` and `speaker`, stay to the letter, so that they can still be found in their message. Who
shows them shows them `presentable`. A secret in them is refused whatever the policy says: masked,
they would prove nothing. What an owner writes by hand is kept to the letter, but for its secrets.
"""

from collections.abc import Callable, Mapping, Sequence

from perdure.dataclass import dataclass, field, replace
from perdure.engine.validate.secrets import SecretPolicy, masked
from perdure.engine.validate.texts import (
    MASKED,
    CleanText,
    Note,
    cleaned,
    cleaned_line,
    presentable,
    refuse_secrets,
    strings_in,
)
from perdure.errors import InvalidValueError
from perdure.model import CandidateMemory
from perdure.model.transcript import Message, is_hidden_form
from perdure.model.values import (
    JSON,
    MAX_ABSTRACT,
    MAX_CONTENT,
    MAX_OVERVIEW,
    MAX_SHOWN,
    shortened,
    shown,
)

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


def common(before: Sequence[Message], said: Sequence[Message]) -> int:
    """Return how many messages are the same in both, counted from the first.

    What was kept when fewer secrets were known counts as if it were masked today; so does what
    is hidden in a kept message, because its user forgot it.
    """
    count = 0
    for old, new in zip(before, said, strict=False):
        if old != new and not is_hidden_form(old, new) and kept(old).message != new:
            break
        count += 1
    return count


def same(before: Sequence[Message], said: Sequence[Message]) -> bool:
    return common(before, said) == min(len(before), len(said))
