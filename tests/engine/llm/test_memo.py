"""The same question is never paid for twice, by whoever and whenever."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE, Popen
from threading import Thread
from typing import Any

import pytest

from perdure.engine.llm.asking import Remembered, answers_folder
from perdure.engine.llm.contract import (
    Answer,
    Call,
    Completer,
    Message,
    Occasion,
    Refusal,
    Reply,
    Request,
    Tool,
    Truncation,
)
from perdure.engine.llm.ledger import Ledger, Metered, Outcome, Terms
from perdure.errors import (
    AnswerMalformedError,
    AnswerRefusedError,
    AnswerTruncatedError,
    ServiceUnreachableError,
)
from perdure.files import locked
from perdure.index.memo import MemoData, memo_folder
from perdure.testing.llm import Script, Scripted
from tests.engine.llm.ledgers import rows
from tests.engine.llm.services import Server, serving

OCCASION = Occasion("acme", "user:ana", "monday", "extract")
HELLO = Request((Message("user", "Hello."),))
TOOL = Tool("save", "Save.", {"type": "object"})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(str(tmp_path / "ledger.sqlite")) as ledger:
        yield ledger


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "answers"


@pytest.fixture
def script() -> Script:
    return Script()


class OfModel(Scripted):
    """Another model, or the same with other parameters."""

    def __init__(self, script: Script, **parameters: Any) -> None:  # noqa: ANN401 - JSON
        super().__init__(script)
        self._told = parameters

    @property
    def parameters(self) -> dict[str, Any]:
        return {**super().parameters, **self._told}


def ask(
    ledger: Ledger,
    folder: Path,
    inner: Completer,
    request: Request = HELLO,
    occasion: Occasion = OCCASION,
) -> Answer:
    metered = Metered(inner, ledger, Terms(), occasion)
    return Remembered(metered, folder, ledger, occasion).complete(request, seconds=60)


def test_the_same_question_is_asked_once(ledger: Ledger, folder: Path, script: Script) -> None:
    script.say(Answer("Hi.", (Call("save", '{"a":1}'),)))
    request = Request(HELLO.messages, (TOOL,))

    first = ask(ledger, folder, Scripted(script), request)
    again = ask(ledger, folder, Scripted(script), request)

    assert (
        (first.text, first.calls)
        == (again.text, again.calls)
        == ("Hi.", (Call("save", '{"a":1}'),))
    )
    assert len(script.asked) == 1
    assert [(row.outcome, row.cached) for row in rows(ledger)] == [
        (Outcome.ANSWERED, False),
        (Outcome.REMEMBERED, True),
    ]
    assert rows(ledger)[1].input_tokens == 0


@pytest.mark.parametrize(
    "other",
    [
        Request((Message("user", "Hello!"),)),
        Request((Message("system", "Be brief."), Message("user", "Hello."))),
        Request(HELLO.messages, (TOOL,)),
        Request(HELLO.messages, (TOOL,), "none"),
        Request(HELLO.messages, (Tool("save", "Save it.", {"type": "object"}),)),
        Request(HELLO.messages, schema={"type": "object"}),
        Request(HELLO.messages, schema={"type": "object", "title": "answer"}),
    ],
    ids=["prompt", "system", "tools", "choice", "description", "schema", "title"],
)
def test_another_question_is_another_answer(
    ledger: Ledger, folder: Path, script: Script, other: Request
) -> None:
    script.say(Answer("{}"), Answer('{"b": 1}'))

    ask(ledger, folder, Scripted(script))

    assert ask(ledger, folder, Scripted(script), other).text == '{"b": 1}'


@pytest.mark.parametrize("other", [{"model": "large"}, {"base_url": "b"}, {"structured": "text"}])
def test_another_model_is_asked_itself(
    ledger: Ledger, folder: Path, script: Script, other: dict[str, str]
) -> None:
    script.say(Answer("a"), Answer("b"))

    ask(ledger, folder, Scripted(script))

    assert ask(ledger, folder, OfModel(script, **other)).text == "b"


def test_others_do_not_learn_what_somebody_asked(
    ledger: Ledger, folder: Path, script: Script
) -> None:
    script.say(Answer("a"), Answer("b"), Answer("c"))
    bob, other = Occasion("acme", "user:bob", "s", "p"), Occasion("other", "user:ana", "s", "p")

    told = [
        ask(ledger, folder, Scripted(script), HELLO, who).text for who in (OCCASION, bob, other)
    ]

    assert told == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Refusal(), AnswerRefusedError),
        (Truncation(), AnswerTruncatedError),
        (Answer("oops"), AnswerMalformedError),
    ],
)
def test_what_is_no_answer_is_not_kept(
    ledger: Ledger, folder: Path, script: Script, reply: Reply, error: type[Exception]
) -> None:
    script.say(reply, Answer("{}"))
    request = Request(HELLO.messages, schema={"type": "object"})

    with pytest.raises(error):
        ask(ledger, folder, Scripted(script), request)

    assert ask(ledger, folder, Scripted(script), request).text == "{}"


def files_of(folder: Path) -> list[Path]:
    own = memo_folder(answers_folder(folder), OCCASION.account_id, OCCASION.owner_space)
    return sorted(path for path in own.rglob("*") if path.is_file() and path.stat().st_size)


def test_whichever_file_is_damaged_the_answer_is_right(
    ledger: Ledger, folder: Path, script: Script
) -> None:
    script.say(Answer("a"))
    ask(ledger, folder, Scripted(script))
    names = [path.relative_to(folder) for path in files_of(folder)]
    assert names

    for name in names:
        script.say(Answer("a"), Answer("a"))
        ask(ledger, folder, Scripted(script))
        path = folder / name
        if path.exists():
            path.write_bytes(bytes(len(path.read_bytes())))
        assert ask(ledger, folder, Scripted(script)).text == "a"


def test_an_answer_that_can_not_be_read_any_more_is_asked_for_again(
    ledger: Ledger, folder: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.say(Answer("a"), Answer("b"))
    with monkeypatch.context() as patched:
        patched.setattr("perdure.engine.llm.asking._encoded", lambda _: b"\xa0")
        ask(ledger, folder, Scripted(script))

    assert ask(ledger, folder, Scripted(script)).text == "b"
    assert ask(ledger, folder, Scripted(script)).text == "b"


ASKER = """
import sys
from pathlib import Path
from perdure.engine.llm.wire import OpenAICompatible
from tests.engine.llm.services import Service
from tests.engine.llm.test_memo import Ledger, ask
with Ledger(sys.argv[1]) as ledger:
    completer = OpenAICompatible(Service(sys.argv[2], "small"))
    print("ready", flush=True)
    sys.stdin.readline()
    print(ask(ledger, Path(sys.argv[3]), completer).text)
"""


def test_of_all_processes_that_ask_the_same_one_pays(tmp_path: Path, folder: Path) -> None:
    script = Script(*[Answer(str(number)) for number in range(3)])
    with serving(script) as server:
        askers = [_asker(server, tmp_path, folder) for _ in range(3)]
        for asker in askers:
            assert asker.stdout is not None
            assert asker.stdout.readline() == "ready\n"
        for asker in askers:
            assert asker.stdin is not None
            asker.stdin.write("go\n")
            asker.stdin.flush()
        said = [asker.communicate(timeout=60)[0] for asker in askers]

    assert said == ["0\n"] * 3
    assert len(script.asked) == 1


def _asker(server: Server, tmp_path: Path, folder: Path) -> "Popen[str]":
    given = (str(tmp_path / "ledger.sqlite"), f"{server.address}/v1", str(folder))
    return Popen([sys.executable, "-c", ASKER, *given], stdin=PIPE, stdout=PIPE, text=True)


def test_threads_that_ask_the_same_pay_once(ledger: Ledger, folder: Path, script: Script) -> None:
    script.say(*[Answer(str(number)) for number in range(6)])
    found: list[str] = []

    def one() -> None:
        found.append(ask(ledger, folder, Scripted(script)).text)

    threads = [Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == ["0"] * 6


# ---------------------------------------------------------------- tenants
def test_what_is_kept_of_a_tenant_can_be_forgotten(
    ledger: Ledger, folder: Path, script: Script
) -> None:
    bob = Occasion("acme", "user:bob", "s", "p")
    script.say(
        *[Answer(text) for text in ("rare of ana", "rare of bob", "new of ana", "new of bob")]
    )
    ask(ledger, folder, Scripted(script))
    ask(ledger, folder, Scripted(script), HELLO, bob)
    kept = MemoData(answers_folder(folder))

    assert kept.delete_by_owner_space("acme", "user:ana") == 1
    assert kept.delete_by_owner_space("acme", "user:ana") == 0
    assert b"rare of ana" not in b"".join(_bytes(folder))
    assert ask(ledger, folder, Scripted(script), HELLO, bob).text == "rare of bob"
    assert ask(ledger, folder, Scripted(script)).text == "new of ana"

    assert kept.delete_account_data("acme") == 1
    assert kept.delete_account_data("acme") == 0
    assert b"rare" not in b"".join(_bytes(folder))


def _bytes(folder: Path) -> Iterator[bytes]:
    yield from (path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_question_that_another_process_asks_is_not_waited_for_for_ever(
    folder: Path, ledger: Ledger
) -> None:
    with ExitStack() as others:
        for number in range(256):
            others.enter_context(locked(folder / "locks" / f"{number:02x}"))
        remembered = Remembered(Scripted(Script()), folder, ledger, OCCASION)

        with pytest.raises(ServiceUnreachableError, match="another process") as caught:
            remembered.complete(HELLO, seconds=0.05)

    assert (caught.value.passing, caught.value.billed) == (False, False)
