"""How well secrets and instructions to the agent are told in texts, and how long that takes.

    python -m benchmarks.validation [--misses] [--check]

Of the two halves, `tune` is what the rules were made with, and `held` what they are measured on.
With --misses what was wrong or missed is shown, of the tuned half only. With --check the exit code
says whether every goal was met.

Looking for secrets is compared with one pass of `re` over the same pages for the bare words that
the rules begin with, and with their sha256: processor time, the least of five, in one run.
"""

import argparse
import hashlib
import re
import time
from collections.abc import Callable
from pathlib import Path

from perdure.safety.injection import instructions_in
from perdure.safety.secrets import BEGINS, SecretPolicy, secrets_in
from perdure.safety.validation import clean
from tests.support.validate.scoring import Score, labelled, score

DATA = Path(__file__).parents[1] / "tests" / "data"
GOALS = {"secrets": (0.98, 0.95), "instructions": (0.95, 0.8)}
PASSES = 4
"""Looking for secrets may take as long as so many bare passes."""
PROSE = "Ana likes tea. She moved to Porto in May, and works on `deploy.py` with Bo.\n"


def measured(name: str, half: str) -> Score:
    texts = labelled(DATA / f"{name}.json", half)
    if name == "secrets":
        return score(secrets_in, texts, whole=True)
    return score(instructions_in, texts, whole=False)


def seconds(text: str) -> float:
    begun = time.perf_counter()
    clean(text, "content", SecretPolicy.MASK)
    return time.perf_counter() - begun


def megabytes_per_second(texts: list[str], look: Callable[[str], object]) -> float:
    least = float("inf")
    for _ in range(5):
        begun = time.process_time()
        for text in texts:
            look(text)
        least = min(least, time.process_time() - begun)
    return sum(len(text.encode()) for text in texts) / 1e6 / least


def scanning() -> float:
    """Print how fast secrets are looked for; return the slowest in bare passes."""
    most = 0.0
    root = Path(__file__).parents[1]
    words = re.compile("|".join(sorted({word for words in BEGINS.values() for word in words})))
    for name, files in {"documents": "docs/**/*.md", "code": "src/perdure/engine/**/*.py"}.items():
        texts = [file.read_text("utf-8") for file in sorted(root.glob(files))]
        ours = megabytes_per_second(texts, secrets_in)
        bare = megabytes_per_second(texts, lambda text: words.findall(text.lower()))
        hashed = megabytes_per_second(texts, lambda text: hashlib.sha256(text.encode()).digest())
        print(
            f"looking for secrets in {name}: {ours:.1f} MB/s; one pass of `re` for the words",
            end="",
        )
        print(f" {bare:.1f} MB/s ({bare / ours:.1f} times ours), sha256 {hashed:.0f} MB/s")
        most = max(most, bare / ours)
    return most


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--misses", action="store_true", help="show them, of the tuned half")
    parser.add_argument("--check", action="store_true", help="fail if a goal was not met")
    options = parser.parse_args()
    met = True
    for name, (precision, recall) in GOALS.items():
        print(f"{name}, goals {precision} and {recall}")
        print("         precision  recall  right  wrong  missed")
        for half in ("tune", "held"):
            found = measured(name, half)
            met &= half == "tune" or (found.precision >= precision and found.recall >= recall)
            print(
                f"  {half:6} {found.precision:9.3f} {found.recall:7.3f}"
                f" {found.right:6} {found.wrong:6} {found.missed:7}"
            )
            if options.misses and half == "tune":
                print(*(f"    {line}" for line in found.lines), sep="\n")
    short = min(seconds(PROSE) for _ in range(20))
    long = min(seconds(PROSE * 1_300) for _ in range(3))
    print(f"a text of {len(PROSE)} characters takes {1000 * short:.2f} ms to clean,")
    print(f"one of {len(PROSE) * 1_300:,} characters {1000 * long:.0f} ms")
    met &= scanning() <= PASSES
    return 0 if met or not options.check else 1


if __name__ == "__main__":
    raise SystemExit(main())
