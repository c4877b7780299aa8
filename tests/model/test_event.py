from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from perdure.errors import InvalidValueError
from perdure.model import EventStatus, EventType, OutboxEvent
from perdure.model.values import CUT

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
TABS = "ctx://local/users/ana/memories/preference/tabs"


def event(**fields: Any) -> OutboxEvent:  # noqa: ANN401 - the fields' own types
    text = {
        "event_id": "1",
        "event_type": EventType.DELETE_NODE,
        "uri": TABS,
        "account_id": "local",
        "created_at": NOON,
    }
    return OutboxEvent(**{**text, **fields})


class TestOutboxEvent:
    def test_a_new_one_waits_and_was_never_tried(self) -> None:
        new = event()

        assert (new.status, new.retry_count) == (EventStatus.PENDING, 0)
        assert (new.next_retry_at, new.last_error, new.payload) == (None, "", {})

    def test_it_says_whose_the_node_is(self) -> None:
        assert event().owner_space == "user:ana"
        assert event(uri="ctx://local/sessions/s/1").owner_space == ""
        assert event(uri="ctx://local/sessions/s/1", owner_space="agent:x").owner_space == "agent:x"

    def test_it_may_be_about_a_folder(self) -> None:
        assert event(uri="ctx://local", event_type=EventType.UPSERT_DIRECTORY).owner_space == ""

    def test_times_are_in_utc(self) -> None:
        east = NOON.astimezone(timezone(timedelta(hours=9)))

        tried = event(created_at=east, next_retry_at=east)

        assert tried.created_at.tzinfo is UTC
        assert tried.next_retry_at == NOON
        assert tried.next_retry_at.tzinfo is UTC

    def test_to_note_a_failure_never_fails(self) -> None:
        failed = event(last_error="no such file: \udcff" + "x" * 10**6)

        assert failed.last_error.startswith(r"no such file: \udcffxxx")
        assert failed.last_error.endswith(CUT)
        assert len(failed.last_error) == 5_000

    @pytest.mark.parametrize(
        "wrong",
        [
            *({"event_id": ""}, {"event_id": None}, {"event_id": 3}, {"event_id": "\ud800"}),
            *({"event_type": "delete"}, {"status": "pending"}, {"event_type": None}),
            *({"uri": "tabs"}, {"uri": None}, {"account_id": "other"}, {"account_id": None}),
            *({"owner_space": "user:bo"}, {"owner_space": "ana"}, {"owner_space": None}),
            *(
                {"payload": None},
                {"payload": {"a": {1}}},
                {"created_at": NOON.replace(tzinfo=None)},
            ),
            *(
                {"retry_count": -1},
                {"retry_count": True},
                {"retry_count": 1.0},
                {"created_at": None},
            ),
            *({"next_retry_at": 0}, {"last_error": None}, {"last_error": ValueError()}),
        ],
        ids=ascii,
    )
    def test_a_wrong_one_can_not_be_built(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidValueError, match="Fix: "):
            event(**wrong)
