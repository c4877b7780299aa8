"""One frozen Config, read once from the file and the environment."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from pwd import getpwuid
from typing import NamedTuple, get_args

from perdure.dataclass import dataclass, field, fields
from perdure.errors import ConfigError
from perdure.model.trust import AgentSettings, FolderRule, expand_home
from perdure.plugins import PluginGroup, offered
from perdure.storage import StorageSettings, registry
from perdure.storage.locator import is_key_segment

FILE_NAME = "config.toml"
HOME_VARIABLE = "PERDURE_HOME"
VAULT_VARIABLE = "MEMORY_VAULT_PATH"
LAYOUT_VARIABLE = "PERDURE_LAYOUT"

SQLITE = "sqlite"
_CHOICES: dict[str, dict[str, tuple[str, ...]]] = {
    "embedding": {"provider": ("auto", "minilm", "openai", "none")},
    "index": {"provider": (SQLITE,)},
    "llm": {
        "provider": ("none", "openai", "anthropic", "claude-code", "codex"),
        "structured": ("json_schema", "tool", "text"),
        "limit_name": ("max_tokens", "max_completion_tokens"),
    },
}
_OFFERED = {"embedding": PluginGroup.EMBEDDER, "index": PluginGroup.INDEX, "llm": PluginGroup.LLM}
"""The tables whose providers installed packages can add."""
COMMAND_LINE = frozenset({"claude-code", "codex"})
"""Language models behind the user's own command-line client, which has its model and login."""
STATE_MODES = {"backend": "backend", "local": "local", "vault": "backend"}
"""The modes that store the state of projects, by all names that they ever had."""
LAYOUTS = ("notes", "agfs")
"""How nodes are stored in a backend: each as a note, or as the five files of the seed."""
MEMORY_FOLDER = "Perdure"
_OF_STORAGE = ("backend", "layout", "folder")
_TABLES = ("storage", "embedding", "index", "llm", "agents", "vault")
_STATE_MODE = "state_mode"
_USER = "user"
_KINDS = {str: "a text in quotes", int: "a number", float: "a number", bool: "true or false"}
_MAX_CHECK_SECONDS = 60


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    provider: str = "auto"
    """`auto` uses the local model if it is installed, `minilm` requires it, `none` uses no model,
    `openai` calls an endpoint with OpenAI's API; any other is that of an installed package."""
    base_url: str = ""
    model: str = ""
    api_key: str = field(default="", repr=False)
    dimension: int | None = None


@dataclass(frozen=True, slots=True)
class LanguageModelSettings:
    """Which language model may be called, and its budget."""

    provider: str = "none"
    """`none` calls no model; `openai` any service with OpenAI's API; `anthropic` Anthropic;
    `claude-code` and `codex` start the user's own client; any other is an installed package's."""
    base_url: str = ""
    model: str = ""
    api_key_variable: str = ""
    api_key: str = field(default="", repr=False)
    structured: str = ""
    limit_name: str = ""
    max_output_tokens: int = 4_096
    tokens_per_day: int = 2_000_000
    background: bool = False
    """Whether a background process asks it about the candidates of finished sessions."""
    runs_per_day: int = 20
    """How often it may be asked about candidates per day, in UTC."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The user's environment, for a command-line client; empty for any other provider."""


@dataclass(frozen=True, slots=True)
class Config:
    home: Path
    """The folder of everything that must never be synced."""
    storage: StorageSettings
    embedding: EmbeddingSettings = EmbeddingSettings()
    llm: LanguageModelSettings = LanguageModelSettings()
    state_mode: str | None = None
    """`backend` or `local`; None if it is not configured."""
    index: str = SQLITE
    """The index of texts and vectors: the built-in one, or an installed package's."""
    agents: AgentSettings = AgentSettings()
    """Which sessions of agents may use memory and contribute to it."""
    layout: str | None = None
    """The layout of a new store; None if it is not configured. A store keeps the one it has."""
    folder: str = MEMORY_FOLDER
    """The folder of a vault in which memories are notes."""
    user: str = ""
    """The user who owns the memories at the top of a new store."""
    check_seconds: float = 1.0
    """How long a recall looks for edits made outside Perdure; 0 switches that off."""
    ignore: tuple[str, ...] = ()
    """The notes of a vault that are not memory, as patterns of gitignore."""


class ConfigFile(NamedTuple):
    """The path and the text of a config file."""

    path: Path
    text: str

    def parse(self) -> dict[str, object]:
        if not self.text:
            return {}
        import tomllib  # noqa: PLC0415 - only needed with a config

        try:
            return tomllib.loads(self.text)
        except (ValueError, RecursionError) as error:  # also a number too long, a list too deep
            what = re.sub(r" \(at [^()]*\)$", "", str(error))
            line = self._line_of_fault(error)
            raise ConfigError(
                f"{self.path}, line {line}: {what}. Fix: correct that line."
            ) from error

    def where(self, place: Sequence[str]) -> str:
        """Return the file and the line of an entry."""
        line = self.line_of(place)
        return f"{self.path}, line {line}" if line else str(self.path)

    def refuse(self, place: Sequence[str], what: str, fix: str) -> ConfigError:
        return ConfigError(f"{self.where(place)}: {what}. Fix: {fix}.")

    def line_of(self, place: Sequence[str]) -> int | None:
        """Return the line on which an entry begins.

        The parser reports no lines, so it parses ever more of the file: the entry begins after the
        longest prefix that parses without it.
        """
        without = 0
        for count, parsed in self._parsed_prefixes():
            if value_at(parsed, place) is not None:
                return without + 1
            without = count
        return None

    def _line_of_fault(self, error: Exception) -> int:
        if found := re.search(r"\(at line (\d+), column \d+\)$", str(error)):
            return int(found[1])
        return max((count for count, _ in self._parsed_prefixes()), default=0) + 1

    def _parsed_prefixes(self) -> Iterator[tuple[int, object]]:
        """Yield n and the values of the first n lines, for each n where they parse."""
        import tomllib  # noqa: PLC0415 - as above

        lines = self.text.replace("\r\n", "\n").split("\n")
        for count in range(1, len(lines) + 1):
            with suppress(ValueError, RecursionError):
                yield count, tomllib.loads("\n".join(lines[:count]))


def load_config(environ: Mapping[str, str]) -> Config:
    """Read the config of the user with this environment; `ConfigError` if it is invalid."""
    return config_from(read_file(environ), environ)


def read_file(environ: Mapping[str, str]) -> ConfigFile:
    """Read the config file; a missing one is empty."""
    return _read(_home(environ) / FILE_NAME)


def config_from(file: ConfigFile, environ: Mapping[str, str]) -> Config:
    """Return the config in a file and an environment; `ConfigError` if it is invalid."""
    home = file.path.parent
    tables = _tables(file)
    storage, embedding, index, llm, agents, of_vault = (
        _table(file, [name], tables.get(name, {})) for name in _TABLES
    )
    vault = environ.get(VAULT_VARIABLE)
    settings = StorageSettings(
        home=str(home),
        backend=_backend(file, storage),
        vault_path=str(_absolute(vault, environ, VAULT_VARIABLE)) if vault else None,
        options=_options(file, storage, environ),
        where=file.where,
    )
    return Config(
        home,
        settings,
        _embedding(file, embedding, environ),
        _llm(file, llm, environ),
        _state_mode(file, tables.get(_STATE_MODE)),
        str(_index(file, index).get("provider", SQLITE)),
        _agents(file, agents, environ),
        _layout(file, storage, environ),
        _folder(file, storage),
        _user(file, tables.get(_USER)) or _login(environ),
        float(str(_index(file, index).get("check_seconds", 1.0))),
        _ignore(file, of_vault),
    )


def user_name(environ: Mapping[str, str]) -> str:
    """Return the user's name from the config, else the environment, else the system."""
    with suppress(ConfigError):  # `load_config` reports what is wrong with it
        file = read_file(environ)
        return _user(file, file.parse().get(_USER)) or _login(environ)
    return _login(environ)


def _user(file: ConfigFile, value: object) -> str:
    if value is None or (isinstance(value, str) and value):
        return value or ""
    raise file.refuse([_USER], f"{_USER} is {value!r}", "write a name in quotes")


def _login(environ: Mapping[str, str]) -> str:
    if found := environ.get("USER") or environ.get("LOGNAME"):
        return found
    try:
        return getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"


def _index(file: ConfigFile, table: Mapping[str, object]) -> Mapping[str, object]:
    values = _values(file, "index", {"provider": str, "check_seconds": float}, table)
    seconds = values.get("check_seconds", 0.0)
    if not isinstance(seconds, int | float) or not 0 <= seconds <= _MAX_CHECK_SECONDS:
        what = f"check_seconds is {seconds!a}"
        raise file.refuse(["index", "check_seconds"], what, f"use 0 to {_MAX_CHECK_SECONDS}")
    return values


def _home(environ: Mapping[str, str]) -> Path:
    given = environ.get(HOME_VARIABLE)
    if given:
        return _absolute(given, environ, HOME_VARIABLE)
    user_home = environ.get("HOME")
    if not user_home:
        raise ConfigError(
            "neither PERDURE_HOME nor HOME is set, so there is no place for Perdure's home. "
            "Fix: set PERDURE_HOME to a folder."
        )
    return _absolute(user_home, environ, "HOME") / ".perdure"


def _absolute(given: str, environ: Mapping[str, str], variable: str) -> Path:
    expanded = Path(_with_home(given, environ))
    if not expanded.is_absolute():
        raise ConfigError(
            f"{variable} in the environment is {given!a}, not an absolute path. "
            "Fix: start it with / or ~."
        )
    return expanded


def _with_home(given: str, environ: Mapping[str, str]) -> str:
    """Replace a leading `~` with the user's home."""
    if given == "~" or given.startswith("~/"):
        return environ.get("HOME", "~") + given[1:]
    return given


def _read(path: Path) -> ConfigFile:
    try:
        return ConfigFile(path, path.read_bytes().decode())
    except FileNotFoundError:
        return ConfigFile(path, "")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}, line {line}: not valid UTF-8. Fix: save the file as UTF-8."
        ) from error
    except OSError as error:
        raise ConfigError(
            f"{path} can't be read: {error.strerror}. Fix: make it a readable file."
        ) from error


def _tables(file: ConfigFile) -> dict[str, object]:
    tables = file.parse()
    for name in tables:
        if name not in {*_TABLES, _STATE_MODE, _USER}:
            known = ", ".join(f"[{each}]" for each in _TABLES)
            fix = f"use {known}, state_mode or user, or remove it"
            raise file.refuse([name], f"unknown key {name!a}", fix)
    return tables


def _state_mode(file: ConfigFile, value: object) -> str | None:
    if value is None or (isinstance(value, str) and value in STATE_MODES):
        return STATE_MODES[value] if value else None
    raise file.refuse([_STATE_MODE], f"unknown {_STATE_MODE} {value!r}", "use backend or local")


def _embedding(
    file: ConfigFile, table: Mapping[str, object], environ: Mapping[str, str]
) -> EmbeddingSettings:
    """Return the settings; the file names the variable that has the API key, never the key."""
    given = _values(file, "embedding", _keys(EmbeddingSettings), table)
    provider = str(given.get("provider", "auto"))
    variable = str(given.pop("api_key_variable", ""))
    if provider == "openai":
        for name in ("base_url", "model"):
            if not given.get(name):
                place = ["embedding", "provider"]
                raise file.refuse(place, f"openai lacks {name}", f"set {name} in [embedding]")
    if variable and not environ.get(variable):
        place = ["embedding", "api_key_variable"]
        raise file.refuse(place, f"{variable} is not set", "set it in the environment")
    return EmbeddingSettings(**given, api_key=environ.get(variable, ""))  # type: ignore[arg-type] # each was checked


def _llm(
    file: ConfigFile, table: Mapping[str, object], environ: Mapping[str, str]
) -> LanguageModelSettings:
    """Return the settings. A missing API key is an error when the model is called."""
    given = _values(file, "llm", _keys(LanguageModelSettings), table)
    provider = given.get("provider", "none")
    if provider not in {"none", *COMMAND_LINE} and "model" not in given:
        raise file.refuse(["llm", "provider"], f"{provider} lacks model", "set model in [llm]")
    for name in {"structured", "limit_name"} & set(given) if provider in COMMAND_LINE else ():
        raise file.refuse(["llm", name], f"{provider} has no {name}", "remove that line")
    if given.get("background") and provider == "none":
        what = "background is on, but there is no language model"
        raise file.refuse(["llm", "background"], what, "set provider and model, or remove it")
    key = environ.get(str(given.get("api_key_variable", "")), "")
    own = environ if provider in COMMAND_LINE else {}
    return LanguageModelSettings(**given, api_key=key, environ=own)  # type: ignore[arg-type] # each was checked


_SWITCHES = {"use": bool, "contribute": bool, "headless": bool}


def _agents(
    file: ConfigFile, table: Mapping[str, object], environ: Mapping[str, str]
) -> AgentSettings:
    """Return which sessions may use memory and contribute to it; globs may start with `~`."""
    rest = {name: value for name, value in table.items() if name not in {"exclude", "folders"}}
    exclude = table.get("exclude", [])
    if not isinstance(exclude, list) or not all(isinstance(each, str) and each for each in exclude):
        what = f"exclude is {exclude!r}, not a list of globs"
        raise file.refuse(["agents", "exclude"], what, 'write it as ["~/clients/**"]')
    listed = _table(file, ["agents", "folders"], table.get("folders", {}))
    rules = {glob: _table(file, ["agents", "folders", glob], listed[glob]) for glob in listed}
    folders = tuple(
        FolderRule(expand_home(glob, environ), **_values(file, "agents", _SWITCHES, rule))  # type: ignore[arg-type] # each was checked
        for glob, rule in rules.items()
    )
    switches = _values(file, "agents", {**_SWITCHES, "exclude": list, "folders": dict}, rest)
    globs = tuple(expand_home(each, environ) for each in exclude)
    return AgentSettings(**switches, exclude=globs, folders=folders)  # type: ignore[arg-type] # each was checked


def _keys(settings: type[EmbeddingSettings | LanguageModelSettings]) -> dict[str, type]:
    """Return the keys of a table and their types; the variable stands for the API key."""
    kinds = {each.name: (get_args(each.type) or (each.type,))[0] for each in fields(settings)}
    kinds.pop("environ", None)
    return {("api_key_variable" if name == "api_key" else name): kinds[name] for name in kinds}


def _values(
    file: ConfigFile, of: str, known: Mapping[str, type], table: Mapping[str, object]
) -> dict[str, object]:
    return {name: _value(file, [of, name], known, value) for name, value in table.items()}


def _value(
    file: ConfigFile, place: Sequence[str], known: Mapping[str, type], value: object
) -> object:
    """Return a value of a table if it is allowed there."""
    of, name = place
    if name not in known:
        fix = f"use {', '.join(known)}"
        raise file.refuse(place, f"unknown key {name!a} in [{of}]", fix)
    if not _is_a(known[name], value):
        what = _KINDS[known[name]]
        raise file.refuse(place, f"{name} is {value!r}, not {what}", f"make it {what}")
    choices = _CHOICES.get(of, {}).get(name)
    if choices is None or value in choices:
        return value
    fix = f"use {', '.join(choices)}"
    if name == "provider":
        group = _OFFERED[of]
        if value in offered(group):
            return value
        fix += f", or install a package that offers it in {group.value}"
    raise file.refuse(place, f"unknown {name} {value!r}", fix)


def _is_a(kind: type, value: object) -> bool:
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    if kind is str:
        return isinstance(value, str) and bool(value)
    if kind is int:
        return isinstance(value, int) and value > 0
    return isinstance(value, int | float)


def _backend(file: ConfigFile, storage: Mapping[str, object]) -> str | None:
    backend = storage.get("backend")
    if backend is None or (isinstance(backend, str) and backend):
        return backend
    choices = ", ".join(registry.protocols())
    what = f"backend is {backend!r}, not a name in quotes"
    raise file.refuse(["storage", "backend"], what, f"use one of {choices}")


def _layout(
    file: ConfigFile, storage: Mapping[str, object], environ: Mapping[str, str]
) -> str | None:
    layout = storage.get("layout")
    if layout is None or layout in LAYOUTS:
        given = layout or environ.get(LAYOUT_VARIABLE) or None
        if given is None or given in LAYOUTS:
            return None if given is None else str(given)
        raise ConfigError(
            f"{LAYOUT_VARIABLE} in the environment is {given!a}. Fix: use {' or '.join(LAYOUTS)}."
        )
    raise file.refuse(
        ["storage", "layout"], f"unknown layout {layout!r}", f"use {', '.join(LAYOUTS)}"
    )


def _folder(file: ConfigFile, storage: Mapping[str, object]) -> str:
    folder = storage.get("folder", MEMORY_FOLDER)
    if isinstance(folder, str) and all(map(is_key_segment, folder.split("/"))):
        return folder
    what = f"folder is {folder!r}, not the name of a folder in the vault"
    raise file.refuse(["storage", "folder"], what, f'write it as "{MEMORY_FOLDER}"')


def _ignore(file: ConfigFile, vault: Mapping[str, object]) -> tuple[str, ...]:
    rest = {name: value for name, value in vault.items() if name != "ignore"}
    _values(file, "vault", {"ignore": list}, rest)  # refuses any other key
    patterns = vault.get("ignore", [])
    if isinstance(patterns, list) and all(isinstance(each, str) for each in patterns):
        return tuple(patterns)
    what = f"ignore is {patterns!r}, not a list of patterns"
    raise file.refuse(["vault", "ignore"], what, 'write it as ["Archive/", "*.tmp.md"]')


def _options(
    file: ConfigFile, storage: Mapping[str, object], environ: Mapping[str, str]
) -> dict[str, dict[str, object]]:
    tables = {name: value for name, value in storage.items() if name not in _OF_STORAGE}
    for name in tables:
        if name not in registry:
            choices = ", ".join(registry.protocols())
            fix = f"use {', '.join(_OF_STORAGE)}, or a table for one of {choices}"
            raise file.refuse(["storage", name], f"unknown key {name!a} in [storage]", fix)
    return {
        name: {
            option: _with_home(value, environ) if isinstance(value, str) else value
            for option, value in _table(file, ["storage", name], table).items()
        }
        for name, table in tables.items()
    }


def _table(file: ConfigFile, place: list[str], value: object) -> dict[str, object]:
    if isinstance(value, dict):
        return value
    name = ".".join(place)
    raise file.refuse(place, f"{name} is {value!r}, not a table", f"write it as [{name}]")


def value_at(tables: object, place: Sequence[str]) -> object:
    """Return the value at a place in nested tables; None if there is none."""
    for name in place:
        tables = tables.get(name) if isinstance(tables, dict) else None
    return tables
