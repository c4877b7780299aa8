"""How long an index takes to make, and to make again."""

import cProfile
import pstats
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from perdure.app import Context
from perdure.index.contract import Embedder
from recalling.memories import ACCOUNT, StandIn
from recalling.models import of_a_passage

_TOLD = 12


@dataclass(frozen=True, slots=True)
class Built:
    """Seconds that the parts of a build took."""

    first: float
    """With a stand-in for the model."""
    stand_in: float
    """What of it was the stand-in's."""
    passage: float
    """What a model takes for one passage, measured in between."""
    again: float
    """With vectors that are remembered."""

    def with_model(self, passages: int) -> float:
        """Return how long the first build would take with the model."""
        return self.first - self.stand_in + passages * self.passage


def built(context: Context, embedder: StandIn, model: Embedder | None) -> Built:
    spent = embedder.spent
    first = _seconds(context)
    stand_in, passage = embedder.spent - spent, of_a_passage(model) if model else 0.0
    return Built(first, stand_in, passage, _seconds(context))


def _seconds(context: Context) -> float:
    begun = time.perf_counter()
    context.indexes.configured.follower.rebuild(ACCOUNT)
    return time.perf_counter() - begun


def tell_what_dominates(context: Context) -> None:
    """Print which functions of ours take most of a rebuild, with all that they call."""
    profile = cProfile.Profile()
    profile.runcall(context.indexes.configured.follower.rebuild, ACCOUNT)
    print("  a rebuild, profiled (with all that is called, and own time):")
    for share, own, name in islice(_shares(profile), _TOLD):
        print(f"    {share:5.0%} {own:5.0%}  {name}")


def _shares(profile: cProfile.Profile) -> Iterator[tuple[float, float, str]]:
    stats = pstats.Stats(profile)
    by_time = sorted(stats.stats.items(), key=lambda item: -item[1][3])  # type: ignore[attr-defined] # typeshed knows it not
    total = by_time[0][1][3]
    for (file, line, name), (_, _, own, cumulated, _) in by_time:
        if "perdure" in file:
            where = Path(file).relative_to(Path(file).parents[1])
            yield cumulated / total, own / total, f"{where}:{line} {name}"
