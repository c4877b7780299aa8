"""Answers that were paid for before: the same question is never paid for twice.

Each answer is the result of a derived artifact: the operation `complete`, all that the answer
depends on, and the request. Every owner has a store of their own, so that what is forgotten of one
is forgotten wholly, and nobody can find out from it what others asked. Only answers that were
checked are kept; refusals, failures and answers that are none are not.
"""

import time
from contextlib import closing
from pathlib import Path
from shutil import rmtree
from typing import Any, cast

from perdure.artifacts import ArtifactStore, Derived, Literal, canonical
from perdure.artifacts.artifact import sid_of
from perdure.engine.llm.asking import checked
from perdure.engine.llm.contract import Answer, Call, Completer, Occasion, Request, Wrapper
from perdure.engine.llm.ledger import Ledger
from perdure.errors import DamageError, LanguageModelError, ServiceUnreachableError, StaleIndexError
from perdure.files import locked
from perdure.index.memo import memo_folder
from perdure.model.values import plain

_OPERATION = ("complete", "1")
_LOCKS = "locks"


class Remembered(Wrapper):
    """Answers from memory what was answered before, and else asks.

    While one asks, others with the same question wait for its answer, also in other processes. What
    is kept is derived: if it proves damaged, it is thrown away, and asked again.
    """

    def __init__(self, inner: Completer, folder: Path, ledger: Ledger, occasion: Occasion) -> None:
        super().__init__(inner)
        self._folder = folder
        self._ledger = ledger
        self._occasion = occasion

    def complete(self, request: Request, *, seconds: float) -> Answer:
        artifact, until = self._artifact(request), time.monotonic() + seconds
        lock = f"{sid_of(artifact).digest[0]:02x}"  # if two questions share one, the second waits
        with locked(self._folder / _LOCKS / lock, seconds) as held:
            if held is None:
                raise ServiceUnreachableError(
                    "another process has been asking the same all the time. "
                    "Fix: look for a process that hangs, and try again.",
                    billed=False,
                )
            known = self._known(artifact, request)
            if known is not None:
                self._ledger.note_remembered(self._occasion, self._model)
                return known
            reply = self._inner.complete(request, seconds=until - time.monotonic())
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

    def _artifact(self, request: Request) -> Derived:
        asked = canonical.encode(cast("canonical.Value", request.as_json()))
        depends_on = cast("dict[str, canonical.Value]", plain(dict(self.parameters)))
        return Derived(*_OPERATION, (Literal(asked),), depends_on)


def answers_folder(folder: Path) -> Path:
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
