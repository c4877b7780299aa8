"""Which test runs in which tier, and how hard a tier tries.

    test      while working: units, each suite on two stacks, a sentinel for each invariant
    check     what must be green to land: all stacks, bites, documents, searches at a tenth
    nightly   all of it at full size, with fresh seeds

Each tier also runs what the tiers before it run. `test` and `check` draw nothing at random: the
same commit gives the same verdict. `pytest --tier=test` picks one; without it, it is `check`.
"""

from collections.abc import Iterable, Mapping
from random import Random

from hypothesis import HealthCheck, settings

TIERS = ("test", "check", "nightly")

# ---------------------------------------------------------------- which stacks

STACKS: Mapping[str, tuple[str, ...]] = {
    # The memory backend, and what users run. All other classes of these files are in `check`.
    "tests/storage/test_conformance.py": ("TestMemory",),
    "tests/storage/test_recorded_conformance.py": ("TestRecordedDeviceLocal",),
    "tests/storage/test_write_all_default.py": ("TestInMemory",),
    "tests/context/test_nodes_conformance.py": (
        "TestNodesInMemory",
        "TestNodesAsNotesOnDeviceLocal",
        "TestRelationsInMemory",
        "TestRelationsAsNotesOnDeviceLocal",
    ),
    "tests/context/test_outbox_conformance.py": ("TestMemory", "TestSqlite"),
    "tests/index/test_index_conformance.py": ("TestMemory", "TestSqlite"),
    "tests/index/test_embedders.py": ("TestHashing", "TestMiniLM"),
    "tests/engine/learn/test_extract_conformance.py": (
        "TestProfile",
        "TestPreference",
        "TestEntityEvent",
        "TestProcedure",
    ),
    "tests/llm/test_llms.py": ("TestScripted", "TestOpenAICompatible"),
}
"""The classes of each suite that run in `test`."""

ELSEWHERE = frozenset({"vault"})
"""Parameters that say that a test runs on a stack of `check`; it runs on another one as well."""

# ---------------------------------------------------------------- which tests

CHECK = (
    # documents, conventions, measurements
    "tests/benchmarks",
    "tests/docs",
    "tests/examples",
    "tests/gates/test_imports.py::TestContract",
    "tests/net",
    "tests/requirements/test_requirements.py",
    "tests/requirements/test_tiers.py::test_every_place_that_has_a_tier_has_a_test",
    "tests/surfaces/test_conventions.py",
    "tests/typing",
    # broken twins in the files of what they are twins of
    "tests/artifacts/test_artifact_store_machine.py::test_a_broken_store_is_found_out",
    "tests/process/test_read_only.py::TestBites",
    # each test starts processes, and most wait for them
    "tests/index/test_models.py",
    "tests/process/test_shim.py",
    "tests/storage/test_commits_processes.py",
    "tests/storage/test_folder_links.py::test_a_link_flickering_beside_us_never_leads_out",
    "tests/storage/test_mutex.py::test_an_interrupt_at_any_moment_leaves_the_lock_free",
    "tests/storage/test_mutex.py::test_who_waits_for_the_lock_can_be_interrupted",
    "tests/storage/test_recorded_processes.py",
    "tests/surfaces/hooks/test_hooks.py::TestKeeping",
    "tests/surfaces/hooks/test_hooks.py::TestManyAtOnce",
    "tests/surfaces/hooks/test_hooks.py::TestRecalling",
    "tests/surfaces/mcp/test_living.py",
    "tests/surfaces/test_commit.py::TestStopping",
    "tests/surfaces/test_commit.py::TestTerminal",
    "tests/surfaces/test_completion.py",
    "tests/surfaces/test_first_session.py",
    "tests/surfaces/test_history_processes.py",
    "tests/surfaces/test_nodes_processes.py",
    "tests/surfaces/test_watch.py",
    "tests/surfaces/test_worker.py",
    "tests/surfaces/test_worker_builds.py",
    "tests/vault/test_git.py",
    "tests/vault/test_hostile.py",
    # texts that are long, many or odd, each in a time like its length
    "tests/artifacts/test_results.py::test_more_than_a_query_can_ask_for_are_found",
    "tests/transfer/test_import.py::test_half_characters_and_huge_messages_go_in",
    "tests/engine/learn/test_statements.py::test_a_page_is_read_in_a_time_like_its_length",
    "tests/engine/test_validity.py::test_who_asks_for_what_was_finds_it_first",
    "tests/safety/test_validation.py::TestValidation::test_any_text_is_clean_soon",
    "tests/surfaces/test_commit.py::TestFaults::test_a_message_may_be_very_long",
    "tests/index/test_minilm.py::test_vectors_are_those_of_the_published_weights",
    # one model after another, one moment after another
    "tests/engine/test_another_model.py",
    "tests/engine/test_past_copies.py",
    # every call of a protocol fails in turn
    "tests/context/test_crash.py",
    "tests/context/test_tenancy.py::test_nothing_out_of_reach_is_revealed_or_changed_on_disk",
    "tests/storage/test_commits.py::TestDying",
    "tests/storage/test_commits.py::TestFailing",
    "tests/storage/test_write_all_faults.py",
)
"""Folders, files, classes and tests that are in `check`, however quick some of them are."""

MARKS = {"search": "check", "net_recall": "nightly", "clients": "nightly"}
"""The tier of what has a mark."""

# ---------------------------------------------------------------- sentinels

INVARIANTS: Mapping[int, Mapping[str, tuple[str, ...]]] = {
    # A crash at each step of a write to the log, to the files, by a verb.
    1: {
        "tests/artifacts/test_crash.py": ("test_each_step_of_a_write_survives_a_power_cut",),
        "tests/context/test_crash.py": ("test_the_next_process_can_call_the_verb_again",),
        "tests/storage/test_commits.py": (
            "TestDying::test_a_commit_in_the_log_is_done_wherever_its_writer_dies",
        ),
    },
    # What is rebuilt equals what was there.
    2: {
        "tests/engine/test_past.py": ("test_every_derived_thing_can_be_thrown_away",),
        "tests/engine/test_upkeep.py": ("test_recall_makes_a_lost_index_anew_by_itself",),
    },
    # Recall as of a state equals recall then.
    3: {
        "tests/engine/test_past.py": (
            "test_recall_as_of_a_state_is_recall_on_a_memory_built_to_it",
        ),
    },
    # Processes that race for one text.
    4: {
        "tests/storage/test_recorded_conformance.py": (
            "TestRecordedDeviceLocal::test_processes_lose_no_conditional_write",
        ),
    },
    # Each verb as each role, a recall of every user, an agent of another user.
    5: {
        "tests/context/test_tenancy.py": ("test_each_role_does_what_it_may_and_no_more",),
        "tests/engine/test_recall_tenancy.py": (
            "test_on_a_busy_day_everybody_finds_what_is_theirs",
        ),
        "tests/surfaces/mcp/test_tools.py": (
            "test_an_agent_of_another_user_or_account_finds_nothing_of_it",
        ),
    },
    # What is replayed equals the original.
    6: {
        "tests/artifacts/test_archive.py": (
            "TestRestored::test_it_is_the_same_history",
            "TestRestored::test_its_segments_are_those_of_the_other",
        ),
    },
    # No path out of the seam, nothing written by the process seam.
    7: {
        "tests/gates/test_no_path_leak.py": (
            "test_no_verb_of_a_shipped_module_lets_a_path_through",
        ),
        "tests/process/test_read_only.py": ("TestNothingIsWritten::test_where_something_was",),
    },
    # The same twice is there once.
    8: {
        "tests/engine/saving/test_saving.py": (
            "test_the_same_session_twice_changes_nothing",
            "test_the_same_text_and_metadata_are_one_version",
        ),
    },
    # Deleted, archived or erased, it stays so.
    9: {
        "tests/engine/erase/test_erase.py": (
            "test_no_byte_of_it_is_left_and_all_else_is_as_it_was",
        ),
        "tests/engine/erase/test_forget.py": ("test_a_forgotten_statement_is_nowhere",),
        "tests/engine/saving/test_saving.py": (
            "test_what_its_owner_deleted_does_not_come_back_with_the_same_session",
            "test_an_archived_node_stays_archived",
        ),
    },
    10: {"tests/doors/test_doors.py": ("test_every_door_gives_the_same_answer",)},
}
"""The tests that hold each invariant of DESIGN: they are in `test`, whatever `CHECK` lists."""

SENTINELS = tuple(
    f"{path}::{name}"
    for files in INVARIANTS.values()
    for path, names in files.items()
    for name in names
)

# ---------------------------------------------------------------- how hard

_QUIET = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))
PROFILES = {
    "test": settings(_QUIET, max_examples=10, derandomize=True),
    "check": settings(_QUIET, max_examples=100, derandomize=True),
    "nightly": settings(_QUIET, max_examples=1000, print_blob=True),
}
"""What Hypothesis does in each tier; `perdure.testing.suite.examples` scales by it."""

SHARES = {"test": 100, "check": 10, "nightly": 1}
"""One in how many cases of a search is tried."""

_running = "check"
_fresh: int | None = None


def use(tier: str, fresh: int | None = None) -> None:
    """Let this process run `tier`; its seeds are made from `fresh` where that is not None."""
    global _running, _fresh
    _running, _fresh = tier, fresh
    settings.register_profile(tier, PROFILES[tier])
    settings.load_profile(tier)


def searched(cases: int) -> int:
    """Return how many of the cases of a search this tier tries."""
    return max(min(cases, 2), cases // SHARES[_running])


def seed(number: int) -> int:
    """Return the seed of a search: the same one each time, and another one each night."""
    return number if _fresh is None else Random(f"{_fresh} {number}").getrandbits(32)


# ---------------------------------------------------------------- the tier of a test


def tier_of(node: str, marks: Iterable[str] = (), parameters: Iterable[object] = ()) -> str:
    """Return the tier of a test, by its node id, the names of its marks and its parameters."""
    path, _, name = node.partition("[")[0].partition("::")
    found = [MARKS[mark] for mark in marks if mark in MARKS]
    if not ELSEWHERE.isdisjoint(each for each in parameters if isinstance(each, str)):
        found.append("check")
    elif is_below(node, SENTINELS):
        return "test"
    kind = name.partition("::")[0]
    if path in STACKS and kind.startswith("Test") and kind not in STACKS[path]:
        found.append("check")
    if is_whole(path) or is_below(node, CHECK):
        found.append("check")
    return max(found, key=TIERS.index, default="test")


def is_whole(path: str) -> bool:
    """Return whether all tests of a file are in `check` or later."""
    if any(test.startswith(f"{path}::") for test in SENTINELS):
        return False
    return path.endswith((".md", "_bites.py", "_bite.py")) or is_below(path, CHECK)


def runs_in(tier: str, node_tier: str) -> bool:
    return TIERS.index(node_tier) <= TIERS.index(tier)


def is_below(node: str, places: Iterable[str]) -> bool:
    """Return whether a test is in one of these folders, files or classes, or is one of them."""
    plain = node.partition("[")[0]
    return any(plain == place or plain.startswith((f"{place}/", f"{place}::")) for place in places)
