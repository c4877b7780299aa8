"""Real agents with a real memory: the rule at its action, the fix after its failure."""

import re

import pytest

from tests.clients.clients import Client, clients

pytestmark = pytest.mark.clients

RULE = "Never use npm in this project, use pnpm instead."
LINE = re.compile(r"Rule \(\d{4}-\d\d-\d\d\): Never use npm in this project")
MEND = "touch harbour.lock"
BUILD = """\
[ -e harbour.lock ] && echo built && exit 0
echo "error: the lock of the harbour is not there, process $$" >&2
exit 7
"""


@clients()
def test_a_rule_comes_with_the_call_that_breaks_it_and_not_with_others(client: Client) -> None:
    client.perdure("remember", RULE, "--kind", "rule")
    ran = client.run("Hello.", client.kind.shell("npm --version"), "Done.")

    assert ran.model.is_done, ran.output
    assert len(LINE.findall(ran.shown)) == 1
    assert not LINE.search(ran.model.turns[0].text)
    followed = client.run("Hello.", client.kind.shell("echo pnpm"), "Done.")
    assert not LINE.search(followed.shown)


@clients()
def test_a_rule_that_the_user_enforces_is_there_before_the_tool_runs(client: Client) -> None:
    client.perdure("remember", RULE, "--kind", "rule", "--enforce")
    file = client.project / "made"
    ran = client.run("Hello.", client.kind.shell(f"npm --version; touch {file}"), "I won't.")

    assert ran.model.is_done, ran.output
    assert LINE.search(ran.shown)
    assert not file.exists()


@clients()
def test_what_worked_after_a_failure_comes_when_it_fails_again(client: Client) -> None:
    shell, lock = client.kind.shell, client.project / "harbour.lock"
    build = client.project / "build.sh"
    build.write_text(BUILD)
    client.run("Build it.", shell("sh build.sh"), shell(MEND), shell("sh build.sh"), "Done.")
    lock.unlink()
    again = client.run("Build it once more.", shell("sh build.sh"), "Done.")

    assert "Seen before" in again.shown, again.output
    assert MEND in again.shown.partition("Seen before")[2]
