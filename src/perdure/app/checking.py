"""Whether a memory is well: each check asks what would be asked in use, and changes nothing."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from re import findall, match
from typing import Any

from perdure.app.embedding import demand_packages, embedder_for
from perdure.app.opening import default_request, preview_storage
from perdure.app.standing import Standing
from perdure.config import Config, load_config
from perdure.engine.upkeep import Check, Checkup, Severity
from perdure.errors import ConfigError, PerdureError
from perdure.index.models.installed import find
from perdure.model import RequestContext
from perdure.storage import Capabilities, select_backend, storage_preview
from perdure.storage.abandoned import abandoned_locks

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_MAY_READ = stat.S_IRGRP | stat.S_IROTH
_WAITED_LONG = timedelta(hours=1)
CAPABILITIES = tuple(field.name for field in fields(Capabilities))
"""What a storage can promise."""


def check_up(environ: Mapping[str, str], requires: Iterable[str] = ()) -> Checkup:
    """Check all there is. What depends on a config that is wrong is not looked at.

    The storage fails unless it promises what is required; each is one of `CAPABILITIES`.
    """
    try:
        config = load_config(environ)
    except ConfigError as error:
        return Checkup(preview_storage(environ), (Check("config", Severity.FAIL, str(error)),))
    return check_memory(config, default_request(environ), requires)


def check_memory(config: Config, caller: RequestContext, requires: Iterable[str] = ()) -> Checkup:
    """As `check_up`, for a config that was read."""
    caller.demand_governing("see how it stands with it")
    required = Capabilities(**dict.fromkeys(requires, True))
    storage = storage_preview(config.storage, required=required)
    return Checkup(storage, tuple(_Checking(config, caller).checks()))


class _Checking:
    def __init__(self, config: Config, caller: RequestContext) -> None:
        self._config = config
        self._standing = Standing(lambda: config, caller)

    def checks(self) -> Iterator[Check]:
        yield self._config_file()
        yield self._home()
        yield self._writing()
        if self._has_no_history():
            what = "this backend is for texts alone, and can have none. Fix: choose another"
            yield Check("history", Severity.NOTE, f"{what} to keep memories in")
        else:
            yield self._history()
            yield self._index()
            yield from self._outbox()
        yield self._locks()
        yield self._extras()
        yield self._model()
        yield from self._hooks()

    def _has_no_history(self) -> bool:
        try:
            return not select_backend(self._config.storage).identity
        except PerdureError:  # the storage says so
            return False

    def _config_file(self) -> Check:
        file = self._config.home / "config.toml"
        if file.exists():
            return Check("config", Severity.OK, str(file))
        return Check("config", Severity.NOTE, "there is none. Fix: `perdure init` writes one")

    def _home(self) -> Check:
        home = self._config.home
        try:
            found = home.stat()
        except FileNotFoundError:
            return Check("home", Severity.OK, f"{home} is made by the first write")
        except OSError as error:
            return Check("home", Severity.FAIL, f"{home}: {error.strerror}. Fix: let us in")
        if found.st_uid != os.geteuid():
            return Check("home", Severity.WARN, f"{home} is another user's. Fix: chown it")
        level, what = _openness(home, found.st_mode)
        fix = "" if level is Severity.OK else f". Fix: chmod 700 '{home}'"
        return Check("home", level, f"{what}{fix}")

    def _writing(self) -> Check:
        try:
            where = select_backend(self._config.storage).identity
        except PerdureError as error:
            return Check("writing", Severity.FAIL, str(error))
        place = Path(where or self._config.home)
        while not place.exists():
            place = place.parent
        if os.access(place, os.W_OK | os.X_OK):
            return Check("writing", Severity.OK, f"{place} may be written")
        message = f"{str(place)!a} can't be written. Fix: make it writable for this user"
        return Check("writing", Severity.FAIL, message)

    def _history(self) -> Check:
        found = self._standing.part("history")
        if found.trouble:
            return Check("history", Severity.FAIL, found.trouble)
        facts: Mapping[str, Any] = found.facts
        if facts["cuts"]:
            message = "a commit that was never finished was cut off. Fix: none needed"
            return Check("history", Severity.WARN, message)
        message = f"opens, with {facts['position']:,} entries; `perdure history verify` reads all"
        return Check("history", Severity.OK, message)

    def _index(self) -> Check:
        found = self._standing.part("index")
        facts: Mapping[str, Any] = found.facts
        if found.trouble:
            model = self._standing.part("model").trouble
            level = (
                Severity.NOTE if found.trouble == model else Severity.WARN
            )  # the model says so itself
            return Check("index", level, found.trouble)
        if not facts["built"]:
            return Check("index", Severity.OK, "not made yet; the first recall makes it")
        if facts["behind"] and facts["places_behind"] != 0:
            fix = "Fix: none needed; the next recall brings it up to date"
            return Check("index", Severity.NOTE, f"{facts['behind']:,} entries behind. {fix}")
        noun = "place" if facts["places"] == 1 else "places"
        return Check("index", Severity.OK, f"{facts['places']:,} {noun}, up to date")

    def _outbox(self) -> Iterator[Check]:
        found = self._standing.part("outbox")
        facts: Mapping[str, Any] = found.facts
        if found.trouble:
            yield Check("outbox", Severity.FAIL, found.trouble)
            return
        if facts["dead"]:
            fix = "Fix: see `perdure outbox dead`, then `perdure outbox requeue`"
            yield Check(
                "outbox", Severity.WARN, f"{facts['dead']:,} events failed too often. {fix}"
            )
        else:
            yield Check("outbox", Severity.OK, f"{facts['waiting']:,} events waiting, none dead")
        yield _worker(facts["since"])

    def _locks(self) -> Check:
        found = list(abandoned_locks(str(self._config.home / "locks")))
        if not found:
            return Check("locks", Severity.OK, "none is held by anybody who is gone")
        message = f"held by {'; '.join(found)}. Fix: none needed; the next writer takes it over"
        return Check("locks", Severity.WARN, message)

    def _extras(self) -> Check:
        missing = sorted(_missing_extras())
        if not missing:
            return Check("extras", Severity.OK, "all are installed")
        fix = f"Fix: pip install '.[{','.join(missing)}]' from a checkout, if you want them"
        return Check("extras", Severity.NOTE, f"not installed: {', '.join(missing)}. {fix}")

    def _model(self) -> Check:
        """Say what recall would say of the model; and read all of one that is on this machine."""
        provider = self._config.embedding.provider
        try:
            embedder = embedder_for(self._config)
            installed = find(self._config.home / "models")
            if embedder is None:
                if provider == "none":
                    return Check("recall", Severity.OK, "goes by words alone, as you chose")
                fix = "Fix: `perdure models install` gets one"
                return Check(
                    "recall", Severity.NOTE, f"goes by words alone, without a model. {fix}"
                )
            if installed is not None and provider in {"auto", "minilm"}:
                demand_packages()
                installed.verify()
        except PerdureError as error:
            return Check("recall", Severity.FAIL, str(error))
        return Check("recall", Severity.OK, f"by meaning, with {embedder.parameters.get('model')}")

    def _hooks(self) -> Iterator[Check]:
        """Yield what went wrong when agents called hooks; nothing if nothing did."""
        log = self._config.home / "hooks" / "log"
        try:
            lines = log.read_text(errors="replace").splitlines()
        except OSError:
            return
        if lines:
            number = f"{len(lines)} trouble{'s' if len(lines) > 1 else ''}"
            fix = f"Fix: see {str(log)!a}, then remove it."
            yield Check("hooks", Severity.WARN, f"{number}, the last: {lines[-1]}. {fix}")


def _openness(home: Path, mode: int) -> tuple[Severity, str]:
    if not os.access(home, os.W_OK | os.X_OK):
        return Severity.FAIL, f"{home} can't be written"
    if mode & _OTHERS_MAY_WRITE:
        return Severity.WARN, f"others may write to {home}"
    if mode & _OTHERS_MAY_READ:
        return Severity.NOTE, f"others may look into {home}"
    return Severity.OK, str(home)


def _worker(since: str | None) -> Check:
    """Say whether anybody works on what waits."""
    if since is None or datetime.now(UTC) - datetime.fromisoformat(since) < _WAITED_LONG:
        return Check("worker", Severity.OK, "nothing waits for one")
    fix = "Fix: run `perdure worker --once`, or recall something"
    return Check("worker", Severity.WARN, f"nobody works on what waits since {since}. {fix}")


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
