"""Two hundred hooks at once on one store, while others save: nobody is refused, nothing is lost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import perdure
from tests.process.conftest import PROJECT, Here
from tests.tiers import searched

pytestmark = pytest.mark.search

HOOKS = {"device-local": searched(200), "vault": searched(40)}
SAVERS, NOTES = 4, 6

SAVING = """
import sys, perdure
home, who, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with perdure.open(home=home) as memory:
    for number in range(count):
        memory.save(
            f"Choice {number} of saver {who}.",
            category="decision",
            slug=f"choice-{who}-{number}",
            metadata={"project": "my-project"},
        )
"""


def started(here: Here, *command: str) -> "subprocess.Popen[str]":
    environ = {**here.machine.environ, "PATH": os.environ["PATH"]}
    return subprocess.Popen(
        (sys.executable, *command),
        env=environ,
        cwd=here.machine.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def descendants() -> set[int]:
    """Return the processes whose parent we are."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] != "Z":
            found.add(int(status.parent.name))
    return found


@pytest.mark.timeout(240)
def test_many_hooks_run_while_others_save(here: Here) -> None:
    here.save("The first choice.", slug="first", project=PROJECT)
    before = descendants()
    home = str(here.machine.home)
    savers = [
        started(here, "-c", SAVING, home, str(number), str(NOTES)) for number in range(SAVERS)
    ]
    asked = (("recall-here",), ("recall-here", "--query", "choice"), ("recall-here",))
    hooks = [
        started(here, "-m", "perdure.process", *asked[number % len(asked)])
        for number in range(HOOKS[here.machine.protocol])
    ]

    for hook in hooks:
        output, beside = hook.communicate(timeout=200)
        assert hook.returncode == 0, beside
        assert "locked" not in beside
        assert "Traceback" not in beside
        assert output == "" or output.startswith("What follows was remembered.")
        assert "The first choice." in output
    for saver in savers:
        _, beside = saver.communicate(timeout=200)
        assert (saver.returncode, beside) == (0, "")

    with perdure.open(home=here.machine.home) as memory:
        for who in range(SAVERS):
            for number in range(NOTES):
                uri = f"ctx://local/users/ana/memories/decision/choice-{who}-{number}"
                assert memory.read(uri).content == f"Choice {number} of saver {who}."
        assert memory.recall("choice").index_lag == 0
    output = here.run("recall-here", "--limit", "20000")[1]
    assert output.count("of saver") == SAVERS * NOTES
    assert descendants() <= before
