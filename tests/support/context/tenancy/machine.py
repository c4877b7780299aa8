"""Tenancy as a property: no call of any caller shows or changes what is out of reach."""

from collections.abc import Iterable
from typing import ClassVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

from perdure.testing.suite import examples as scaled
from tests.support.context.tenancy.calls import Ask, verbs_of
from tests.support.context.tenancy.node_verbs import NodeVerbs, RelationVerbs
from tests.support.context.tenancy.outbox_verbs import OutboxVerbs
from tests.support.context.tenancy.people import CASTS, WHERES, WHOS, Cast, Where, Who
from tests.support.context.tenancy.tenant_verbs import TenantVerbs
from tests.support.context.tenancy.world import OpenWorld


class _Verbs(NodeVerbs, RelationVerbs, OutboxVerbs, TenantVerbs):
    """All that can be asked for."""


VERBS = verbs_of(_Verbs)
"""Every verb that the machine asks for, as part and name, with the method that does."""
_DRAWN = [name for name, (_, weight) in VERBS.items() for _ in range(weight)]
_ROUNDS = 14
_SOME = [tuple(_DRAWN[first::_ROUNDS]) for first in range(_ROUNDS)]
"""What is asked for in a row, so that little time goes into drawing who asks."""


class TenancyMachine(_Verbs):
    """Lets people with ids that look alike ask for everything, everywhere.

    Subclass it, say how to open a world, and run it; `run_tenancy` does both.
    """

    verbs: ClassVar[tuple[str, ...]] = ()
    """Those that are asked for, if not all."""

    @initialize(cast=CASTS, missing=st.sets(st.integers(0, 33), max_size=9))
    def begin_with(self, cast: Cast, missing: set[int]) -> None:
        self.begin(cast, missing)
        self.check_all()

    # One rule for all verbs: Hypothesis leaves some rules out of each sequence.
    @rule(
        names=st.sampled_from(_SOME),
        who=WHOS,
        here=WHERES,
        there=WHERES,
        odd=st.integers(0, 63),
    )
    def a_caller_asks(
        self, names: tuple[str, ...], who: Who, here: Where, there: Where, odd: int
    ) -> None:
        home, names = who.account, self.verbs or names
        uris = here.uri(self.cast, home), there.uri(self.cast, home)
        for name in names:
            files = self.files
            if "." not in name or self.world.verb(name) is not None:
                getattr(self, VERBS[name][0])(Ask(who.asks(self.cast), *uris, odd))
            if self.files != files:
                self.check_all()


def run_tenancy(
    open_world: OpenWorld,
    *,
    verbs: Iterable[str] = (),
    examples: int = 100,
    steps: int = 40,
    shrink: bool = True,
) -> set[str]:
    """Run the machine over worlds; return the verbs that were asked for. `Leak` if one leaks."""
    asked: set[str] = set()

    class Machine(TenancyMachine):
        def teardown(self) -> None:
            asked.update(self.asked_for)
            super().teardown()

    Machine.open_world = staticmethod(open_world)
    Machine.verbs = tuple(verbs)
    phases = [Phase.explicit, Phase.generate] + [Phase.shrink] * shrink
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=scaled(examples),
            stateful_step_count=steps,
            deadline=None,
            database=None,
            phases=phases,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return asked
