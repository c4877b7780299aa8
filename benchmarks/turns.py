"""One turn of a chatbot in each of eight threads at once, against one turn alone.

    python benchmarks/turns.py [--check]

A turn is a recall and an append of two messages to the thread's own session, on one open memory
that compares words. Rounds of one and of eight threads take turns; the median of each is printed,
by the clock and in seconds of CPU. Python runs one thread at a time: what eight turns take of the
clock beyond their CPU is waiting. With --check the exit code says whether the goal was met.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import perdure

THREADS, ROUNDS, MEMORIES = 8, 9, 20
GOAL = 3.0


def turn(memory: perdure.Memory, session: str, number: int) -> None:
    memory.recall("Which tea does Ana drink?")
    asked = {"role": "user", "content": f"Which tea goes with cake number {number}?"}
    answered = {"role": "assistant", "content": f"Oolong tea number {number}."}
    memory.append(session, [asked, answered])


def taken(memory: perdure.Memory, threads: int, number: int) -> tuple[float, float]:
    """Return the seconds until every thread had its turn, and those of CPU."""
    ready = threading.Barrier(threads + 1)

    def chat(session: str) -> None:
        ready.wait()
        turn(memory, session, number)

    chats = [threading.Thread(target=chat, args=(f"chat-{each}",)) for each in range(threads)]
    for each in chats:
        each.start()
    clock, cpu = time.perf_counter(), time.process_time()
    ready.wait()
    for each in chats:
        each.join()
    return time.perf_counter() - clock, time.process_time() - cpu


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true", help="fail if the goal is missed")
    options = parser.parse_args()
    rounds: dict[int, list[tuple[float, float]]] = {1: [], THREADS: []}
    with tempfile.TemporaryDirectory() as home:
        Path(home, "config.toml").write_text('[embedding]\nprovider = "none"\n', encoding="utf-8")
        with perdure.open(home=home) as memory:
            for number in range(MEMORIES):
                memory.save(f"Tea number {number}", category="note", slug=f"tea-{number}")
            for threads in rounds:
                taken(memory, threads, 0)
            for number in range(1, ROUNDS + 1):
                for threads, found in rounds.items():
                    found.append(taken(memory, threads, number))
    medians = {
        threads: [statistics.median(each) for each in zip(*found, strict=True)]
        for threads, found in rounds.items()
    }
    for threads, (clock, cpu) in medians.items():
        print(f"{threads} threads: {clock * 1e3:7.1f} ms, {cpu * 1e3:7.1f} ms of CPU")
    times = medians[THREADS][0] / medians[1][0]
    print(f"{THREADS} turns at once take {times:.1f} times one turn; goal: at most {GOAL:g}")
    return int(options.check and times > GOAL)


if __name__ == "__main__":
    sys.exit(main())
