"""The history is whole, and the index is only a helper that can be made again."""

import shutil
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from examples.demo.finding import LIVES, TABLES
from examples.demo.stage import Stage
from perdure.app import open_context

QUESTIONS = (
    TABLES,
    LIVES,
    "When does a release of the phone app go out?",
    "database is locked",
    "Who is allergic, and to what?",
    "How are the tests run?",
    "What was decided about hosting?",
    "What happened at the yacht club?",
    "certificate",
    "How do I restore a backup?",
    "Which names do API fields have?",
    "regatta in June",
)
_BUDGET = 400
_PROOF = "profile.proof"
_STATEMENT = b"Mara lives in Kiel."
_CHANGED = b"Mara lives in Keel."


def show_verifying(stage: Stage) -> None:
    stage.sees(stage.type("history", "verify"), "ok: ", "every byte is as it was written")
    _show_damage(stage)
    if find_spec("cryptography") is None:
        stage.remark(
            "with `pip install '.[proofs]'` from a checkout, it would also be proved to others"
        )
        return
    proved = stage.type("history", "prove", "profile", "--output", _PROOF)
    key = proved.text.partition(" --key ")[2].split()[0]
    proved = stage.type("history", "prove", "--check", _PROOF, "--key", key)
    stage.sees(proved, "proven: ", "by the clock of its owner")


def _show_damage(stage: Stage) -> None:
    """Change one byte, see it found, and change it back."""
    segment = max(stage.folder.glob("histories/*/segment-*"), key=lambda file: file.stat().st_size)
    whole = segment.read_bytes()
    place = whole.index(_STATEMENT)
    stage.tell(f"one letter of {segment.name} is changed, from Kiel to Keel:")
    try:
        _write_at(segment, place, _CHANGED)
        damaged = stage.type("history", "verify", code=1)
    finally:
        _write_at(segment, place, _STATEMENT)
    stage.holds("the damage is named", is_so="damaged" in damaged.text)
    stage.holds("the letter is back", is_so=segment.read_bytes() == whole)


def _write_at(file: Path, place: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(data)


def show_rebuilding(stage: Stage) -> None:
    before = _answers(stage)
    (index,) = stage.folder.glob("histories/*/index")
    stage.tell(f"{len(QUESTIONS)} questions asked; the answers have sha256 {_digest(before)}")
    shutil.rmtree(index)
    stage.tell(f"$ rm -r {index.relative_to(stage.folder)}")
    stage.holds("the index is gone", is_so=not index.exists())
    stage.sees(stage.type("index", "rebuild"), "indexed ")
    stage.sees(stage.type("index", "verify"), "ok: ")
    after = _answers(stage)
    stage.tell(f"asked again: {len(after)} bytes of answers, sha256 {_digest(after)}")
    stage.holds("the rebuilt index gives the same answers, byte for byte", is_so=after == before)
    stage.tell("identical, byte for byte")


def _answers(stage: Stage) -> bytes:
    """Return all that recall answers: hits, scores, places to cite, and the text for a prompt."""
    with open_context(stage.environ) as context:
        results = [context.memory.recall(each, budget_tokens=_BUDGET) for each in QUESTIONS]
    return "\n".join(f"{each.query}\n{each.hits}\n{each.context}" for each in results).encode()


def _digest(answers: bytes) -> str:
    return f"{sha256(answers).hexdigest()[:16]}..."
