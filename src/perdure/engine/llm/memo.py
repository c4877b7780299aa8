"""Answers that were paid for before: the same question is never paid for twice.

Each answer is the result of a derived artifact: the operation `complete`, all that the answer
depends on, and the request. Every owner has a store of their own, so that what is forgotten of one
is forgotten wholly, and nobody can find out from it what others asked. Only answers that were
checked are kept; refusals, failures and answers that are none are not.
"""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from shutil import rmtree
from typing import Any, cast

from perdure.artifacts import ArtifactStore, Derived, Literal, canonical
from perdure.artifacts.artifact import sid_of
from perdure.engine.llm.checking import checked
from perdure.engine.llm.contract import Completer
from perdure.engine.llm.ledger import Ledger
from perdure.engine.llm.occasion import Occasion
from perdure.engine.llm.reply import Answer, Call
from perdure.engine.llm.request import Request
from perdure.engine.llm.turns import Turns
from perdure.errors import DamageError, LanguageModelError, StaleIndexError
from perdure.index.memo import memo_folder
from perdure.model.values import JSON, plain

_OPERATION = ("complete", "1")
_LOCKS = "locks"


class Remembered:
    """Answers from memory what was answered before, and else asks.

    While one asks, others with the same question wait for its answer, also in other processes. What
    is kept is derived: if it proves damaged, it is thrown away, and asked again.
    """

    def __init__(self, inner: Completer, folder: Path, ledger: Ledger, occasion: Occasion) -> None:
        self._inner = inner
        self._folder = folder
        self._ledger = ledger
        self._occasion = occasion

    @property
    def parameters(self) -> Mapping[str, JSON]:
        return self._inner.parameters

    @property
    def max_output_tokens(self) -> int:
        return self._inner.max_output_tokens

    def complete(self, request: Request, *, seconds: float) -> Answer:
        artifact = self._artifact(request)
        with Turns(self._folder / _LOCKS).taken(sid_of(artifact), seconds) as left:
            known = self._known(artifact, request)
            if known is not None:
                self._ledger.note_remembered(self._occasion, self._model)
                return known
            reply = self._inner.complete(request, seconds=left)
            answer = checked(request, reply, self._model)
            self._keep(artifact, answer)
            return answer

    # ------------------------------------------------------------ what is kept
    def _known(self, artifact: Derived, request: Request) -> Answer | None:
        try:
            with self._store() as store:
                (kept,) = store.remembered([sid_of(artifact)])
            return None if kept is None else checked(request, _decoded(kept), self._model)
        except (DamageError, StaleIndexError, LanguageModelError):
            rmtree(self._own_folder, ignore_errors=True)
            return None

    def _keep(self, artifact: Derived, answer: Answer) -> None:
        with self._store() as store:
            store.remember([(artifact, _encoded(answer))])

    def _store(self) -> "closing[ArtifactStore]":
        return closing(ArtifactStore.open(self._own_folder))

    @property
    def _own_folder(self) -> Path:
        return memo_folder(
            answers_folder(self._folder), self._occasion.account_id, self._occasion.owner_space
        )

    @property
    def _model(self) -> str:
        return str(self.parameters.get("model"))

    def _artifact(self, request: Request) -> Derived:
        asked = canonical.encode(cast("canonical.Value", request.as_json()))
        depends_on = cast("Mapping[str, canonical.Value]", plain(dict(self.parameters)))
        return Derived(*_OPERATION, (Literal(asked),), depends_on)


def answers_folder(folder: Path) -> Path:
    """Return where the answers are, apart from the locks: a store for each owner."""
    return folder / "accounts"


def _encoded(answer: Answer) -> bytes:
    calls: Any = [[each.tool, each.arguments] for each in answer.calls]
    return canonical.encode({"text": answer.text, "calls": calls})


def _decoded(kept: bytes) -> Answer:
    match canonical.decode(kept):
        case {"text": str(text), "calls": list(calls)}:
            return Answer(text, tuple(Call(*map(str, each)) for each in calls))
    raise DamageError(
        "an answer that was kept can't be read. Fix: none is needed; it is asked again."
    )
