"""Whether a memory is well: each check asks what would be asked in use, and changes nothing."""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from re import findall, match
from typing import Any

from perdure.app.embedding import demand_packages, embedder_for
from perdure.app.opening import default_request, preview_storage
from perdure.app.standing import Standing
from perdure.config import Config, load_config
from perdure.errors import ConfigError, PerdureError
from perdure.index.models.installed import find
from perdure.storage import Capabilities, StoragePreview, select_backend
from perdure.storage.abandoned import abandoned_locks

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_MAY_READ = stat.S_IRGRP | stat.S_IROTH
_WAITED_LONG = timedelta(hours=1)


class Level(Enum):
    """How bad it is."""

    OK = "ok"
    NOTE = "note"
    """All is well, and could be better."""
    WARN = "warn"
    """It works, but somebody should look."""
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, and what came of it."""

    name: str
    level: Level
    message: str
    """What was found; unless all is well, with the fix."""


@dataclass(frozen=True, slots=True)
class Checkup:
    storage: StoragePreview
    checks: tuple[Check, ...]
    """All, but for the storage."""

    @property
    def ok(self) -> bool:
        return self.storage.ok and all(check.level is not Level.FAIL for check in self.checks)


def check_up(environ: Mapping[str, str], required: Capabilities | None = None) -> Checkup:
    """Check all there is. What depends on a config that is wrong is not looked at."""
    storage = preview_storage(environ, required=required)
    try:
        config = load_config(environ)
    except ConfigError as error:
        return Checkup(storage, (Check("config", Level.FAIL, str(error)),))
    return Checkup(storage, tuple(_Checking(environ, config).checks()))


class _Checking:
    def __init__(self, environ: Mapping[str, str], config: Config) -> None:
        self._config = config
        self._standing = Standing(environ, default_request(environ))

    def checks(self) -> Iterator[Check]:
        yield self._config_file()
        yield self._home()
        yield self._writing()
        if self._has_no_history():
            what = "this backend is for texts alone, and can have none. Fix: choose another"
            yield Check("history", Level.NOTE, f"{what} to keep memories in")
        else:
            yield self._history()
            yield self._index()
            yield from self._outbox()
        yield self._locks()
        yield self._extras()
        yield self._model()

    def _has_no_history(self) -> bool:
        try:
            return not select_backend(self._config.storage).identity
        except PerdureError:  # the storage says so
            return False

    def _config_file(self) -> Check:
        file = self._config.home / "config.toml"
        if file.exists():
            return Check("config", Level.OK, str(file))
        return Check("config", Level.NOTE, "there is none. Fix: `perdure init` writes one")

    def _home(self) -> Check:
        home = self._config.home
        try:
            found = home.stat()
        except FileNotFoundError:
            return Check("home", Level.OK, f"{home} is made by the first write")
        except OSError as error:
            return Check("home", Level.FAIL, f"{home}: {error.strerror}. Fix: let us in")
        if found.st_uid != os.geteuid():
            return Check("home", Level.WARN, f"{home} is another user's. Fix: chown it")
        level, what = _openness(home, found.st_mode)
        fix = "" if level is Level.OK else f". Fix: chmod 700 '{home}'"
        return Check("home", level, f"{what}{fix}")

    def _writing(self) -> Check:
        try:
            where = select_backend(self._config.storage).identity
        except PerdureError as error:
            return Check("writing", Level.FAIL, str(error))
        place = Path(where or self._config.home)
        while not place.exists():
            place = place.parent
        if os.access(place, os.W_OK | os.X_OK):
            return Check("writing", Level.OK, f"{place} may be written")
        message = f"{str(place)!a} can't be written. Fix: make it writable for this user"
        return Check("writing", Level.FAIL, message)

    def _history(self) -> Check:
        found = self._standing.part("history")
        if found.trouble:
            return Check("history", Level.FAIL, found.trouble)
        facts: Mapping[str, Any] = found.facts
        if facts["cuts"]:
            message = "a commit that was never finished was cut off. Fix: none needed"
            return Check("history", Level.WARN, message)
        message = f"opens, with {facts['position']:,} entries; `perdure history verify` reads all"
        return Check("history", Level.OK, message)

    def _index(self) -> Check:
        found = self._standing.part("index")
        facts: Mapping[str, Any] = found.facts
        if found.trouble:
            model = self._standing.part("model").trouble
            level = Level.NOTE if found.trouble == model else Level.WARN  # the model says so itself
            return Check("index", level, found.trouble)
        if not facts["built"]:
            return Check("index", Level.OK, "not made yet; the first recall makes it")
        if facts["behind"] and facts["places_behind"] != 0:
            fix = "Fix: none needed; the next recall brings it up to date"
            return Check("index", Level.NOTE, f"{facts['behind']:,} entries behind. {fix}")
        noun = "place" if facts["places"] == 1 else "places"
        return Check("index", Level.OK, f"{facts['places']:,} {noun}, up to date")

    def _outbox(self) -> Iterator[Check]:
        found = self._standing.part("outbox")
        facts: Mapping[str, Any] = found.facts
        if found.trouble:
            yield Check("outbox", Level.FAIL, found.trouble)
            return
        if facts["dead"]:
            fix = "Fix: see `perdure outbox dead`, then `perdure outbox requeue`"
            yield Check("outbox", Level.WARN, f"{facts['dead']:,} events failed too often. {fix}")
        else:
            yield Check("outbox", Level.OK, f"{facts['waiting']:,} events waiting, none dead")
        yield _worker(facts["since"])

    def _locks(self) -> Check:
        found = list(abandoned_locks(str(self._config.home / "locks")))
        if not found:
            return Check("locks", Level.OK, "none is held by anybody who is gone")
        message = f"held by {'; '.join(found)}. Fix: none needed; the next writer takes it over"
        return Check("locks", Level.WARN, message)

    def _extras(self) -> Check:
        missing = sorted(_missing_extras())
        if not missing:
            return Check("extras", Level.OK, "all are installed")
        fix = f"Fix: pip install '.[{','.join(missing)}]' from a checkout, if you want them"
        return Check("extras", Level.NOTE, f"not installed: {', '.join(missing)}. {fix}")

    def _model(self) -> Check:
        """Say what recall would say of the model; and read all of one that is on this machine."""
        provider = self._config.embedding.provider
        try:
            embedder = embedder_for(self._config)
            installed = find(self._config.home / "models")
            if embedder is None:
                if provider == "none":
                    return Check("recall", Level.OK, "goes by words alone, as you chose")
                fix = "Fix: `perdure models install` gets one"
                return Check("recall", Level.NOTE, f"goes by words alone, without a model. {fix}")
            if installed is not None and provider in {"auto", "minilm"}:
                demand_packages()
                installed.verify()
        except PerdureError as error:
            return Check("recall", Level.FAIL, str(error))
        return Check("recall", Level.OK, f"by meaning, with {embedder.parameters.get('model')}")


def _openness(home: Path, mode: int) -> tuple[Level, str]:
    if not os.access(home, os.W_OK | os.X_OK):
        return Level.FAIL, f"{home} can't be written"
    if mode & _OTHERS_MAY_WRITE:
        return Level.WARN, f"others may write to {home}"
    if mode & _OTHERS_MAY_READ:
        return Level.NOTE, f"others may look into {home}"
    return Level.OK, str(home)


def _worker(since: str | None) -> Check:
    """Say whether anybody works on what waits."""
    if since is None or datetime.now(UTC) - datetime.fromisoformat(since) < _WAITED_LONG:
        return Check("worker", Level.OK, "nothing waits for one")
    fix = "Fix: run `perdure worker --once`, or recall something"
    return Check("worker", Level.WARN, f"nobody works on what waits since {since}. {fix}")


def _missing_extras() -> Iterator[str]:
    """Yield the extras of which a package is not installed."""
    wanted: dict[str, list[str]] = {}
    for line in requires("perdure") or ():
        name = match(r"[\w.-]+", line)
        for extra in findall(r"extra == ['\"]([\w-]+)['\"]", line):
            wanted.setdefault(extra, []).append(name[0] if name else "")
    for extra, packages in wanted.items():
        if not all(_is_installed(name) for name in packages):
            yield extra


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True
