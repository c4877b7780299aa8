"""Public conversations with questions, in one shape. They are measured on, and never kept here."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Turn = tuple[str, int]
"""A session, and which message of it."""
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_KINDS = {
    1: "1 multi-hop",
    2: "2 temporal",
    3: "3 open-domain",
    4: "4 single-hop",
    5: "5 adversarial",
}


@dataclass(frozen=True, slots=True)
class Asked:
    question: str
    evidence: frozenset[Turn]
    kind: str
    corpus: str
    """The conversation that it is about."""


@dataclass(slots=True)
class Corpus:
    name: str
    sessions: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    """Messages as `commit_session` takes them, by session."""
    questions: list[Asked] = field(default_factory=list)

    def turns(self) -> Iterator[tuple[Turn, dict[str, str]]]:
        for session, messages in self.sessions.items():
            for number, message in enumerate(messages):
                yield (session, number), message


def locomo(path: Path, most: int | None = None) -> Corpus:
    """Read conversations between two people; each question names the turns that answer it.

    With `most`, read the first so many only.
    """
    corpus = Corpus("LoCoMo")
    for sample in json.loads(path.read_text())[:most]:
        turns = dict(_locomo_sessions(sample, corpus))
        for asked in sample["qa"]:
            named = _EVIDENCE.findall(" ".join(asked.get("evidence") or ()))
            found = [turns.get((int(session), int(turn))) for session, turn in named]
            if evidence := frozenset(turn for turn in found if turn is not None):
                kind = _KINDS[asked["category"]]
                corpus.questions.append(
                    Asked(asked["question"], evidence, kind, sample["sample_id"])
                )
    return corpus


def _locomo_sessions(
    sample: dict[str, Any], corpus: Corpus
) -> Iterator[tuple[tuple[int, int], Turn]]:
    conversation = sample["conversation"]
    for name, turns in conversation.items():
        if not re.fullmatch(r"session_\d+", name):
            continue
        session = f"{sample['sample_id']}-{name}"
        time = _time(conversation[f"{name}_date_time"], "%I:%M %p on %d %B, %Y")
        messages = corpus.sessions[session] = []
        for turn in turns:
            numbers = _EVIDENCE.fullmatch(turn["dia_id"])
            assert numbers  # noqa: S101 - that is how its turns are named
            yield (int(numbers[1]), int(numbers[2])), (session, len(messages))
            role = "user" if turn["speaker"] == conversation["speaker_a"] else "assistant"
            caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
            content = turn["text"] + caption
            messages.append(
                {"role": role, "content": content, "name": turn["speaker"], "time": time}
            )


def longmemeval(path: Path) -> Corpus:
    """Read sessions with an assistant, pooled from all questions; evidence is marked in them."""
    corpus = Corpus("LongMemEval")
    for asked in json.loads(path.read_text()):
        evidence: set[Turn] = set()
        told = zip(
            asked["haystack_session_ids"],
            asked["haystack_dates"],
            asked["haystack_sessions"],
            strict=True,
        )
        for session, date, turns in told:
            time = _time(date, "%Y/%m/%d (%a) %H:%M")
            corpus.sessions.setdefault(
                session,
                [{"role": t["role"], "content": t["content"], "time": time} for t in turns],
            )
            evidence |= {(session, at) for at, t in enumerate(turns) if t.get("has_answer")}
        if evidence and not asked["question_id"].endswith("_abs"):
            found = frozenset(evidence)
            corpus.questions.append(Asked(asked["question"], found, asked["question_type"], ""))
    return corpus


def _time(text: str, form: str) -> str:
    return datetime.strptime(text, form).replace(tzinfo=UTC).isoformat()
