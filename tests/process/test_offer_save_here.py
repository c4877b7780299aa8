"""What could be saved from here, on each backend; nothing is."""

import pytest

import perdure
from perdure.process import offer_save_here, recall_here
from perdure.testing.requirement import requirement
from tests.harness.conftest import named_project
from tests.process.conftest import PROJECT, Here

CANDIDATE = {"kind": "decision", "slug": "database", "body": "We chose SQLite.", "confidence": 0.9}


class TestOffer:
    @requirement("002-offer-returns-enriched", "002-offer-adds-project", "002-offer-adds-target")
    def test_it_is_the_candidate_with_project_and_target(self, here: Here) -> None:
        (offered,) = offer_save_here(here.context, CANDIDATE)

        assert offered == {
            **CANDIDATE,
            "project": PROJECT,
            "target": "ctx://local/users/ana/memories/decision/database",
        }

    @requirement("002-offer-adds-target")
    def test_the_target_is_where_a_save_puts_it(self, here: Here) -> None:
        (offered,) = offer_save_here(here.context, CANDIDATE)

        saved = here.save("We chose SQLite.", slug="database", project=str(offered["project"]))

        assert saved == offered["target"]
        assert "We chose SQLite." in recall_here(here.context)

    @requirement("002-offer-adds-target")
    @pytest.mark.parametrize(
        "candidate",
        [
            {"body": "x"},
            {"kind": "decision"},
            {"kind": "A B", "slug": "x"},
            {"kind": 1, "slug": 2},
            {"kind": "decision", "slug": "../x"},
            {"kind": "", "slug": ""},
        ],
    )
    def test_what_does_not_say_enough_has_no_target(
        self, here: Here, candidate: dict[str, object]
    ) -> None:
        (offered,) = offer_save_here(here.context, candidate)

        assert offered["target"] is None

    def test_a_profile_has_no_slug(self, here: Here) -> None:
        (offered,) = offer_save_here(here.context, {"kind": "profile", "body": "x"})

        assert offered["target"] == "ctx://local/users/ana/memories/profile"

    @requirement("002-offer-passes-phase")
    def test_a_phase_is_passed_on_and_none_is_invented(self, here: Here) -> None:
        (offered,) = offer_save_here({**here.context, "phase": "nonsense"}, CANDIDATE)
        assert offered["phase"] == "nonsense"

        (offered,) = offer_save_here(here.context, CANDIDATE)
        assert "phase" not in offered

    @requirement("002-offer-copies")
    def test_the_candidate_stays_as_it_was(self, here: Here) -> None:
        candidate = dict(CANDIDATE)

        (offered,) = offer_save_here({**here.context, "phase": "plan"}, candidate)
        offered["body"] = "something else"

        assert candidate == CANDIDATE

    @requirement("002-offer-keeps-fields", "002-offer-never-judges")
    @pytest.mark.parametrize(
        "odd",
        [{"anything": object()}, {"body": ""}, {"confidence": -5}, {"body": "ignore all of it"}],
    )
    def test_every_field_is_passed_on_unchecked(self, here: Here, odd: dict[str, object]) -> None:
        (offered,) = offer_save_here(here.context, odd)

        assert {name: offered[name] for name in odd} == odd

    @requirement("002-offer-wraps-non-dict")
    @pytest.mark.parametrize("candidate", ["a text", 7, ["a", "list"], ("a", "tuple")])
    def test_what_is_no_dict_is_a_body(self, here: Here, candidate: object) -> None:
        (offered,) = offer_save_here(here.context, candidate)

        assert offered["body"] == candidate
        assert offered["project"] == PROJECT

    @requirement("002-context-none", "002-context-cwd-default")
    def test_without_a_context_it_is_where_the_process_works(
        self, here: Here, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(here.machine.root)

        (offered,) = offer_save_here(None, CANDIDATE)

        assert offered["project"] == PROJECT

    @requirement("002-context-cwd")
    def test_the_folder_names_the_project(self, here: Here) -> None:
        other = named_project(here.machine.place / "Other Project", "other-project")

        (offered,) = offer_save_here({"cwd": other}, CANDIDATE)

        assert offered["project"] == "other-project"


class TestNothing:
    @requirement("002-offer-absent-empty")
    def test_without_a_memory_there_is_none(self, here: Here) -> None:
        here.take_away()

        assert offer_save_here(here.context, CANDIDATE) == []

    @requirement("002-offer-no-project-empty")
    def test_without_a_project_there_is_none(self, here: Here) -> None:
        nowhere = {"cwd": str(here.machine.place / "nowhere")}
        assert offer_save_here(nowhere, CANDIDATE) == []

        here.machine.mark("project.json", "nonsense")
        assert offer_save_here(here.context, CANDIDATE) == []

    @requirement("002-offer-empty-candidate")
    @pytest.mark.parametrize("candidate", [None, {}, "", "  \n", [], 0])
    def test_without_a_candidate_there_is_none(self, here: Here, candidate: object) -> None:
        assert offer_save_here(here.context, candidate) == []


@requirement("002-offer-never-persists", "002-saving-stays-elsewhere")
def test_to_offer_saves_nothing_and_to_save_is_another_call(here: Here) -> None:
    here.save("Something else.", slug="else", project=PROJECT)
    before = here.machine.everything()

    (offered,) = offer_save_here(here.context, CANDIDATE)

    assert here.machine.everything() == before
    with perdure.open(home=here.machine.home) as memory:
        with pytest.raises(FileNotFoundError):
            memory.read(str(offered["target"]))
        memory.save(str(offered["body"]), category="decision", slug="database")
        assert memory.read(str(offered["target"])).content == "We chose SQLite."
