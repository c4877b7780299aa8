import importlib
from pathlib import Path

import pytest

from tests.requirements import Requirement, rules
from tests.requirements.collected import REPOSITORY, Held, every_test
from tests.tiers import runs_in

HERE = Path(__file__).parent

SEEDS = (
    "000_f565ee120a4b319e.txt",
    "001_cda92c1e62eb17e3.txt",
    "002_50d514758fec3578.txt",
    "003_dd82161db90e47a5.txt",
    "004_817598ab14e5a64d.txt",
)
MODULES = {
    path.stem: importlib.import_module(f"tests.requirements.{path.stem}")
    for path in sorted(HERE.glob("seed_*.py"))
}
SEED_OF: dict[str, str] = {name: module.SEED for name, module in MODULES.items()}
REQUIREMENTS_OF: dict[str, tuple[Requirement, ...]] = {
    module.SEED: module.REQUIREMENTS for module in MODULES.values()
}
REQUIREMENTS = tuple(each for found in REQUIREMENTS_OF.values() for each in found)


@pytest.fixture(scope="module")
def found(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Held]:
    """Return every test of the repository, however the present run was selected."""
    return every_test(pytestconfig, tmp_path_factory.mktemp("requirements"))


@pytest.fixture(scope="module")
def tests(found: dict[str, Held]) -> dict[str, tuple[str, ...]]:
    """Return what each test that must be green to land holds."""
    return {node: test.requirements for node, test in found.items() if runs_in("check", test.tier)}


def listed(message: str, offenders: list[str]) -> str:
    return "\n  ".join((f"{len(offenders)} {message}:", *offenders))


class TestSpecification:
    def test_every_requirement_that_is_not_deferred_has_a_test(
        self, tests: dict[str, tuple[str, ...]]
    ) -> None:
        offenders = rules.untested(REQUIREMENTS, tests)

        assert not offenders, listed("requirements have no test", offenders)

    def test_a_deferred_requirement_has_no_test(self, tests: dict[str, tuple[str, ...]]) -> None:
        offenders = rules.deferred_but_tested(REQUIREMENTS, tests)

        assert not offenders, listed("requirements are deferred, yet have a test", offenders)

    def test_no_test_names_an_unknown_requirement(self, tests: dict[str, tuple[str, ...]]) -> None:
        offenders = rules.unknown(REQUIREMENTS, tests)

        assert not offenders, listed("requirements named by tests are unknown", offenders)

    def test_ids_are_unique(self) -> None:
        offenders = rules.duplicated(REQUIREMENTS)

        assert not offenders, listed("ids are used more than once", offenders)

    def test_every_seed_has_its_module(self) -> None:
        offenders = rules.missing_seeds(SEEDS, SEED_OF)

        assert not offenders, listed("seeds have no module of their number", offenders)

    def test_every_module_names_a_seed(self) -> None:
        offenders = rules.unknown_seeds(SEEDS, SEED_OF)

        assert not offenders, listed("modules name an unknown seed", offenders)

    @pytest.mark.parametrize("seed", REQUIREMENTS_OF)
    def test_an_id_is_kebab_case_after_the_number_of_its_seed(self, seed: str) -> None:
        offenders = rules.misnamed(seed, REQUIREMENTS_OF[seed])

        assert not offenders, listed(f"ids do not fit {seed}", offenders)

    def test_every_requirement_says_what_it_asks_for(self) -> None:
        offenders = rules.without_behaviour(REQUIREMENTS)

        assert not offenders, listed("requirements say nothing", offenders)

    def test_every_deferral_says_why(self) -> None:
        offenders = rules.deferred_without_reason(REQUIREMENTS)

        assert not offenders, listed("requirements are deferred without a reason", offenders)

    def test_the_collection_does_not_depend_on_the_present_selection(
        self, tests: dict[str, tuple[str, ...]]
    ) -> None:
        path = Path(__file__).relative_to(REPOSITORY).as_posix()

        assert f"{path}::TestRules::test_untested_finds_a_requirement_without_a_test" in tests


BUILT = Requirement("000-built", "verbs", "It works.")
LATER = Requirement("000-later", "verbs", "It will work.", deferred="harness/ is not built yet")


class TestRules:
    """Each rule is given something wrong, and must find just that."""

    def test_untested_finds_a_requirement_without_a_test(self) -> None:
        assert rules.untested([BUILT, LATER], {"test_a": []}) == ["000-built"]

    def test_untested_accepts_a_requirement_with_a_test(self) -> None:
        assert rules.untested([BUILT, LATER], {"test_a": [], "test_b": ["000-built"]}) == []

    def test_deferred_but_tested_finds_a_deferral_that_is_over(self) -> None:
        tests = {"test_a": ["000-built", "000-later"]}

        assert rules.deferred_but_tested([BUILT, LATER], tests) == ["000-later"]

    def test_unknown_finds_a_misspelt_id_and_its_test(self) -> None:
        tests = {"test_a": ["000-built"], "test_b": ["000-bulit"]}

        assert rules.unknown([BUILT, LATER], tests) == ["000-bulit in test_b"]

    def test_duplicated_finds_an_id_that_was_used_before(self) -> None:
        again = Requirement("000-built", "errors", "It works differently.")

        assert rules.duplicated([BUILT, LATER, again]) == ["000-built"]

    def test_missing_seeds_finds_a_seed_without_a_module(self) -> None:
        assert rules.missing_seeds(["000_a.txt", "001_b.txt"], {"seed_000": "000_a.txt"}) == [
            "001_b.txt"
        ]

    def test_missing_seeds_finds_a_module_of_another_number(self) -> None:
        assert rules.missing_seeds(["000_a.txt"], {"seed_001": "000_a.txt"}) == ["000_a.txt"]

    def test_missing_seeds_accepts_a_module_of_the_seeds_number(self) -> None:
        assert rules.missing_seeds(["000_a.txt"], {"seed_000": "000_a.txt"}) == []

    def test_unknown_seeds_finds_a_module_whose_seed_does_not_exist(self) -> None:
        modules = {"seed_000": "000_a.txt", "seed_009": "009_z.txt"}

        assert rules.unknown_seeds(["000_a.txt"], modules) == ["seed_009"]

    @pytest.mark.parametrize(
        "wrong", ["001-built", "built", "000", "000-", "000_built", "000-Built", "000-built-"]
    )
    def test_misnamed_finds_an_id_of_the_wrong_form(self, wrong: str) -> None:
        offender = Requirement(wrong, "verbs", "It works.")

        assert rules.misnamed("000_a.txt", [BUILT, offender]) == [wrong]

    def test_without_behaviour_finds_a_blank_sentence(self) -> None:
        silent = Requirement("000-silent", "verbs", " ")

        assert rules.without_behaviour([BUILT, silent]) == ["000-silent"]

    def test_deferred_without_reason_finds_a_blank_reason(self) -> None:
        unexplained = Requirement("000-unexplained", "verbs", "It will work.", deferred=" ")

        assert rules.deferred_without_reason([BUILT, LATER, unexplained]) == ["000-unexplained"]
