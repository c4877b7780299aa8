"""Real agents: a private session gets nothing and leaves nothing, a headless run leaves nothing."""

import pytest

from tests.clients.clients import Client, clients
from tests.clients.models import Call

pytestmark = pytest.mark.clients

FACT = "The harbour project keeps its tides in PostgreSQL."
ASKED = "Where does the harbour project keep its tides?"
CODE_NAME = "bluewalrus"


@clients()
def test_nothing_is_given_to_a_private_session_and_nothing_is_stored(client: Client) -> None:
    client.run("private on", "It is.")
    client.perdure("remember", FACT)
    asked = f"{ASKED} Its code name is {CODE_NAME}."
    ran = client.run(asked, Call("remember", {"text": f"It is {CODE_NAME}."}), "Yes.", goes_on=True)

    assert FACT not in ran.model.turns[0].text
    assert "private" in ran.shown
    assert client.files_with(CODE_NAME) == []


@clients()
def test_private_words_of_a_prompt_are_stored_nowhere(client: Client) -> None:
    client.run(f"Rename it. <private>It is called {CODE_NAME} now.</private>", "I will rename it.")
    listed = client.perdure("list", "sessions")

    assert client.files_with(CODE_NAME) == []
    assert "Rename it" in listed


@clients("claude-code", "codex")
def test_a_run_without_a_person_leaves_nothing(client: Client) -> None:
    client.run("Please note it down.", Call("remember", {"text": FACT}), "Done.")
    client.configure("")
    ran = client.run(f"{ASKED} Is it {CODE_NAME}?", "In PostgreSQL.")

    assert FACT in ran.model.turns[0].text
    assert client.files_with(CODE_NAME) == []
