"""How things stand with a memory, part by part. Looks only: nothing is made, mended or changed.

A part that is broken says so, with the fix, and the others still answer.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from perdure.app.embedding import embedder_for
from perdure.app.indexes import LEXICAL, index_name
from perdure.app.opening import history_of
from perdure.app.places import Counted, sizes
from perdure.app.shelf import open_index
from perdure.config import Config, load_config
from perdure.context.outbox.sqlite import SqliteOutbox
from perdure.context.reading import NodeReader
from perdure.engine.building import Logged
from perdure.engine.upkeep import StatusPart
from perdure.errors import PerdureError, StorageSelectionError
from perdure.faults import explain_reading
from perdure.model import RequestContext
from perdure.model.values import JSON
from perdure.storage import StorageBackend, select_backend
from perdure.storage.history import History

Facts = dict[str, JSON]

_MOST_LOOKED_UP = 20_000
"""Entries of the log; if an index is further behind, nobody counts which places they are about."""

_UNOPENED = "they can't be counted without their storage. Fix: mend that first."


def status(
    environ: Mapping[str, str], caller: RequestContext, *, exact: bool = False
) -> tuple[StatusPart, ...]:
    """Return the parts of the configured memory, also if it can't be opened.

    With `exact`, every file on the disk is counted, however many there are.
    """
    return tuple(Standing(lambda: load_config(environ), caller, exact=exact).parts())


class Standing:
    """Asks each part of the memory that somebody configured."""

    def __init__(
        self, read_config: Callable[[], Config], request: RequestContext, *, exact: bool = False
    ) -> None:
        self._read_config = read_config
        self._request = request
        self._exact = exact
        self._questions: dict[str, Callable[[], Facts]] = {
            "config": self._config,
            "storage": self._storage,
            "nodes": self._nodes,
            "history": self._history,
            "index": self._index,
            "outbox": self._outbox,
            "model": self._model,
            "llm": self._llm,
            "disk": self._disk,
        }

    def parts(self) -> Iterator[StatusPart]:
        """Yield each part. Without a config there is none to tell of but the config."""
        self._request.demand_governing("see how it stands with it")
        config, storage = self.part("config"), self.part("storage")
        yield config
        if config.trouble:
            return
        yield storage
        yield StatusPart("nodes", {}, _UNOPENED) if storage.trouble else self.part("nodes")
        yield from map(self.part, ("history", "index", "outbox", "model", "llm", "disk"))

    def part(self, name: str) -> StatusPart:
        """Ask one part."""
        try:
            return StatusPart(name, self._questions[name]())
        except PerdureError as error:
            return StatusPart(name, {}, str(error))
        except OSError as error:
            where = Path(str(error.filename or "?"))
            return StatusPart(name, {}, str(explain_reading(error, str(where.parent), where.name)))

    # ------------------------------------------------------------ what is opened
    @cached_property
    def _settings(self) -> Config:
        return self._read_config()

    @cached_property
    def _backend(self) -> StorageBackend:
        return select_backend(self._settings.storage)

    @cached_property
    def _folder(self) -> Path:
        """The folder of the history, and of all that is derived."""
        return history_of(self._settings)

    # ------------------------------------------------------------ parts
    def _config(self) -> Facts:
        file = self._settings.home / "config.toml"
        return {"home": str(self._settings.home), "file": str(file) if file.exists() else None}

    def _storage(self) -> Facts:
        settings = self._settings.storage
        return {
            "backend": settings.protocol,
            "where": self._backend.whereabouts,
            "chosen_by": settings.reason,
        }

    def _nodes(self) -> Facts:
        counted = Counted(NodeReader(self._backend), self._request)
        return counted.facts()

    def _history(self) -> Facts:
        with History.open(str(self._folder)) as history:
            position = history.position()
            versions = history.store.catalogue.count_versions(position)
            _, time = history.store.catalogue.commit_at(position)
            cuts = len(history.store.cuts)
        return {
            "where": str(self._folder),
            "position": position,
            "versions": versions,
            "cuts": cuts,
            "last_change": _utc(datetime.fromtimestamp(time / 1000, UTC)) if time else None,
        }

    def _index(self) -> Facts:
        name = index_name(embedder_for(self._settings), self._settings.index)
        with (
            closing(open_index(self._folder / "index" / name)) as index,
            History.open(str(self._folder)) as history,
        ):
            account = self._request.account_id
            cursor, newest = index.cursor(account), history.position()
            return {
                "index": name,
                "semantic": not name.startswith(LEXICAL),
                "built": cursor > 0,
                "position": cursor,
                "behind": newest - cursor,
                "places_behind": self._places_behind(history, cursor, newest),
                "places": index.places(account),
            }

    def _places_behind(self, history: History, cursor: int, newest: int) -> int | None:
        if not cursor or newest - cursor > _MOST_LOOKED_UP:
            return None
        with suppress(StorageSelectionError):  # which the storage tells of
            logged = Logged(history, NodeReader(self._backend))
            return len(logged.changed(self._request.account_id, cursor))
        return None

    def _outbox(self) -> Facts:
        path = self._folder / "outbox.sqlite"
        if not path.exists():
            return {"waiting": 0, "dead": 0, "since": None}
        with SqliteOutbox(str(path)) as outbox:
            waiting, dead, since = outbox.count(self._request.account_id)
        return {"waiting": waiting, "dead": dead, "since": None if since is None else _utc(since)}

    def _model(self) -> Facts:
        embedder = embedder_for(self._settings)
        said = None if embedder is None else str(embedder.parameters.get("model", ""))
        return {"provider": self._settings.embedding.provider, "model": said}

    def _llm(self) -> Facts:
        settings = self._settings.llm
        if settings.provider == "none":
            return {"provider": "none"}
        from perdure.app.llm import costs

        today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        spent = next(iter(costs(self._settings, "day", today)), None)
        return {
            "provider": settings.provider,
            "model": settings.model,
            "tokens_today": spent.input_tokens + spent.output_tokens if spent else 0,
            "tokens_per_day": settings.tokens_per_day,
            "dollars_per_day": settings.dollars_per_day,
        }

    def _disk(self) -> Facts:
        source = None
        with suppress(StorageSelectionError):  # as before
            source = Path(self._backend.identity) if self._backend.identity else None
        return sizes(self._settings.home, self._folder, source, exact=self._exact)


def _utc(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
