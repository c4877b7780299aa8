from dataclasses import FrozenInstanceError
from itertools import combinations
from pathlib import Path
from typing import get_type_hints

import pytest

from perdure.storage import DerivedMaintenance, Locator, Tier, TierLayout
from perdure.storage.in_memory import MemoryBackend
from perdure.testing.requirement import requirement
from perdure.testing.storage import MirrorMaintenance

A, B = Locator("a"), Locator("b")


class TestTier:
    @requirement("000-tier-three-members")
    def test_there_are_three(self) -> None:
        assert [tier.name for tier in Tier] == ["SOURCE", "SHARED_ABSTRACTS", "LOCAL_INDEX"]

    @requirement("000-tier-source", "000-tier-shared-abstracts", "000-tier-local-index")
    @pytest.mark.parametrize(
        ("tier", "value", "syncs", "derived"),
        [
            (Tier.SOURCE, "source", True, False),
            (Tier.SHARED_ABSTRACTS, "shared-abstracts", True, True),
            (Tier.LOCAL_INDEX, "local-index", False, True),
        ],
    )
    def test_each_has_its_policy(
        self, tier: Tier, value: str, *, syncs: bool, derived: bool
    ) -> None:
        assert tier.value == value
        assert tier is Tier(value)
        assert (tier.syncs, tier.derived) == (syncs, derived)

    @requirement("000-tier-only-local-index-never-syncs")
    def test_only_the_local_index_never_syncs(self) -> None:
        assert [tier for tier in Tier if not tier.syncs] == [Tier.LOCAL_INDEX]

    @requirement("000-tier-only-source-not-derived")
    def test_only_the_source_is_not_derived(self) -> None:
        assert [tier for tier in Tier if not tier.derived] == [Tier.SOURCE]


class TestLayout:
    @requirement("000-layout-frozen")
    def test_it_can_not_be_changed(self) -> None:
        with pytest.raises(FrozenInstanceError):
            TierLayout().source = A  # type: ignore[misc]

    @requirement(
        "000-layout-default-source",
        "000-layout-default-shared-abstracts",
        "000-layout-default-local-index",
    )
    def test_each_tier_has_its_name_for_a_root_by_default(self) -> None:
        layout = TierLayout()

        assert layout.source == Locator("source")
        assert layout.shared_abstracts == Locator("shared-abstracts")
        assert layout.local_index == Locator("local-index")
        assert [layout.root_for(tier).key for tier in Tier] == [tier.value for tier in Tier]

    @requirement("000-layout-roots-overridable", "000-layout-root-for")
    def test_each_root_can_be_another(self) -> None:
        layout = TierLayout(Locator("notes"), Locator("x/shared"), Locator("x/index"))

        assert layout.root_for(Tier.SOURCE) == Locator("notes")
        assert layout.root_for(Tier.SHARED_ABSTRACTS) == Locator("x/shared")
        assert layout.root_for(Tier.LOCAL_INDEX) == Locator("x/index")
        assert TierLayout(local_index=A).root_for(Tier.LOCAL_INDEX) == A
        assert TierLayout(local_index=A).root_for(Tier.SOURCE) == Locator("source")

    @requirement("000-layout-never-sync-root")
    def test_the_root_that_never_syncs_is_that_of_the_local_index(self) -> None:
        assert TierLayout().never_sync_root == Locator("local-index")
        assert TierLayout(local_index=A).never_sync_root == A

    @requirement("000-layout-roots-distinct")
    @pytest.mark.parametrize("pair", list(combinations(range(3), 2)))
    def test_two_tiers_never_share_a_root(self, pair: tuple[int, int]) -> None:
        roots = [A, B, Locator("c")]
        roots[pair[1]] = Locator(f"./{roots[pair[0]]}/")

        with pytest.raises(ValueError, match="Fix: "):
            TierLayout(*roots)

    @pytest.mark.parametrize(
        ("source", "shared", "index"),
        [
            *(("a/source", "a", "b"), ("a/source", "b", "a"), ("a", "b", "b/c"), ("a", "b/c", "b")),
            *(("a", "", "b"), ("a", "b", "")),
        ],
    )
    def test_rebuilding_one_tier_can_not_wipe_another(
        self, source: str, shared: str, index: str
    ) -> None:
        with pytest.raises(ValueError, match="would hold"):
            TierLayout(Locator(source), Locator(shared), Locator(index))

    def test_a_derived_tier_may_lie_in_the_folder_of_the_source(self) -> None:
        layout = TierLayout(source=Locator(""))

        assert layout.source.contains(layout.shared_abstracts)

    @requirement("000-layout-creates-nothing")
    def test_placing_the_tiers_creates_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        layout = TierLayout()
        backend = MemoryBackend()

        assert [backend.exists(layout.root_for(tier)) for tier in Tier] == [False] * 3
        assert list(tmp_path.iterdir()) == []


class TestDerivedMaintenance:
    @requirement("000-maintenance-not-instantiable")
    def test_it_is_only_a_promise(self) -> None:
        with pytest.raises(TypeError, match="abstract"):
            DerivedMaintenance()  # type: ignore[abstract]

    @requirement("000-maintenance-two-operations")
    def test_it_promises_two_operations(self) -> None:
        assert DerivedMaintenance.__abstractmethods__ == {"reindex", "changed_since"}

    @requirement("000-maintenance-reindex-signature", "000-maintenance-changed-since-signature")
    def test_its_operations_take_a_tier_or_a_time(self) -> None:
        assert get_type_hints(DerivedMaintenance.reindex) == {"tier": Tier, "return": type(None)}
        assert get_type_hints(DerivedMaintenance.changed_since) == {
            "mtime": float,
            "return": list[Locator],
        }

    def test_a_backend_has_nobody_who_maintains_it_unless_it_says_so(self) -> None:
        class Maintained(MemoryBackend):
            @property
            def derived_maintenance(self) -> DerivedMaintenance:
                return MirrorMaintenance(self, TierLayout())

        assert MemoryBackend().derived_maintenance is None
        assert isinstance(Maintained().derived_maintenance, DerivedMaintenance)
