"""`perdure repair`, `account`, `user`, `agent` and `outbox`."""

import os
from pathlib import Path

import pytest

from perdure.app import open_context
from perdure.context.tenancy import TenantNodes
from perdure.errors import (
    AccessDeniedError,
    AccessRefusedError,
    InvalidUriError,
    NodeExistsError,
    NodeNotFoundError,
    StorageFaultError,
)
from tests.surfaces.nodes import TABS, lines, objects, one, perdure, refusal, stdout_of

pytestmark = pytest.mark.usefixtures("agfs")


# ---------------------------------------------------------------- repair
class TestRepair:
    def test_nothing_to_repair_is_reported(self, tabs: Path) -> None:
        assert stdout_of("repair") == "ok: nothing to repair\n"
        assert objects("repair") == []

    def test_it_only_says_what_it_would_do(self, tabs: Path) -> None:
        tabs.write_text(tabs.read_text() + "And spaces.\n")

        done = perdure("repair")

        assert done.exit_code == 0
        assert lines(done.stdout)[1][:4] == ["edited", "by", "hand", "preference/indentation"]
        assert done.stderr == "1 finding; nothing was changed\n"
        assert one("repair")["applied"] is False

    def test_it_repairs_with_apply(self, tabs: Path) -> None:
        note = tabs.parents[1] / "mine" / "content.md"
        note.parent.mkdir()
        note.write_text("# Mine\n")
        tabs.write_text(tabs.read_text() + "And spaces.\n")

        done = perdure("repair", "--apply")

        assert done.exit_code == 0
        recorded, mended = done.stderr.splitlines()
        assert recorded.startswith("recorded 2 edits made outside Perdure: ")
        assert mended == "repaired 2"
        assert stdout_of("repair") == "ok: nothing to repair\n"
        assert stdout_of("read", "preference/mine") == "# Mine\n"

    def test_what_only_the_user_can_settle_is_reported(self, tabs: Path) -> None:
        tabs.write_text("Prefers both. " * 8_000)

        done = perdure("repair", "--apply")

        assert "112,000 characters" in done.stdout
        assert done.stderr.splitlines()[1:] == ["repaired 0; 1 left for you to settle"]
        assert one("repair", "--apply") == {
            "uri": TABS,
            "state": "broken",
            "action": "none; look at it",
            "detail": one("repair")["detail"],
            "applied": False,
        }

    def test_a_deletion_that_was_interrupted_is_ended(
        self, tabs: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> int:
            raise StorageFaultError("the disk is gone. Fix: mount it.")

        stdout_of("user", "create", "tom")
        with monkeypatch.context() as patch:
            patch.setattr(TenantNodes, "delete_by_owner_space", fail)
            refusal("user", "delete", "tom", "--yes")

        assert (
            stdout_of("repair", "--apply")
            == "completed the deletion of user:tom in account local\n"
        )
        assert stdout_of("user", "list") == "ana\n"


# ---------------------------------------------------------------- accounts, users, agents
class TestTenants:
    @pytest.mark.parametrize("kind", ["account", "user", "agent"])
    def test_created_listed_deleted(self, memory: Path, kind: str) -> None:
        assert f"there is no {kind} yet" in perdure(kind, "list").stderr
        created = one(kind, "create", "Tom & Co")
        assert objects(kind, "list") == [created]
        assert stdout_of(kind, "list") == "Tom & Co\n"
        assert isinstance(refusal(kind, "create", "Tom & Co"), NodeExistsError)
        assert isinstance(refusal(kind, "delete", "Tom & Co"), AccessRefusedError)
        gone = one(kind, "delete", "Tom & Co", "--yes")
        derived = ("index", "vectors", "abstracts", "past indexes")
        holders = ("nodes", "events", *derived)
        assert gone == {**created, "deleted": dict.fromkeys(holders, 0)}
        assert objects(kind, "list") == []
        assert isinstance(refusal(kind, "delete", "Tom & Co", "--yes"), NodeNotFoundError)

    def test_all_that_belongs_to_a_user_goes(self, tabs: Path) -> None:
        done = stdout_of("user", "delete", "ana", "--yes")

        assert done == "ctx://local/users/ana is deleted, with 1 node\n"
        assert perdure("list").stderr == "memories is empty\n"
        assert objects("outbox", "list") == []

    def test_another_account_is_named(self, memory: Path) -> None:
        stdout_of("user", "create", "tom", "--account", "acme")

        assert objects("user", "list") == []
        assert stdout_of("user", "list", "--account", "acme") == "tom\n"
        assert stdout_of("account", "list") == "acme\n"

    def test_those_who_may_not_are_refused(self, memory: Path) -> None:
        assert isinstance(
            refusal("account", "create", "x", "--as-role", "admin"), AccessDeniedError
        )
        assert isinstance(refusal("user", "create", "x", "--as-role", "member"), AccessDeniedError)

    def test_an_id_that_can_not_be_is_refused(self, memory: Path) -> None:
        assert isinstance(refusal("user", "create", ""), InvalidUriError)
        assert isinstance(refusal("user", "create", "x" * 201), InvalidUriError)


# ---------------------------------------------------------------- outbox
class TestOutbox:
    def test_what_waits_is_listed(self, tabs: Path) -> None:
        (event,) = objects("outbox", "list")

        assert (event["uri"], event["type"], event["status"]) == (TABS, "upsert", "pending")
        row = lines(stdout_of("outbox", "list"))[1]
        assert row[:4] == [event["event_id"], "upsert", "pending", "0"]
        assert row[-1] == "preference/indentation"
        assert perdure("outbox", "dead").stderr == "there are no events\n"

    def test_the_dead_can_be_tried_again_or_forgotten(self, tabs: Path) -> None:
        event = self.bury()

        assert one("outbox", "dead")["last_error"] == "no\nmodel"
        assert "no\\nmodel" in stdout_of("outbox", "dead")
        assert one("outbox", "requeue") == {"requeued": 1}
        assert objects("outbox", "dead") == []
        self.bury()
        assert isinstance(refusal("outbox", "purge", event), AccessRefusedError)
        assert stdout_of("outbox", "purge", event, "--yes") == "purged 1 event\n"
        assert objects("outbox", "list") == []
        assert stdout_of("outbox", "purge") == "purged 0 events\n"

    def test_only_the_dead_are_meant(self, tabs: Path) -> None:
        (event,) = objects("outbox", "list")

        refused = refusal("outbox", "requeue", str(event["event_id"]))
        assert isinstance(refused, NodeNotFoundError)

    @pytest.mark.parametrize("verb", ["list", "dead", "requeue", "purge"])
    def test_it_is_for_those_who_govern(self, tabs: Path, verb: str) -> None:
        refused = refusal("outbox", verb, "--as-role", "member")

        assert isinstance(refused, AccessDeniedError)

    @staticmethod
    def bury() -> str:
        with open_context(os.environ) as context:
            ((uri, event),) = context.outbox.list_pending("local")
            context.outbox.increment_retry(event, uri, error="no\nmodel")
            context.outbox.move_to_dlq(event, uri)
            return event.event_id


@pytest.mark.usefixtures("memory")
def test_a_member_writes_in_the_session_that_it_is_in() -> None:
    as_bob = ("--user", "bob", "--as-role", "member")

    assert "out of reach" in str(refusal("write", "sessions/s1/x", "y", *as_bob))
    stdout_of("write", "sessions/s1/x", "y", *as_bob, "--session", "s1")

    assert stdout_of("read", "sessions/s1/x", *as_bob) == "y"
