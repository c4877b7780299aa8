"""The config says where it is wrong and how to mend it."""

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from perdure.config import Config, ConfigFile, LanguageModelSettings, load_config
from perdure.errors import ConfigError
from perdure.storage import StorageSelectionError, select_backend
from perdure.testing.requirement import requirement


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the place of the config file; there is none yet."""
    (tmp_path / ".perdure").mkdir()
    return tmp_path / ".perdure" / "config.toml"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


def refusal(environ: dict[str, str]) -> str:
    """Return the words in which the config, or an option in it, is refused."""
    with pytest.raises(ConfigError) as caught:
        select_backend(load_config(environ).storage)
    return str(caught.value)


class TestHome:
    def test_it_is_a_folder_in_the_users_home(self, environ: dict[str, str]) -> None:
        assert load_config(environ).home == Path(environ["HOME"], ".perdure")

    @requirement("001-device-local-root")
    def test_the_environment_can_name_another(
        self, environ: dict[str, str], tmp_path: Path
    ) -> None:
        environ["PERDURE_HOME"] = str(tmp_path / "elsewhere")
        config = load_config(environ)

        assert config.home == tmp_path / "elsewhere"
        assert config.storage.home == str(tmp_path / "elsewhere")

    @pytest.mark.parametrize(("given", "below"), [("~", "."), ("~/x", "x"), ("~/x/y", "x/y")])
    def test_a_tilde_is_the_users_home(
        self, environ: dict[str, str], tmp_path: Path, given: str, below: str
    ) -> None:
        assert load_config(environ | {"PERDURE_HOME": given}).home == tmp_path / below
        vault_path = load_config(environ | {"MEMORY_VAULT_PATH": given}).storage.vault_path
        assert vault_path == str(tmp_path / below)

    def test_an_empty_variable_counts_as_not_set(self, environ: dict[str, str]) -> None:
        environ["PERDURE_HOME"] = ""

        assert load_config(environ).home == Path(environ["HOME"], ".perdure")

    @pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "", "PERDURE_HOME": ""}])
    def test_no_home_at_all_is_refused(self, environ: dict[str, str]) -> None:
        with pytest.raises(ConfigError, match="Fix: set PERDURE_HOME"):
            load_config(environ)

    def test_a_home_of_its_own_needs_no_other(self, tmp_path: Path) -> None:
        assert load_config({"PERDURE_HOME": str(tmp_path)}).home == tmp_path

    @pytest.mark.parametrize("variable", ["HOME", "PERDURE_HOME", "MEMORY_VAULT_PATH"])
    @pytest.mark.parametrize("given", ["relative", "./here", "../up", "~someone", "~someone/x"])
    def test_a_relative_path_is_refused_by_its_variable(
        self, environ: dict[str, str], variable: str, given: str
    ) -> None:
        with pytest.raises(ConfigError, match=f"^{variable} .*absolute path. Fix: ") as caught:
            load_config(environ | {variable: given})

        assert repr(given) in str(caught.value)

    def test_a_tilde_without_a_home_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="PERDURE_HOME"):
            load_config({"PERDURE_HOME": "~/x"})


class TestVaultVariable:
    @requirement("001-select-environment-empty")
    def test_empty_counts_as_not_set(self, environ: dict[str, str]) -> None:
        settings = load_config(environ | {"MEMORY_VAULT_PATH": ""}).storage

        assert settings.vault_path is None
        assert settings.protocol == "device-local"

    @requirement("001-select-environment-vault")
    def test_a_path_selects_the_vault(self, environ: dict[str, str], tmp_path: Path) -> None:
        settings = load_config(environ | {"MEMORY_VAULT_PATH": str(tmp_path / "vault")}).storage

        assert settings.vault_path == str(tmp_path / "vault")
        assert settings.protocol == "vault"


class TestFile:
    def test_none_is_needed(self, environ: dict[str, str]) -> None:
        settings = load_config(environ).storage

        assert (settings.backend, dict(settings.options)) == (None, {})

    @pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "[storage]\n"])
    def test_an_empty_one_chooses_nothing(
        self, file: Path, environ: dict[str, str], text: str
    ) -> None:
        file.write_text(text, encoding="utf-8")

        assert load_config(environ).storage.protocol == "device-local"

    @requirement("001-select-explicit-backend")
    @pytest.mark.parametrize(
        "text",
        [
            "[storage]\nbackend = 'vault'\n[storage.vault]\npath = '/v'\n",
            "storage.backend = 'vault'\nstorage.vault.path = '/v'\n",
            "storage = { backend = 'vault', vault = { path = '/v' } }",
            "[storage.vault]\r\npath = '/v'\r\n[storage]\r\nbackend = 'vault'\r\n",
        ],
    )
    def test_the_backend_and_its_options_are_read(
        self, file: Path, environ: dict[str, str], text: str
    ) -> None:
        file.write_bytes(text.encode())
        settings = load_config(environ).storage

        assert settings.backend == settings.protocol == "vault"
        assert settings.options_for("vault") == {"path": "/v"}

    def test_what_was_read_can_not_be_changed(self, environ: dict[str, str]) -> None:
        config: Config = load_config(environ)
        with pytest.raises(FrozenInstanceError):
            config.home = Path("/")  # type: ignore[misc]
        with pytest.raises(FrozenInstanceError):
            config.storage.backend = "memory"  # type: ignore[misc]

    def test_reading_creates_nothing(self, environ: dict[str, str], tmp_path: Path) -> None:
        load_config(environ)

        assert list(tmp_path.iterdir()) == []

    @requirement("001-config-outside-vault")
    def test_it_is_never_read_from_the_vault(self, environ: dict[str, str], tmp_path: Path) -> None:
        vault = tmp_path / "vault"
        for folder in (vault, vault / ".perdure"):
            folder.mkdir()
            (folder / "config.toml").write_text("storage.backend = 'memory'", encoding="utf-8")

        settings = load_config(environ | {"MEMORY_VAULT_PATH": str(vault)}).storage

        assert settings.backend is None

    @requirement("001-config-outside-vault")
    def test_it_can_be_read_where_the_vault_is_missing(
        self, file: Path, environ: dict[str, str], tmp_path: Path
    ) -> None:
        path = tmp_path / "unmounted"
        file.write_text(f"storage.backend='vault'\nstorage.vault.path='{path}'", encoding="utf-8")

        assert load_config(environ).storage.options_for("vault") == {"path": str(path)}


# What never ends is told of where it begins, not at the end of the file.
UNREADABLE = {
    "[storage\n": 1,
    "[storage]\nbackend = \n": 2,
    "[storage]\nbackend = vault\n": 2,
    "[storage]\nbackend = 'vault\n\n[storage.vault]\n": 2,
    "[storage]\n\nbackend = 'vault'\nbackend = 'memory'\n": 4,
    "[storage]\n[storage.vault]\n\n[storage.vault]\n": 4,
    "[storage]\nbackend = '''\nvault\n": 2,
    "[storage]\nwhen = 2026-13-45\n": 2,
    "no table, just words\n": 1,
    "\ufeff[storage]\n": 1,
    "[storage]\r\n\r\nbackend = ?\r\n": 3,
    "# \u2028 is no line of its own\n[storage]\nbackend = '''\nvault\n": 3,
}


class TestUnreadable:
    @requirement("001-select-refuses-corrupt-config")
    @pytest.mark.parametrize(("text", "line"), UNREADABLE.items())
    def test_a_file_that_is_no_toml_is_refused_at_its_line(
        self, file: Path, environ: dict[str, str], text: str, line: int
    ) -> None:
        file.write_bytes(text.encode())
        told = refusal(environ)

        assert told.startswith((f"{file}, line {line}, column ", f"{file}, line {line}: "))
        assert "Fix: " in told

    @requirement("001-select-refuses-corrupt-config")
    @pytest.mark.parametrize(
        "text", ["x = " + "1" * 5000, "x = " + "[" * 5000], ids=["long number", "deep nesting"]
    )
    def test_a_file_that_python_can_not_take_is_refused_too(
        self, file: Path, environ: dict[str, str], text: str
    ) -> None:
        file.write_text(text, encoding="utf-8")

        assert refusal(environ).startswith(str(file))

    @pytest.mark.parametrize(
        ("data", "line"), [(b"\xff", 1), (b"[storage]\nbackend = 'caf\xe9'\n", 2), (b"\n\n\x80", 3)]
    )
    def test_a_file_that_is_no_utf_8_is_refused_at_its_line(
        self, file: Path, environ: dict[str, str], data: bytes, line: int
    ) -> None:
        file.write_bytes(data)
        told = refusal(environ)

        assert told.startswith(f"{file}, line {line}: ")
        assert "UTF-8" in told
        assert "Fix: " in told

    def test_a_folder_in_its_place_is_refused(self, file: Path, environ: dict[str, str]) -> None:
        file.mkdir()
        told = refusal(environ)

        assert str(file) in told
        assert "Is a directory" in told
        assert "Fix: " in told

    def test_a_home_that_is_a_file_is_refused(
        self, environ: dict[str, str], tmp_path: Path
    ) -> None:
        (tmp_path / "home").touch()
        told = refusal(environ | {"PERDURE_HOME": str(tmp_path / "home")})

        assert str(tmp_path / "home" / "config.toml") in told
        assert "Fix: " in told

    def test_a_link_that_leads_in_a_circle_is_refused(
        self, file: Path, environ: dict[str, str]
    ) -> None:
        file.symlink_to(file)

        assert str(file) in refusal(environ)


UNKNOWN = {
    "storge = 1\n": (1, "'storge'"),
    "\n\n[storge]\nbackend = 'vault'\n": (3, "'storge'"),
    "[storage]\n\n[storge.vault]\npath = '/v'\n": (3, "'storge'"),
    "storage.backend = 'vault'\nother.x = 1\n": (2, "'other'"),
    "[storage]\nbackned = 'vault'\n": (2, "'backned'"),
    "storage.backned = 'vault'\n": (1, "'backned'"),
    "[storage]\nbackend = 'vault'\n\n\n[storage.valut]\npath = '/v'\n": (5, "'valut'"),
    "[storage]\nbackend = 'vault'\nvalut.path = '/v'\n": (3, "'valut'"),
    "storage = { backend = 'vault', valut = { path = '/v' } }\n": (1, "'valut'"),
    "[storage]\nvault.path = '''\n/v\n'''\n\nvalut.path = '''\n/v\n'''\n": (6, "'valut'"),
    "# storge = 1\n[storage]\nvault.path = 'storge = 1'\n[storge]\n": (4, "'storge'"),
    "[storage]\r\n\r\nbackned = 'vault'\r\n": (3, "'backned'"),
    "# one\u2028two\u0085three\n[storage]\nbackned = 'vault'\n": (3, "'backned'"),
    "[storage]\nvault.path = '/one\u2028two'\nbackned = 'vault'\n": (3, "'backned'"),
}
MISTYPED = {
    "storage = 7\n": (1, "storage is 7, not a table"),
    "\nstorage = 'vault'\n": (2, "storage is 'vault', not a table"),
    "[[storage]]\nbackend = 'vault'\n": (1, "not a table"),
    "[storage]\nvault = '/v'\n": (2, "storage.vault is '/v', not a table"),
    "[storage]\n\nvault = [\n  '/v',\n]\n": (3, "not a table"),
    "[[storage.vault]]\npath = '/v'\n": (1, "storage.vault is [{'path': '/v'}], not a table"),
    "[storage]\nbackend = 3\n": (2, "backend is 3"),
    "[storage]\nbackend = true\n": (2, "backend is True"),
    "[storage]\nbackend = ''\n": (2, "backend is ''"),
    "[storage]\nbackend = ['vault']\n": (2, "backend is ['vault']"),
    "[storage]\nbackend = [\n  'vault',\n]\n": (2, "backend is ['vault']"),
    "[storage]\n\nbackend = '''\n'''\n": (3, "backend is ''"),
    "[storage.backend]\nname = 'vault'\n": (1, "backend is {'name': 'vault'}"),
    "[storage.vault]\npath = '/v'\n\n[storage]\nbackend = 1.5\n": (5, "backend is 1.5"),
    "storage.vault.path = '/v'\nstorage.backend = 3\n": (2, "backend is 3"),
    "storage = { vault = { path = '/v' }, backend = 3 }\n": (1, "backend is 3"),
    "[storage]\nvault.path = '''\nbackend = 5\n'''\nbackend = 2026-01-02\n": (5, "datetime.date"),
}
OPTIONS = {
    "storage.backend = 'vault'\n[storage.vault]\npaht = '/v'\n": (3, "'paht'"),
    "[storage]\nbackend = 'vault'\n\n[storage.vault]\n\npath = 3\n": (6, "is 3, not text"),
    "[storage]\nbackend = 'vault'\nvault.path = 'notes'\n": (3, "'notes', not an absolute path"),
    "storage = { backend = 'vault', vault = { path = false } }\n": (1, "is False, not text"),
    "storage.backend = 'vault'\nstorage.vault = { path = [\n  '/v' ] }\n": (2, "not text"),
    "[storage.vault]\npath = '/v'\npersonal = '''\nhere'''\n[storage]\nbackend = 'vault'": (
        3,
        "'personal' in [storage.vault]",
    ),
    "[storage]\nbackend = 'memory'\n\nmemory.size = 3\n": (4, "takes no options"),
    "[storage.device-local]\n\nroot = 'memory'\n": (3, "'memory', not an absolute path"),
    "[storage.device-local]\npath = '/v'\n": (2, "'path' in [storage.device-local]"),
}


class TestWrong:
    @pytest.mark.parametrize(("text", "expected"), UNKNOWN.items())
    def test_an_unknown_entry_is_refused_at_its_line(
        self, file: Path, environ: dict[str, str], text: str, expected: tuple[int, str]
    ) -> None:
        self._check(file, environ, text, expected)

    @requirement("001-select-refuses-non-string-backend")
    @pytest.mark.parametrize(("text", "expected"), MISTYPED.items())
    def test_an_entry_of_the_wrong_type_is_refused_at_its_line(
        self, file: Path, environ: dict[str, str], text: str, expected: tuple[int, str]
    ) -> None:
        self._check(file, environ, text, expected)

    @pytest.mark.parametrize(("text", "expected"), OPTIONS.items())
    def test_an_option_that_its_backend_refuses_is_refused_at_its_line(
        self, file: Path, environ: dict[str, str], text: str, expected: tuple[int, str]
    ) -> None:
        self._check(file, environ, text, expected)

    def _check(
        self, file: Path, environ: dict[str, str], text: str, expected: tuple[int, str]
    ) -> None:
        file.write_bytes(text.encode())
        line, what = expected
        told = refusal(environ)

        assert told.startswith(f"{file}, line {line}: ")
        assert what in told
        assert "Fix: " in told

    def test_a_wrong_name_is_answered_with_the_right_ones(
        self, file: Path, environ: dict[str, str]
    ) -> None:
        file.write_text("storage.valut.path = '/v'", encoding="utf-8")

        assert "device-local, memory, vault" in refusal(environ)

    def test_a_refusal_is_one_of_selection(self, file: Path, environ: dict[str, str]) -> None:
        file.write_text("storage = 7", encoding="utf-8")
        with pytest.raises(StorageSelectionError):
            load_config(environ)

    def test_the_options_of_a_backend_that_is_not_selected_are_left_alone(
        self, file: Path, environ: dict[str, str]
    ) -> None:
        file.write_text("storage.backend='memory'\nstorage.vault.x = 1", encoding="utf-8")

        assert select_backend(load_config(environ).storage).list is not None


class TestWhere:
    @pytest.mark.parametrize(
        ("place", "line"),
        [
            (["a"], 1),
            (["a", "b"], 1),
            (["a", "b", "c"], 1),
            (["a", "d"], 3),
            (["a", "d", "e"], 4),
            (["f"], 8),
            (["f", "g"], 9),
        ],
    )
    def test_an_entry_stands_where_it_begins(self, place: list[str], line: int) -> None:
        text = "a.b.c = 1\n\n[a.d]\ne = [\n  1,\n  2,\n]\n[f]\ng = 3\n"

        assert ConfigFile(Path("/x"), text).where(place) == f"/x, line {line}"

    def test_an_entry_that_is_not_there_stands_in_the_file(self) -> None:
        assert ConfigFile(Path("/x"), "a.b = 1").where(["a", "c"]) == "/x"
        assert ConfigFile(Path("/x"), "").where(["a"]) == "/x"


class TestLanguageModel:
    def test_nobody_is_asked_unless_the_owner_says_so(self, environ: dict[str, str]) -> None:
        assert load_config(environ).llm == LanguageModelSettings()
        assert LanguageModelSettings().provider == "none"

    def test_a_model_that_is_there_is_still_asked_for_nothing(
        self, file: Path, environ: dict[str, str]
    ) -> None:
        file.write_text('[llm]\nprovider = "openai"\nmodel = "small"\n')

        llm = load_config(environ).llm

        assert not llm.background

    def test_what_is_off_needs_no_model(self, file: Path, environ: dict[str, str]) -> None:
        file.write_text("[llm]\nbackground = false\n")

        assert load_config(environ).llm == LanguageModelSettings()

    def test_all_of_it_is_read(self, file: Path, environ: dict[str, str]) -> None:
        file.write_text(
            """[llm]
provider = "openai"
base_url = "http://localhost:11434/v1"
model = "small"
api_key_variable = "MY_KEY"
structured = "tool"
limit_name = "max_completion_tokens"
max_output_tokens = 7
tokens_per_day = 3
runs_per_day = 2
background = true
"""
        )

        llm = load_config(environ | {"MY_KEY": "k"}).llm

        assert llm == LanguageModelSettings(
            "openai",
            "http://localhost:11434/v1",
            "small",
            "MY_KEY",
            "k",
            "tool",
            "max_completion_tokens",
            7,
            3,
            background=True,
            runs_per_day=2,
        )
        assert "'k'" not in repr(llm)

    def test_a_key_that_is_not_set_stops_only_whoever_asks(
        self, file: Path, environ: dict[str, str]
    ) -> None:
        file.write_text(
            '[llm]\nprovider = "openai"\nmodel = "small"\napi_key_variable = "MY_KEY"\n'
        )

        assert load_config(environ).llm.api_key == ""

    @pytest.mark.parametrize(
        ("lines", "line", "told"),
        [
            ('provider = "cohere"', 2, "unknown provider 'cohere'"),
            ('provider = "openai"', 2, "openai lacks model"),
            ('api_key = "k"', 2, "unknown key 'api_key'"),
            ('structured = "somehow"', 2, "unknown structured"),
            ('limit_name = "max"', 2, "unknown limit_name"),
            ("model = 1", 2, "not a text"),
            ("max_output_tokens = 0", 2, "not a number"),
            ("tokens_per_day = 1.5", 2, "not a number"),
            ("tokens_per_day = true", 2, "not a number"),
            ("background = 1", 2, "not true or false"),
            ("background = true", 2, "background is on, but there is no language model"),
            ('provider = "none"\nbackground = true', 3, "set provider and model, or remove it"),
            ("extract = true", 2, "unknown key 'extract'"),
        ],
    )
    def test_what_is_wrong_is_refused_with_its_line(
        self, file: Path, environ: dict[str, str], lines: str, line: int, told: str
    ) -> None:
        file.write_text(f"[llm]\n{lines}\n")

        refused = refusal(environ)

        assert f"config.toml, line {line}: " in refused
        assert told in refused
        assert "Fix: " in refused
