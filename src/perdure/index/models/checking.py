"""Whether a graph that was built computes what the model does."""

from itertools import combinations

from perdure.errors import InstallError
from perdure.index.models.runtime import Runtime

_SENTENCES = (
    "The plumber repaired the kitchen sink on Tuesday.",
    "A tradesman came to mend a leaking tap.",
    "She prefers tabs over spaces when she writes code.",
    "Which indentation does she like?",
)
_EXPECTED = (0.256, 0.046, 0.018, -0.055, -0.044, 0.526)
"""How near each is to each later one, by the weights before they are rounded."""
_TOLERANCE = 0.03


def check_graph(runtime: Runtime) -> None:
    """Compare how near known sentences are with what is known; `InstallError` if it differs."""
    vectors = [runtime.embed(sentence) for sentence in _SENTENCES]
    near = [float(one @ other) for one, other in combinations(vectors, 2)]
    worst = max(abs(a - b) for a, b in zip(near, _EXPECTED, strict=True))
    if not worst <= _TOLERANCE:  # also if it is no number
        raise InstallError(
            f"the model that was built is wrong: sentences are {worst:.2f} off from where they "
            "should be. Fix: install a current onnxruntime, then try again."
        )
