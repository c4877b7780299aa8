"""What must hold between the requirements and the tests: each rule returns its offenders."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tests.requirements import Requirement

Requirements = Sequence[Requirement]
Tests = Mapping[str, Iterable[str]]


def untested(requirements: Requirements, tests: Tests) -> list[str]:
    """Return the ids of requirements that are not deferred and that no test holds."""
    held = _held(tests)
    return [each.id for each in requirements if each.deferred is None and each.id not in held]


def deferred_but_tested(requirements: Requirements, tests: Tests) -> list[str]:
    """Return the ids of deferred requirements that a test holds all the same."""
    held = _held(tests)
    return [each.id for each in requirements if each.deferred is not None and each.id in held]


def unknown(requirements: Requirements, tests: Tests) -> list[str]:
    """Return the ids that tests name but that are no requirements, each with its test."""
    known = {each.id for each in requirements}
    return [f"{id_} in {test}" for test, ids in tests.items() for id_ in ids if id_ not in known]


def duplicated(requirements: Requirements) -> list[str]:
    """Return the ids that more than one requirement has."""
    counts = Counter(each.id for each in requirements)
    return [id_ for id_, count in counts.items() if count > 1]


def missing_seeds(seeds: Iterable[str], modules: Mapping[str, str]) -> list[str]:
    """Return the seeds without a module of the same number; `modules` maps module to seed."""
    return [seed for seed in seeds if modules.get(f"seed_{_number(seed)}") != seed]


def unknown_seeds(seeds: Iterable[str], modules: Mapping[str, str]) -> list[str]:
    """Return the modules whose seed is none of `seeds`; `modules` maps module to seed."""
    known = set(seeds)
    return [module for module, seed in modules.items() if seed not in known]


def misnamed(seed: str, requirements: Requirements) -> list[str]:
    """Return the ids that are not kebab-case after the number of their seed."""
    form = re.compile(rf"{_number(seed)}(-[a-z0-9]+)+")
    return [each.id for each in requirements if form.fullmatch(each.id) is None]


def without_behaviour(requirements: Requirements) -> list[str]:
    """Return the ids of requirements that say nothing."""
    return [each.id for each in requirements if not each.behaviour.strip()]


def deferred_without_reason(requirements: Requirements) -> list[str]:
    """Return the ids of requirements that are deferred and do not say why."""
    return [
        each.id for each in requirements if each.deferred is not None and not each.deferred.strip()
    ]


def _held(tests: Tests) -> set[str]:
    return {id_ for ids in tests.values() for id_ in ids}


def _number(seed: str) -> str:
    return seed.partition("_")[0]
