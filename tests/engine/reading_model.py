"""A model that reads the record of a prompt as a model would, and finds what the rules find."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from perdure.engine.learn.evidence import evidence_of
from perdure.engine.learn.extractors import extractors
from perdure.engine.llm.contract import LLM, Reply
from perdure.model import CandidateMemory, RequestContext
from perdure.testing.llm import Script, scripted_llm
from perdure.testing.llm.scripted import says_json

ITEM: dict[str, Any] = {
    "message": 0,
    "quote": "I live in Porto",
    "category": "profile",
    "content": "Ana lives in Porto.",
    "about": "",
    "topic": "home",
    "confidence": 0.9,
    "date": "",
    "who": [],
    "also": [],
}


def item(**more: object) -> dict[str, Any]:
    return {**ITEM, **more}


def says_items(*items: Mapping[str, Any]) -> Reply:
    return says_json({"items": [dict(each) for each in items]})


def record_in(prompt: str) -> list[dict[str, Any]]:
    """Return the messages that a prompt shows, as whoever keeps to its marks reads them."""
    lines = prompt.split("\n")
    first = next(at for at, line in enumerate(lines) if line.startswith("===== record "))
    end = lines[first].replace("record", "end of record", 1)
    return [json.loads(line) for line in lines[first + 1 : lines.index(end)]]


class Silent(Script):
    """Finds nothing."""

    def reply_to(self, asked: Mapping[str, Any]) -> Reply:
        self.asked.append(dict(asked))
        return says_items()


class Reader(Script):
    """Answers each question about a record with what the rules find in it."""

    def reply_to(self, asked: Mapping[str, Any]) -> Reply:
        self.asked.append(dict(asked))
        record = record_in(asked["messages"][-1]["content"])
        return says_items(*self.found(record))

    def found(self, record: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        owners = [each.get("name", "") for each in record if each.get("owner")]
        ctx = RequestContext("acme", next(filter(None, owners), "nobody"))
        messages = [_message(each) for each in record]
        numbers = [each["message"] for each in record]
        return [
            _item(each, numbers) for rule in extractors() for each in rule.extract(messages, ctx)
        ]


def reading_llm(script: Script | None = None) -> LLM:
    return scripted_llm(script or Reader())


def _message(line: Mapping[str, Any]) -> dict[str, object]:
    said = {"role": line["role"], "content": line["text"], "name": line.get("name", "")}
    if "time" not in line:
        return said
    time = datetime.strptime(line["time"], "%A %Y-%m-%d %H:%M").replace(tzinfo=UTC)
    return said | {"time": time}


def _item(found: CandidateMemory, numbers: Sequence[int]) -> dict[str, Any]:
    first, *more = evidence_of(found)
    is_event = found.category == "event"
    return item(
        message=numbers[first.message],
        quote=first.quote,
        category=found.category,
        content=found.content,
        about=found.slug.replace("-", " "),
        topic=str(found.metadata.get("topic", "")),
        confidence=found.confidence,
        date=found.when.isoformat() if is_event and found.when else "",
        who=list(found.who),
        also=[{"message": numbers[each.message], "quote": each.quote} for each in more],
    )
