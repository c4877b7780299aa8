"""What an owner writes by hand: kept to the letter, but for its secrets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perdure.engine.validate.secrets import SecretPolicy, masked
from perdure.engine.validate.texts import MASKED, Note, refuse_secrets
from perdure.model.values import JSON

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
        refuse_secrets(text, where, "name it otherwise.")

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
