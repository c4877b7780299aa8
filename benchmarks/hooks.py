"""What the hooks of agents cost, beside a Python that imports two modules.

    python benchmarks/hooks.py [--nodes 1000 10000] [--rounds 21] [--check]

Processor time of whole processes as agents start them (`perdure hook EVENT`), taking turns, on a
memory of so many nodes of the project in the layout `notes`, words only. Byte code is compiled
before, as it is in an installed package. With --check the exit code says whether p95 of every hook
is under 150 ms on a machine where Python itself takes 21: under 7.1 times its median.
"""

import argparse
import compileall
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import perdure

GOAL, BARE = 150.0, 21.0
"""Milliseconds of a hook, where a bare Python takes so many: others may use the machine, so the
goal is how many times that it takes."""
NOTHING = "python -c 'import sqlite3, json'"
WORDS = (
    *("parser", "index", "cache", "build", "deploy", "schema", "route", "handler", "queue"),
    *("worker", "token", "config", "docker", "release", "branch", "vault", "memory", "lint"),
)
FAILED = "Exit code 1\nerror: cannot find module 'left-pad' in src/app.ts:12:3"
Event = tuple[str, Mapping[str, object]]


def fill(home: Path, project: Path, nodes: int) -> None:
    """Make a memory of so many rules and facts of one project, words only, one file for each."""
    (project / ".harness").mkdir(parents=True)
    (project / ".harness" / "project.json").write_text('{"slug": "project"}')
    home.mkdir()
    settings = '[embedding]\nprovider = "none"\n[storage]\nlayout = "notes"\n'
    (home / "config.toml").write_text(settings)
    with perdure.open(home=home, project=project) as memory:
        for number in range(nodes):
            one, two = WORDS[number % len(WORDS)], WORDS[number // 7 % len(WORDS)]
            rule = f"Never edit src/{one}/{two}{number}.py without the {one} checks."
            fact = f"The {one} of {two} number {number} is served by port {number}."
            text, category = (rule, "pattern") if number % 2 else (fact, "entity")
            memory.save(text, category=category, slug=f"note-{number}")
        memory.remember("Use pnpm instead of npm in this project.", kind="rule")


def events(project: Path, number: int) -> dict[str, Event]:
    """Return what an agent sends at each moment, in a session of its own."""
    said: dict[str, object] = {"session_id": f"s{number}", "cwd": str(project)}
    shell = {"tool_name": "Bash", "tool_use_id": "t1"}
    return {
        "session-start": ("session-start", {**said, "source": "startup"}),
        "prompt": ("user-prompt-submit", {**said, "prompt": "Install the packages with pnpm."}),
        "action, silent": ("pre-tool-use", {**said, **shell, "tool_input": {"command": "ls -la"}}),
        "action, a rule": ("pre-tool-use", {**said, **shell, "tool_input": {"command": "npm i"}}),
        "failure": (
            "post-tool-use",
            {
                **said,
                **shell,
                "hook_event_name": "PostToolUseFailure",
                "tool_input": {"command": "node app.js"},
                "error": FAILED,
            },
        ),
        "subagent": ("subagent-start", {**said, "agent_id": "a1", "agent_type": "Explore"}),
        "stop": ("stop", said),
    }


def processor_time(command: tuple[str, ...], environ: Mapping[str, str], given: object) -> float:
    """Return the milliseconds of a processor that a process takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(  # noqa: S603 - our own
        command,
        env=dict(environ),
        input=json.dumps(given).encode(),
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measured(home: Path, project: Path, rounds: int) -> dict[str, list[float]]:
    environ = {**os.environ, "PERDURE_HOME": str(home)}
    program = str(Path(sys.executable).with_name("perdure"))
    taken: dict[str, list[float]] = {NOTHING: []}
    for number in range(rounds):
        bare = (sys.executable, "-c", "import sqlite3, json")
        taken[NOTHING].append(processor_time(bare, environ, {}))
        for name, (event, given) in events(project, number).items():
            time = processor_time((program, "hook", event), environ, given)
            taken.setdefault(name, []).append(time)
    return {name: sorted(times) for name, times in taken.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=21, help="how often each is run; 21")
    parser.add_argument("--check", action="store_true", help="fail if a hook takes too long")
    options = parser.parse_args()
    compileall.compile_dir(str(Path(perdure.__file__).parent), quiet=2)
    worst = 0.0
    for nodes in options.nodes:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
            home, project = Path(place, "home"), Path(place, "project")
            fill(home, project, nodes)
            taken = measured(home, project, options.rounds)
        print(f"{nodes:,} nodes, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
        bare = taken[NOTHING][len(taken[NOTHING]) // 2]
        for name, times in taken.items():
            median, p95 = (times[int(share * (len(times) - 1))] for share in (0.5, 0.95))
            print(
                f"  {name:34} {median:6.1f} ms, p95 {p95:6.1f}; "
                f"{median / bare:5.1f} times bare Python, p95 {p95 / bare:5.1f}"
            )
            worst = max(worst, p95 / bare)
    return int(options.check and worst > GOAL / BARE)


if __name__ == "__main__":
    sys.exit(main())
