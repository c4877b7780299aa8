"""What an index of a stranger's has without writing it."""

from typing import TYPE_CHECKING

import pytest

from perdure.index.contract import VectorIndex
from perdure.testing.requirement import requirement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class TextsAlone(VectorIndex):
    """An index that nobody taught vectors."""


@requirement("003-index-search-unsupported")
def test_an_index_without_vectors_says_so() -> None:
    vector: Sequence[float] = (1.0,)
    filters: Mapping[str, str] = {"account_id": "a", "owner_space": "user:a"}

    with pytest.raises(NotImplementedError, match="Fix: search by text"):
        TextsAlone().search_by_vector(vector, filters, 1)  # type: ignore[abstract]
