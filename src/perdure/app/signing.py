"""The key that this user signs with."""

from pathlib import Path
from typing import TYPE_CHECKING

from perdure.config import Config

if TYPE_CHECKING:
    from perdure.artifacts.keys import SigningKey

_KEY_NAME = "perdure"
"""It stands in every proof that is given away, so it says nothing of the owner."""


def signing_key_file(home: Path) -> Path:
    """Return where the key is kept that checkpoints are signed with."""
    return home / "signing-key"


def signing_key(config: Config) -> "SigningKey":
    """Return the key; the first time makes it."""
    from perdure.artifacts.keys import SigningKey

    return SigningKey.load_or_make(signing_key_file(config.home), _KEY_NAME)
