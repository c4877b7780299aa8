"""What is erased is found nowhere; what is not stays as it was; and a receipt can be trusted."""

import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from perdure.app import Context
from perdure.app.open import signing_key_for
from perdure.artifacts import ArtifactStore
from perdure.artifacts.archive_transfer import export, import_archive
from perdure.engine.receipt import ErasureReceipt
from perdure.engine.shown_lines import LineState
from perdure.errors import AccessDeniedError, DamageError, NodeNotFoundError, ProofError
from perdure.index.hashing_embedder import HashingEmbedder
from perdure.index.vectors import memo_folder
from perdure.model import RelationEdge, RequestContext, Role, Uri
from perdure.proofs.signing_keys import SigningKey
from tests.engine.erase.homes import (
    FOLDER,
    ODD,
    ROOT,
    SECRET,
    WORDS,
    check_receipt,
    leaks,
    now,
    receipts,
    root,
    save_secret,
)
from tests.engine.remembering import ADMIN, ANA, BOB, EVE, of, opened, uris


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: no power goes here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)


@pytest.fixture
def context(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Context]:
    semantic = getattr(request, "param", "lexical") == "semantic"
    with opened(tmp_path, semantic=semantic) as context:
        yield context


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


# ---------------------------------------------------------------- putting away
def test_forgetting_archives_and_twice_is_once(context: Context) -> None:
    uri = save_secret(context)

    first = root(context).forget(uri)
    again = root(context).forget(uri)

    assert (first.archived, first.archived_before) == ((uri,), ())
    assert (again.archived, again.archived_before) == ((), (uri,))
    assert uris(root(context), "kumquat") == []
    context.nodes.unarchive_node(uri, ROOT)
    assert root(context).read(uri).content.startswith(SECRET)


def test_a_folder_is_archived_node_by_node(context: Context) -> None:
    save_secret(context)

    assert len(root(context).forget(FOLDER, dry_run=True).archived) == 3
    assert len(root(context).forget(FOLDER).archived) == 3
    assert uris(root(context), "kumquat tabs coffee") == []


def test_what_is_not_there_can_not_be_forgotten(context: Context) -> None:
    for erase in (False, True):
        with pytest.raises(NodeNotFoundError):
            root(context).forget(ODD, erase=erase)
        with pytest.raises(NodeNotFoundError):
            root(context).forget(FOLDER, erase=erase)


# ---------------------------------------------------------------- erasing
@pytest.mark.parametrize("context", ["semantic", "lexical"], indirect=True)
def test_no_byte_of_it_is_left_and_all_else_is_as_it_was(context: Context, home: Path) -> None:
    uri, then = save_secret(context), now(context)
    assert leaks(home)

    done = root(context).forget(uri, erase=True)

    assert leaks(home) == {}
    assert done.erased is not None
    assert check_receipt(context, done.erased.path) == []
    memory = root(context)
    assert uris(memory, "kumquat wizard") == []
    assert uris(memory, "tabs") == [f"{FOLDER}/indentation"]
    assert memory.recall("tabs", at=then).hits[0].uri == f"{FOLDER}/indentation"
    assert memory.recall("kumquat wizard", at=then).hits == ()
    assert context.recorded.history.store.verify().ok
    assert leaks(home) == {}


def test_what_an_agent_was_shown_of_it_is_gone_and_says_so(context: Context, home: Path) -> None:
    uri = save_secret(context)
    (before,) = root(context).shown()
    assert SECRET[:30] in {line.uri: line.text for line in before.lines}[uri]

    root(context).forget(uri, erase=True)

    (after,) = root(context).shown()
    states = {line.uri: (line.state, line.text) for line in after.lines}
    assert states.pop(uri) == (LineState.FORGOTTEN, "")
    assert {state for state, _ in states.values()} == {LineState.SHOWN}
    assert leaks(home) == {}
    assert (home / ".perdure" / "hooks" / "emitted").stat().st_size


def test_of_its_history_only_the_names_are_left(context: Context) -> None:
    uri, then = save_secret(context), now(context)
    root(context).forget(uri, erase=True)

    versions = root(context).history(uri)

    assert [version.unbound for version in versions] == [False, False, True]
    assert root(context).blame(uri) == []
    with pytest.raises(NodeNotFoundError):
        root(context).at(then).read(uri)
    with pytest.raises(NodeNotFoundError):
        root(context).restore(uri, then)


def test_it_can_be_saved_again_and_the_receipt_differs(context: Context) -> None:
    uri = save_secret(context)
    path = erased_path(context, uri)

    root(context).save(SECRET, category="preference", slug="odd")

    assert uris(root(context), "kumquat") == [uri]
    (difference,) = check_receipt(context, path)
    assert "was saved again" in difference


def test_erasing_twice_is_once(context: Context, home: Path) -> None:
    uri = save_secret(context)
    erased_path(context, uri)
    position = context.recorded.history.position()

    again = root(context).forget(uri, erase=True)

    assert again.erased is None
    assert again.plan is not None
    assert again.plan.is_empty
    assert len(receipts(home)) == 1
    assert context.recorded.history.position() == position


def test_what_is_archived_or_deleted_can_be_erased(context: Context, home: Path) -> None:
    uri = save_secret(context)
    root(context).forget(uri)
    context.nodes.delete_node(uri, ROOT)
    assert leaks(home)

    root(context).forget(uri, erase=True)

    assert leaks(home) == {}


def test_an_unnoticed_edit_by_hand_is_erased_too(context: Context, home: Path) -> None:
    uri = save_secret(context)
    (file,) = home.rglob("Odd.md")
    file.write_text(f"{file.read_text()}\nThe marzipan is by hand.\n")
    (file.parent / "Odd (conflicted copy 2026-01-02).md").write_text(f"{SECRET} Marzipan!")

    root(context).forget(uri, erase=True)

    assert leaks(home, (*WORDS, "arzipan")) == {}


def test_where_it_was_before_it_was_moved_goes_too(context: Context, home: Path) -> None:
    uri = save_secret(context)
    context.nodes.move_node(uri, f"{FOLDER}/other", ROOT)
    root(context).save("A quince is new here.", category="preference", slug="odd")

    root(context).forget(f"{FOLDER}/other", erase=True)

    assert leaks(home) == {}
    assert uris(root(context), "quince") == [uri]


def test_a_moved_text_stays_and_is_listed(context: Context) -> None:
    uri = save_secret(context)
    target = f"{FOLDER}/other"
    context.nodes.move_node(uri, target, ROOT)

    done = root(context).forget(uri, erase=True)

    assert done.erased is None
    assert done.plan is not None
    moved = dict(done.plan.moved)
    assert moved[f"{Uri.parse(uri).key}/content.md"] == f"{Uri.parse(target).key}/content.md"
    assert len(root(context).history(target)) == 3
    assert root(context).read(target).content.startswith(SECRET)


def test_shared_content_of_another_node_stays_and_is_listed(context: Context) -> None:
    uri = save_secret(context)
    other = f"{FOLDER}/same"
    root(context).save("Something else.", category="preference", slug="same")
    file = context.nodes.file(Uri.parse(other), "content.md")
    mine = context.recorded.history.current(context.nodes.file(Uri.parse(uri), "content.md"))
    assert mine is not None
    context.recorded.write(file, context.recorded.history.text(mine))

    done = root(context).forget(uri, erase=True)

    assert done.erased is not None
    assert [each.key for each in done.erased.shared] == [file.key]
    assert mine.cid not in done.erased.contents
    assert context.recorded.history.store.get(mine.cid) is not None  # type: ignore[arg-type] # it has one
    assert check_receipt(context, done.erased.path) == []


@pytest.mark.parametrize("context", ["semantic", "lexical"], indirect=True)
def test_a_folder_goes_with_all_that_is_in_it(context: Context, home: Path) -> None:
    save_secret(context)
    root(context).save("A quince is elsewhere.", category="event", slug="fruit")

    root(context).forget(FOLDER, erase=True)

    assert leaks(home, (*WORDS, "spaces", "coffee black")) == {}
    assert uris(root(context), "quince") == ["ctx://local/users/ana/memories/event/fruit"]


@pytest.mark.parametrize("context", ["semantic", "lexical"], indirect=True)
def test_a_session_is_erased_and_the_plan_lists_what_was_learned(
    context: Context, home: Path
) -> None:
    root(context).save("Prefers tabs over spaces.", category="preference", slug="indentation")
    messages = [
        {"role": "user", "content": f"{SECRET} I prefer gooseberries over all other fruit."},
        {"role": "assistant", "content": "Noted: the kumquat."},
    ]
    root(context).commit_session(messages, session_id="s1")
    learned = root(context).recall("gooseberries", filters={"category": "preference"}).hits[0].uri

    done = root(context).forget("ctx://local/sessions/s1", erase=True)

    assert done.plan is not None
    assert leaks(home) == {}
    assert {quoted.uri for quoted in done.plan.quotations} == {learned}
    assert not list(home.rglob("sessions/s1"))


@pytest.mark.parametrize("whole", ["ctx://local/sessions/s1", "ctx://local/users/ana"])
def test_an_answer_that_was_replaced_goes_with_its_session(
    context: Context, home: Path, whole: str
) -> None:
    asked = {"role": "user", "content": "What is odd?"}
    long = {"role": "assistant", "content": f"{'A word. ' * 8_000}{SECRET}"}
    done = of(context).append("s1", [asked, long])
    assert len(done.uris) > 1, "the secret is in a node that goes when the answer does"
    of(context).append("s1", [{"role": "assistant", "content": "Nothing."}])
    assert leaks(home), "history keeps what was replaced"

    root(context).forget(whole, erase=True)

    assert leaks(home) == {}


def test_quotations_and_referrers_are_listed(context: Context) -> None:
    uri = save_secret(context)
    quoter = root(context).save(
        "He said: The kumquat hides under the veranda.", category="event", slug="quoter"
    )
    root(context).save("Look at [[odd]].", category="event", slug="linked")
    edge = RelationEdge(f"{FOLDER}/coffee", uri, "supports", reason="why not")
    context.relations.upsert_edges([edge], ROOT)

    plan = root(context).forget(uri, erase=True, dry_run=True).plan

    assert plan is not None
    assert {quoted.uri for quoted in plan.quotations} == {quoter, f"{FOLDER}/coffee"}
    assert f"{FOLDER}/coffee" in plan.referrers


def test_a_dry_run_changes_nothing_and_says_what_would_go(context: Context, home: Path) -> None:
    uri = save_secret(context)
    texts = {path: path.read_bytes() for path in home.rglob("memory/**/*") if path.is_file()}
    position = context.recorded.history.position()

    plan = root(context).forget(uri, erase=True, dry_run=True).plan

    assert plan is not None
    assert len(plan.files) == 2
    assert plan.size > 2 * len(SECRET)
    assert plan.derived["index records"] == 1
    assert plan.derived["indexes of past moments"] == 1
    assert {p: p.read_bytes() for p in home.rglob("memory/**/*") if p.is_file()} == texts
    assert context.recorded.history.position() == position
    assert receipts(home) == []


def test_the_vectors_and_indexes_of_other_models_go_too(home: Path) -> None:
    for dimension in (64, 32):
        with opened(home, embedder=HashingEmbedder(dimension)) as context:
            save_secret(context)
    with opened(home, embedder=HashingEmbedder(32)) as context:
        folder = memo_folder(context.indexes.memo_folder, "local", "user:ana")
        before = {path.stat().st_ino for path in folder.glob("segment-*")}
        root(context).forget(ODD, erase=True)

        assert leaks(home) == {}
        assert not before & {path.stat().st_ino for path in folder.glob("segment-*")}
        assert uris(root(context), "tabs") == [f"{FOLDER}/indentation"]


def test_nothing_of_what_stays_is_embedded_again(home: Path) -> None:
    with opened(home, embedder=HashingEmbedder()) as context:
        uri = save_secret(context)
        root(context).save("Resources are shared.", category="event", slug="shared")
        root(context).forget(uri, erase=True)
        memo = context.indexes.memo
        assert memo is not None
        embedded_count = memo.embedded_count
        context.indexes.configured.follower.rebuild("local")
        assert memo.embedded_count == embedded_count
        assert uris(root(context), "tabs") == [f"{FOLDER}/indentation"]
    assert leaks(home) == {}


def test_events_that_failed_and_tell_of_it_go_too(context: Context, home: Path) -> None:
    uri = save_secret(context)
    node = context.nodes.read_node(uri, ROOT)
    context.outbox.register_write(replace(node, abstract=SECRET), ROOT)
    for _, event in context.outbox.list_unfinished("local"):
        context.outbox.move_to_dlq(event, event.uri)
    assert context.outbox.list_dead("local")

    root(context).forget(uri, erase=True)

    assert leaks(home) == {}
    assert context.outbox.list_dead("local") == []


# ---------------------------------------------------------------- persons
@pytest.mark.parametrize("context", ["semantic", "lexical"], indirect=True)
def test_a_person_goes_with_their_sessions_and_nobody_else_does(
    context: Context, home: Path
) -> None:
    save_secret(context)
    of(context).commit_session(
        [{"role": "user", "content": SECRET}], session_id="s1", extract=False
    )
    of(context, BOB).commit_session(
        [{"role": "user", "content": "A quince of mine."}], session_id="s2", extract=False
    )
    of(context, BOB).save("Bob likes quinces.", category="preference", slug="fruit")

    done = root(context).forget("ctx://local/users/ana", erase=True)

    assert done.erased is not None
    assert leaks(home, (*WORDS, "spaces")) == {}
    assert check_receipt(context, done.erased.path) == []
    assert len(uris(of(context, BOB), "quince")) == 2
    assert context.namespaces.list_users("local", ROOT) == ["bob"]


def one_message(text: str) -> list[dict[str, object]]:
    return [{"role": "user", "content": text}]


def test_of_a_session_that_was_two_peoples_only_their_own_part_goes(
    context: Context, home: Path
) -> None:
    of(context, BOB).commit_session(one_message("A quince of Bob."), session_id="s1", extract=False)
    context.namespaces.delete_user("local", "bob", ROOT)
    of(context).commit_session(one_message(SECRET), session_id="s1", extract=False)

    root(context).forget("ctx://local/users/ana", erase=True)
    assert leaks(home) == {}
    assert "segment-00000001" in str(leaks(home, ["quince"]))

    root(context).forget("ctx://local/users/bob", erase=True)
    assert leaks(home, ["quince"]) == {}


# ---------------------------------------------------------------- tenants
def test_only_root_erases_and_the_refusal_reveals_nothing(context: Context, home: Path) -> None:
    uri = save_secret(context)
    for who in (ANA, ADMIN, replace(ANA, role=Role.ADMIN)):
        with pytest.raises(AccessDeniedError, match="may not erase"):
            of(context, who).forget(uri, erase=True)
    messages = set()
    for place in (ODD, f"{FOLDER}/nothing-there"):
        for dry_run in (True, False):
            with pytest.raises(AccessDeniedError) as refused:
                of(context, BOB).forget(place, erase=True, dry_run=dry_run)
            messages.add(str(refused.value))

    assert len(messages) == 1
    assert leaks(home)
    assert receipts(home) == []


@pytest.mark.parametrize("erase", [True, False])
def test_a_caller_can_not_forget_what_is_out_of_reach(context: Context, *, erase: bool) -> None:
    uri = save_secret(context)
    messages = set()
    for who in (EVE, replace(EVE, role=Role.ROOT), BOB):
        for place in (uri, f"{FOLDER}/nothing-there", FOLDER, "ctx://local/users/ana"):
            with pytest.raises(AccessDeniedError) as refused:
                of(context, who).forget(place, erase=erase)
            messages.add(str(refused.value).replace(place, "it"))

    assert len(messages) <= 3
    assert root(context).read(uri).content.startswith(SECRET)


def test_a_member_forgets_of_a_folder_only_what_it_may_change(context: Context) -> None:
    save_secret(context)
    of(context, BOB).save("A quince of Bob.", category="preference", slug="fruit")

    with pytest.raises(AccessDeniedError):
        of(context, BOB).forget("ctx://local")

    assert uris(root(context), "kumquat") == [ODD]


def test_shared_content_of_another_account_stays_and_is_not_named(context: Context) -> None:
    uri = save_secret(context)
    eve = RequestContext("elsewhere", "eve", role=Role.ROOT)
    theirs = of(context, eve).save(SECRET, category="preference", slug="odd")
    theirs_too = of(context, eve).save(f"{SECRET} Twice.", category="preference", slug="odd")
    text = context.recorded.read(context.nodes.file(Uri.parse(uri), "content.md"))
    context.recorded.write(context.nodes.file(Uri.parse(theirs), "content.md"), text)

    done = root(context).forget(uri, erase=True)

    assert done.plan is not None
    assert "accounts/elsewhere" not in repr(done)
    assert {each.key for each in done.plan.shared} == {""}
    assert of(context, eve).read(theirs_too).content.startswith(SECRET)
    assert context.recorded.history.store.verify().ok


# ---------------------------------------------------------------- receipts
def erased_path(context: Context, uri: str) -> Path:
    done = root(context).forget(uri, erase=True)
    assert done.erased is not None
    return done.erased.path


def test_a_receipt_that_was_touched_proves_nothing(home: Path) -> None:
    with opened(home, semantic=False) as context:
        path = erased_path(context, save_secret(context))
        text, key = path.read_text(), signing_key_for(context.config).public
        receipt = ErasureReceipt.from_text(text)
        facts, refused = receipt.verify(key), 0
        for at in range(0, len(text), 7):
            try:
                changed = text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :]
                assert ErasureReceipt.from_text(changed).verify(key) == facts
            except ProofError:
                refused += 1
        assert refused > len(text) // 7 - 5
        with pytest.raises(ProofError):
            receipt.verify(SigningKey.generate("perdure").public)
        with pytest.raises(ProofError):
            ErasureReceipt.from_text(json.dumps({"said": receipt.statement, "note": "", "more": 1}))


def test_without_the_means_to_sign_nothing_is_erased(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(home, semantic=False) as context:
        uri = save_secret(context)
        monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
        with pytest.raises(ProofError, match=r"\.\[proofs\]"):
            root(context).forget(uri, erase=True)

        assert root(context).read(uri).content.startswith(SECRET)
        assert not list(home.rglob("erasing/*"))


def test_a_receipt_says_so_if_bytes_come_back(home: Path) -> None:
    with opened(home, semantic=False) as context:
        uri = save_secret(context)
        store = context.recorded.history.store
        (segment,) = home.rglob("histories/*/segment-00000001")
        before = segment.read_bytes()
        path = erased_path(context, uri)
        with segment.open("r+b") as file:
            file.seek(before.index(b"Xylophones"))
            file.write(b"Xylophones")

        assert any("bytes left" in each for each in check_receipt(context, path))
        assert store.verify().ok


def test_a_copy_of_the_history_has_it_no_more_and_is_the_same(context: Context) -> None:
    uri = save_secret(context)
    store = context.recorded.history.store
    before = BytesIO()
    export(store, before)
    erased_path(context, uri)
    archive = BytesIO()
    export(store, archive)

    assert not any(word.encode() in archive.getvalue() for word in WORDS)
    with ArtifactStore.open(Path(store.disk.whereabouts).parent / "copy") as copy:
        for source in (before, archive):
            source.seek(0)
            import_archive(copy, source)
        assert copy.current() == store.current()
        assert list(copy.log()) == list(store.log())
        assert copy.verify().ok


def test_a_note_that_says_nothing_is_an_error_that_says_so(context: Context, home: Path) -> None:
    uri = save_secret(context)
    (folder,) = home.glob(".perdure/histories/*")
    (folder / "erasing").mkdir()
    (folder / "erasing" / "x.json").write_text('{"id": 1}')

    with pytest.raises(DamageError, match="is not a task of an erasure"):
        root(context).forget(uri, erase=True)
    assert root(context).read(uri).content.startswith(SECRET)


def test_an_erasure_waits_for_that_of_another(context: Context) -> None:
    memory = root(context)
    memory.save("Prefers tabs.", category="preference", slug="tabs")
    held = context.recorded.history.store.disk.lock("erasing-lock")
    assert held is not None
    with ThreadPoolExecutor(1) as pool:
        erasing = pool.submit(memory.forget, "preference/tabs", erase=True)
        with pytest.raises(TimeoutError):
            erasing.result(timeout=0.2)
        held.release()
        erasing.result(timeout=30)

    with pytest.raises(NodeNotFoundError):
        memory.read("preference/tabs")
