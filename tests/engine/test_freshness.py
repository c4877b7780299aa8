"""Statements are checked against the folder that a memory is opened in, at every moment alike."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import perdure
from perdure import AnchorStatus, Memory, SessionOrigin
from perdure.engine.briefing import Briefing
from perdure.engine.learn.evidence import support_of
from perdure.engine.prompts import relevant_lines
from tests.harness.conftest import git

TEXT = "The words of a line come from `parse` in src/a.py."
CODE = "def parse(text):\n    return text.split()\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text(CODE)
    (folder / "Makefile").write_text("test:\n\tpytest\n")
    git(folder, "init", "-q", "-b", "main")
    save(folder)
    return folder


def save(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "next")


@pytest.fixture
def memory(folder: Path) -> Iterator[Memory]:
    with opened(folder) as memory:
        yield memory


def opened(folder: Path) -> Memory:
    return perdure.open(home=folder.parent / "home", project=folder)


def lines(memory: Memory, prompt: str) -> list[str]:
    found = memory.recall(prompt, top_k=24)
    given = found.hits, found.words, lambda _: False
    return [each.text for each in relevant_lines(*given, check=partial(memory.checked, seconds=10))]


def brief(memory: Memory) -> Briefing:
    return memory.briefing(seconds=10)  # on however busy a machine


def on_branch(folder: Path, memory: Memory, text: str, kind: str = "decision") -> None:
    git(folder, "checkout", "-q", "-b", "feature")
    save(folder)
    memory.remember(text, kind=kind)
    git(folder, "checkout", "-q", "main")


def test_what_a_statement_names_is_stored_with_it(memory: Memory) -> None:
    node = memory.read(memory.remember(TEXT).uri)
    [support] = support_of(node).values()
    [anchors] = support.all_anchors

    assert (anchors.branch, len(anchors.commit)) == ("main", 40)
    [span] = anchors.spans
    assert (span.path, span.symbol, span.line) == ("src/a.py", "parse", 1)


def test_a_change_is_reported_wherever_a_statement_is_shown(memory: Memory, folder: Path) -> None:
    uri = memory.remember(TEXT).uri
    assert brief(memory).items[0].verdict.state == "fresh"
    (folder / "src" / "a.py").write_text(CODE.replace("split", "lower"))

    hedge = "(parse in src/a.py changed since 20"
    assert hedge in brief(memory).text
    assert any(hedge in each for each in lines(memory, "Where do the words of a line come from?"))
    [action] = memory.checked([(uri, None, TEXT)], seconds=10)
    assert action.state == "changed"
    assert memory.why(uri).statements[0].verdict == action
    assert memory.read(uri).content  # nothing is deleted


def test_what_names_only_what_is_gone_is_not_shown(memory: Memory, folder: Path) -> None:
    uri = memory.remember(TEXT).uri
    (folder / "src" / "a.py").unlink()
    save(folder)

    assert TEXT not in brief(memory).text
    assert lines(memory, "Where do the words of a line come from?") == []
    assert (
        memory.why(uri).statements[0].verdict == memory.checked([(uri, None, TEXT)], seconds=10)[0]
    )
    assert memory.recall("words of a line").hits


def test_a_statement_of_a_branch_is_shown_there_only(memory: Memory, folder: Path) -> None:
    on_branch(folder, memory, "We decided to keep the words in a trie.")
    on_branch_text = "keep the words in a trie"

    assert on_branch_text not in brief(memory).text
    git(folder, "checkout", "-q", "feature")
    assert on_branch_text in brief(memory).text
    git(folder, "checkout", "-q", "main")
    git(folder, "merge", "-q", "feature")
    assert on_branch_text in brief(memory).text


def test_a_rule_without_code_holds_on_every_branch(memory: Memory, folder: Path) -> None:
    on_branch(folder, memory, "Never push to main.", "rule")

    assert "Never push to main." in brief(memory).text


def test_stated_again_on_another_branch_it_holds_on_both(memory: Memory, folder: Path) -> None:
    text = "We decided to keep the words in a trie."
    on_branch(folder, memory, text)
    memory.remember(text, kind="decision")
    assert text in brief(memory).text
    git(folder, "checkout", "-q", "feature")

    assert text in brief(memory).text


@pytest.mark.parametrize("decision", ["accept", "reject"])
def test_what_a_gone_branch_left_is_offered_for_removal(
    memory: Memory, folder: Path, decision: str
) -> None:
    text = "We decided to keep the words in a trie."
    on_branch(folder, memory, text)
    assert memory.candidates() == ()
    git(folder, "branch", "-q", "-D", "feature")

    [offered] = memory.candidates()
    assert (offered.text, offered.reason) == (
        text,
        "the branch feature is gone and was not merged",
    )
    assert memory.read(offered.uri).content  # never by itself
    getattr(memory, decision)(offered.id)

    assert memory.candidates() == ()
    assert (text in brief(memory).text) is (decision == "accept")


def test_what_a_session_teaches_is_anchored_where_it_worked(tmp_path: Path, folder: Path) -> None:
    text = "We use `parse` in src/a.py to split words."
    messages = [{"role": "user", "content": f"Remember: {text}"}]
    commit = git(folder, "rev-parse", "HEAD")
    with perdure.open(home=tmp_path / "home", project="harbour") as elsewhere:
        origin = SessionOrigin(str(folder), "main", commit)
        done = elsewhere.commit_session(messages, session_id="s", origin=origin)
        found = [support_of(elsewhere.read(each.uri)) for each in done.plans if each.uri]

    anchors = [each.all_anchors for support in found for each in support.values()]
    assert [(each.branch, each.commit) for [each] in anchors] == [("main", commit)]
    assert [span.path for [each] in anchors for span in each.spans] == ["src/a.py"]


def test_a_sentence_of_a_session_goes_with_its_branch(memory: Memory, folder: Path) -> None:
    git(folder, "checkout", "-q", "-b", "feature")
    save(folder)
    text = "We decided to keep the words of each line in a trie for now."
    memory.commit_session([{"role": "user", "content": text}], session_id="s", extract=False)
    at = {"branch": "feature", "commit": git(folder, "rev-parse", "HEAD")}
    memory.write("ctx://local/sessions/s/messages", metadata=at, replace=True)
    memory.settle()
    there = [item.text for item in brief(memory).items]
    git(folder, "checkout", "-q", "main")

    assert text in there
    assert text not in [item.text for item in brief(memory).items]


def test_a_line_shares_more_with_a_prompt_than_filler(memory: Memory) -> None:
    memory.remember("Always use tabs for indentation.", kind="rule")

    assert not lines(memory, "Should we always use the endpoint?")
    assert lines(memory, "Should we always use tabs?")


def test_the_last_session_is_that_of_the_branch(memory: Memory, folder: Path) -> None:
    for branch, text in (("main", "Rename the parser."), ("feature", "Rename the trie.")):
        git(folder, "checkout", "-q", "-B", branch)
        save(folder)
        messages = [{"role": "user", "content": text}]
        memory.commit_session(messages, session_id=branch, extract=False)
        at = {"branch": branch, "commit": git(folder, "rev-parse", "HEAD")}
        memory.write(f"ctx://local/sessions/{branch}/messages", metadata=at, replace=True)
    memory.settle()
    assert brief(memory).last == "Rename the trie."
    git(folder, "checkout", "-q", "main")
    assert brief(memory).last == "Rename the parser."
    git(folder, "branch", "-q", "-D", "feature")

    assert brief(memory).last == "Rename the trie."


def test_outside_of_a_checkout_nothing_is_checked(folder: Path, memory: Memory) -> None:
    uri = memory.remember(TEXT).uri
    (folder / "src" / "a.py").unlink()
    with perdure.open(home=folder.parent / "home", project=memory.project) as by_name:
        assert TEXT in brief(by_name).text
        assert by_name.checked([(uri, None, TEXT)]) == (AnchorStatus(),)


def test_what_users_share_keeps_no_branch(memory: Memory) -> None:
    uri = memory.remember("Run make test before a push.", kind="rejected").uri
    shared = memory.remember("Run make test before each push.", kind="command").uri

    of = {each: json.dumps(dict(memory.read(each).metadata), default=str) for each in (uri, shared)}
    for each, text in of.items():
        assert ("anchors" in text) is ("/agents/" not in each)
