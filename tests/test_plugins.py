"""An installed package offers an implementation by an entry point, and the config names it."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure.app import open_context
from perdure.app.providers import reopen_embedder
from perdure.config import load_config
from perdure.engine.indexing.indexes import stored_settings
from perdure.errors import ConfigError, PluginError
from perdure.index.contract import Embedder, NodeIndex
from perdure.llm.contract import Completer
from perdure.plugins import PluginGroup, create, offered
from perdure.transfer.contract import Format
from tests.support.packages import Install, installing
from tests.surfaces.nodes import objects, one, perdure, refusal
from tests.surfaces.nodes import stdout_of as told

BACKEND = """
from perdure.storage.device_local import DeviceLocalBackend

class Acme(DeviceLocalBackend):
    pass
"""

EMBEDDER = """
from perdure.index.hashing_embedder import HashingEmbedder

class Acme(HashingEmbedder):
    def __init__(self, settings):
        super().__init__(settings.dimension)
        self.settings = settings
"""

INDEX = """
from perdure.testing.index.reference import MemoryIndex

OPEN = {}
SEARCHES = []

class Acme(MemoryIndex):
    def search_by_text(self, *given, **more):
        SEARCHES.append(given)
        return super().search_by_text(*given, **more)

    def match(self, *given):
        SEARCHES.append(given)
        return super().match(*given)

def open_index(folder):
    return OPEN.setdefault(folder, Acme())
"""

LLM = """
from perdure.llm.contract import Answer

class Acme:
    def __init__(self, settings):
        self.max_output_tokens = settings.max_output_tokens
        self.model = settings.model

    def complete(self, request, *, seconds):
        return Answer('{"who": "Ana"}')
"""

IMPORTER = """
from perdure.transfer.contract import StatementItem

class Acme:
    name = "acme"
    kind = "memories"

    def detect(self, source):
        return bool(source.with_suffix(".acme"))

    def items(self, source):
        yield StatementItem(
            file="a.acme", where="line 1", source="acme", source_id="1",
            content="Ana likes tea.", category="preference",
        )
"""

SOURCES = {
    PluginGroup.BACKEND: BACKEND,
    PluginGroup.INDEX: INDEX,
    PluginGroup.EMBEDDER: EMBEDDER,
    PluginGroup.LLM: LLM,
    PluginGroup.IMPORTER: IMPORTER,
}
SETTINGS = {
    PluginGroup.EMBEDDER: '[embedding]\nprovider = "acme"\ndimension = 64\n',
    PluginGroup.INDEX: '[embedding]\nprovider = "none"\n[index]\nprovider = "acme"\n',
    PluginGroup.LLM: '[llm]\nprovider = "acme"\nmodel = "small"\n',
}

KINDS: dict[PluginGroup, type] = {
    PluginGroup.EMBEDDER: Embedder,
    PluginGroup.INDEX: NodeIndex,
    PluginGroup.LLM: Completer,
    PluginGroup.IMPORTER: Format,
}


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    with installing(tmp_path, monkeypatch) as install:
        yield install


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Become Ana, who has nothing yet; return the path of her config file."""
    for name in ("PERDURE_HOME", "MEMORY_VAULT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USER", "ana")
    file = tmp_path / "home" / ".perdure" / "config.toml"
    file.parent.mkdir(parents=True)
    return file


def install_acme(install: Install, group: PluginGroup, source: str | None = None) -> None:
    target = "open_index" if group is PluginGroup.INDEX else "Acme"
    module = SOURCES[group] if source is None else source
    install("acme", {"acme": f"acme:{target}"}, group=group.value, acme=module)


@pytest.mark.parametrize("group", PluginGroup)
def test_a_name_is_offered_by_the_package_that_is_installed(
    install: Install, group: PluginGroup
) -> None:
    assert "acme" not in offered(group)
    install_acme(install, group)

    assert [each for each in PluginGroup if "acme" in offered(each)] == [group]
    assert "acme" not in sys.modules


def test_a_backend_keeps_memories(install: Install, config: Path) -> None:
    install_acme(install, PluginGroup.BACKEND)
    config.write_text('[storage]\nbackend = "acme"\n')
    told("write", "preference/tea", "Ana likes green tea.")

    assert "green tea" in told("recall", "tea")
    assert one("status")["storage"]["backend"] == "acme"  # type: ignore[index]


def test_an_embedder_makes_the_vectors(install: Install, config: Path) -> None:
    install_acme(install, PluginGroup.EMBEDDER)
    config.write_text(SETTINGS[PluginGroup.EMBEDDER])
    told("write", "preference/tea", "Ana likes green tea.")

    with open_context(os.environ) as context:
        result = context.memory.recall("green tea")
        embedder = context.indexes.embedder

    assert result.semantic
    assert type(embedder) is sys.modules["acme"].Acme
    assert vars(embedder)["settings"] == load_config(os.environ).embedding


def test_an_installed_embedder_is_opened_again_with_the_settings_of_its_index(
    install: Install, config: Path
) -> None:
    install_acme(install, PluginGroup.EMBEDDER)
    config.write_text(SETTINGS[PluginGroup.EMBEDDER])
    told("write", "preference/tea", "Ana likes green tea.")
    told("recall", "tea")

    (stored,) = config.parent.rglob("embedder.json")

    again = reopen_embedder(stored_settings(stored.parent), load_config(os.environ))
    assert type(again) is sys.modules["acme"].Acme
    assert again.dimension == 64


def test_an_index_answers_now_and_as_of_the_past(install: Install, config: Path) -> None:
    install_acme(install, PluginGroup.INDEX)
    config.write_text(SETTINGS[PluginGroup.INDEX])
    told("write", "preference/tea", "Ana likes green tea.")
    with open_context(os.environ) as context:
        position = context.recorded.history.position()
    told("write", "preference/coffee", "Ana likes black coffee.")

    now = objects("recall", "coffee")[0]["hits"]
    with open_context(os.environ) as context:
        state = context.recorded.history.state_at("9999-01-01")
        past = context.memory.recall("coffee", at=type(state)(state.snapshot, position))
        same = context.memory.recall("coffee", at=state)

    acme = sys.modules["acme"]
    assert [hit["uri"] for hit in now] == ["ctx://local/users/ana/memories/preference/coffee"]  # type: ignore[attr-defined]
    assert past.hits == ()
    assert [hit.uri for hit in same.hits] == [hit["uri"] for hit in now]  # type: ignore[attr-defined]
    assert acme.SEARCHES
    assert not list(config.parent.rglob("index/**/*.sqlite"))
    assert not list(config.parent.rglob("past/**/*.sqlite"))


def test_an_installed_index_can_be_listed_rebuilt_and_forgotten(
    install: Install, config: Path
) -> None:
    install_acme(install, PluginGroup.INDEX)
    config.write_text(SETTINGS[PluginGroup.INDEX])
    told("write", "preference/tea", "Ana likes green tea.")
    told("index", "rebuild")

    assert one("status")["index"]["places"] == 1  # type: ignore[index]
    assert told("index", "verify").startswith("ok: ")
    told("forget", "preference/tea", "--erase", "--yes")
    assert objects("recall", "tea")[0]["hits"] == []


def test_what_an_installed_index_failed_to_index_is_retried(install: Install, config: Path) -> None:
    install_acme(install, PluginGroup.INDEX)
    config.write_text(SETTINGS[PluginGroup.INDEX])
    told("write", "preference/tea", "Ana likes green tea.")
    uri = "ctx://local/users/ana/memories/preference/tea"
    with open_context(os.environ) as context:
        context.outbox.fail({uri: ("user:ana", "poisoned")}, "local", 1)
        failed = context.outbox.list_failed("local")
        assert [(uri, event.last_error) for uri, event in failed] == [(uri, "poisoned")]
    (table,) = config.parent.rglob("index/*/local.sqlite")
    table.write_bytes(b"garbage" * 1000)

    assert [hit["uri"] for hit in objects("recall", "tea")[0]["hits"]] == [uri]  # type: ignore[attr-defined]
    assert one("status")["outbox"]["waiting"] == 0  # type: ignore[index]


def test_the_index_of_a_package_that_is_gone_is_refused_until_it_is_pruned(
    tmp_path: Path, config: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch, installing(tmp_path, patch) as install:
        install_acme(install, PluginGroup.INDEX)
        config.write_text(SETTINGS[PluginGroup.INDEX])
        told("write", "preference/tea", "Ana likes green tea.")
        told("recall", "tea")
    with pytest.raises(ConfigError, match=r"unknown provider 'acme'.*install a package"):
        load_config(os.environ)

    config.write_text('[embedding]\nprovider = "none"\n')
    assert len(objects("recall", "tea")[0]["hits"]) == 1  # type: ignore[arg-type]
    refused = refusal("forget", "preference/tea", "--erase", "--yes")
    assert isinstance(refused, PluginError)
    assert "`perdure index prune`" in str(refused)
    assert "green tea" in told("read", "preference/tea")
    told("index", "prune")
    assert [each.name for each in config.parent.rglob("*+acme")] == []
    told("forget", "preference/tea", "--erase", "--yes")
    assert objects("recall", "tea")[0]["hits"] == []


def test_a_language_model_answers_within_the_budget(install: Install, config: Path) -> None:
    install_acme(install, PluginGroup.LLM)
    config.write_text(SETTINGS[PluginGroup.LLM])
    schema: dict[str, Any] = {"type": "object", "properties": {"who": {"type": "string"}}}

    with open_context(os.environ) as context:
        llm = context.language_model
        assert llm is not None
        assert llm.complete_json("Who?", schema) == {"who": "Ana"}

    assert '"calls":1' in perdure("cost", "--json").stdout.replace(" ", "")


@pytest.mark.parametrize("named", [True, False])
def test_an_importer_reads_files(
    install: Install, config: Path, tmp_path: Path, *, named: bool
) -> None:
    install_acme(install, PluginGroup.IMPORTER)
    file = tmp_path / "export" / "a.acme"
    file.parent.mkdir()
    file.write_text("tea")

    answer = one("import", str(file.parent), *(("--format", "acme") if named else ()))

    assert answer["format"] == "acme"
    assert "Ana likes tea." in told("recall", "tea")


def test_a_format_that_nobody_offers_is_refused(config: Path, tmp_path: Path) -> None:
    done = perdure("import", str(tmp_path), "--format", "acme")

    assert done.exit_code == 2
    assert "'acme' is not one of 'chatgpt'" in done.stderr


@pytest.mark.parametrize("group", SETTINGS)
def test_a_provider_that_nobody_offers_is_refused_where_it_is_named(
    config: Path, group: PluginGroup
) -> None:
    config.write_text(SETTINGS[group])

    with pytest.raises(ConfigError, match=rf"line \d: unknown provider .*'acme'.*{group.value}"):
        load_config(os.environ)


@pytest.mark.parametrize("group", [*SETTINGS, PluginGroup.IMPORTER])
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise OSError('no licence')", "OSError: no licence"),
        ("", "AttributeError"),
        ("Acme = open_index = 7", "TypeError: 7 is not a class or a function"),
        ("Acme = open_index = lambda *given: object()", "lacks what"),
        ("def Acme(*given): raise SystemExit(3)\nopen_index = Acme", "SystemExit: 3"),
    ],
)
def test_an_implementation_that_cannot_be_used_is_refused(
    install: Install, config: Path, group: PluginGroup, source: str, message: str
) -> None:
    install_acme(install, group, source)
    with pytest.raises(PluginError, match=r"'acme' is installed, but acme:.*Fix: ") as caught:
        create(group, "acme", KINDS[group], "given")

    assert message in str(caught.value)


def test_the_product_refuses_a_provider_of_the_wrong_type(install: Install, config: Path) -> None:
    told("write", "preference/tea", "Ana likes green tea.")
    install_acme(install, PluginGroup.EMBEDDER, "Acme = dict.fromkeys")
    config.write_text(SETTINGS[PluginGroup.EMBEDDER])

    assert isinstance(refusal("recall", "tea"), PluginError)


def test_a_name_that_nobody_offers_names_the_group() -> None:
    with pytest.raises(PluginError, match=r"no installed package offers the LLM 'acme'.*llms"):
        create(PluginGroup.LLM, "acme", object)
