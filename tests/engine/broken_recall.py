"""Recall with one fault each. Every one of them is caught by a test beside this file."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from perdure.app.providers import reopen_embedder
from perdure.artifacts import ArtifactStore, IndexState
from perdure.config import Config, EmbeddingSettings
from perdure.context.reader import NodeReader, StoredNode
from perdure.engine import past, present, sessions, upkeep
from perdure.engine.edits import EditCheck
from perdure.engine.indexing import follower, index_worker, indexer, indexes
from perdure.engine.indexing.follower import IndexBuild, IndexFollower, IndexUpdate, LogReader
from perdure.engine.indexing.index_worker import WorkCounts, Worker
from perdure.engine.indexing.indexer import IndexBatch, Indexer
from perdure.engine.indexing.indexes import CurrentIndex
from perdure.engine.recall import answer, question, result, score
from perdure.engine.recall.answer import ConfirmedHits, Retriever
from perdure.engine.recall.question import Question
from perdure.engine.recall.result import Hint, Hit, HitSection, PackedContext, RecallResult, Sources
from perdure.engine.recall.score import PassageCandidate, PassageCandidates, ValidityOrder
from perdure.engine.services import Services
from perdure.errors import PerdureError
from perdure.index import records, vectors
from perdure.index.contract import Embedder, NodeIndex
from perdure.index.hashing_embedder import HashingEmbedder
from perdure.index.sqlite_index import SqliteIndex
from perdure.model import IndexRecord, Level, RequestContext, Role, Uri
from perdure.model.node import ACCOUNT, OWNER_SPACE, VALID_AT, record_id
from perdure.safety import validation
from perdure.storage.text_history import History, View

Patch = pytest.MonkeyPatch


def _nothing(*_: object, **__: object) -> None:
    pass


# ---------------------------------------------------------------- filters and confirmation
def confirms_nothing(patch: Patch) -> None:
    def hits(self: ConfirmedHits, candidates: Iterable[Any]) -> Iterator[Hit]:
        for candidate in candidates:
            stored = self.stored(candidate.hit.uri)
            if stored is not None:
                yield answer._hit(candidate, stored)

    patch.setattr(ConfirmedHits, "hits", hits)


def _edited_after_the_check(patch: Patch) -> None:
    """Let no check before a recall find edits, as if they came after it."""
    patch.setattr(present, "notice_edits", lambda *_, **__: EditCheck())


def hides_what_is_stale(patch: Patch) -> None:
    _edited_after_the_check(patch)
    hits = ConfirmedHits.hits

    def quietly(self: ConfirmedHits, candidates: Iterable[Any]) -> Iterator[Hit]:
        yield from hits(self, candidates)
        self.stale.clear()

    patch.setattr(ConfirmedHits, "hits", quietly)


def asks_nobody_for_reach(patch: Patch) -> None:
    def visible(self: NodeReader, uris: Iterable[str], _: RequestContext) -> dict[str, StoredNode]:
        return {uri: self.active(Uri.parse(uri)) for uri in uris}

    patch.setattr(NodeReader, "visible_nodes", visible)


def _filtering(patch: Patch, change: Any) -> None:  # noqa: ANN401 - whatever it does to filters
    filters = answer._filters

    def changed(index: NodeIndex, question: Question, ctx: RequestContext) -> dict[str, Any]:
        found: dict[str, Any] = filters(index, question, ctx)
        change(index, question, ctx, found)
        return found

    patch.setattr(answer, "_filters", changed)


def leaves_the_owners_out(patch: Patch) -> None:
    def change(index: NodeIndex, _: object, ctx: RequestContext, found: dict[str, Any]) -> None:
        found[OWNER_SPACE] = tuple(index.owner_spaces(ctx.account_id)) or "user:x"

    _filtering(patch, change)


def forgets_what_was_shown(patch: Patch) -> None:
    def change(_: object, __: object, ctx: RequestContext, found: dict[str, Any]) -> None:
        found[OWNER_SPACE] = (f"user:{ctx.user_id}", f"agent:{ctx.agent_id}")

    _filtering(patch, change)


def ignores_when_it_held(patch: Patch) -> None:
    _filtering(patch, lambda _, __, ___, found: found.pop(VALID_AT, None))


def ignores_what_it_is_filed_under(patch: Patch) -> None:
    def change(_: object, question: Question, __: object, found: dict[str, Any]) -> None:
        for name in question.filters or {}:
            found.pop(name, None)

    _filtering(patch, change)


def lets_filters_say_whose(patch: Patch) -> None:
    for module in (question, answer):
        patch.setattr(module, "ACCOUNT", "-")
        patch.setattr(module, "OWNER_SPACE", "--")


def _everybodys(self: Retriever, filters: Mapping[str, Any]) -> dict[str, Any]:
    account = str(filters[ACCOUNT])
    return {ACCOUNT: account, OWNER_SPACE: tuple(self._index.owner_spaces(account))}


def _unfiltered(patch: Patch, verb: str, at: int) -> None:
    """Let one step of the search see all of the account."""
    original = getattr(Retriever, verb)

    def run(self: Retriever, *args: Any) -> object:  # noqa: ANN401 - as the verb has it
        given = list(args)
        given[at] = _everybodys(self, given[at])
        return original(self, *given)

    patch.setattr(Retriever, verb, run)


def filters_no_neighbours(patch: Patch) -> None:
    _unfiltered(patch, "_add_neighbours", 1)


def filters_no_children(patch: Patch) -> None:
    _unfiltered(patch, "_below", 2)


def filters_no_relations(patch: Patch) -> None:
    _unfiltered(patch, "_first", 2)


def filters_no_passages(patch: Patch) -> None:
    by_words = Retriever.by_words

    def openly(self: Retriever, plan: Any, filters: Mapping[str, Any], **more: Any) -> object:  # noqa: ANN401 - a plan
        return by_words(self, plan, _everybodys(self, filters), **more)

    patch.setattr(Retriever, "by_words", openly)


def gives_more_than_was_asked_for(patch: Patch) -> None:
    patch.setattr(answer, "islice", lambda hits, _most: hits)


# ---------------------------------------------------------------- results
def says_nothing_of_a_missing_model(patch: Patch) -> None:
    recall = answer.recall
    patch.setattr(answer, "recall", lambda of, q, ctx: replace(recall(of, q, ctx), hints=()))


def counts_what_waits_for_others(patch: Patch) -> None:
    answer = present._answer

    def counting(
        services: Services, question: Question, ctx: RequestContext, worker_for: present.WorkerFor
    ) -> RecallResult:
        waiting = services.outbox.list_unfinished(ctx.account_id)
        return replace(answer(services, question, ctx, worker_for), index_lag=len(waiting))

    patch.setattr(present, "_answer", counting)


def never_says_that_it_is_behind(patch: Patch) -> None:
    answer = present._answer
    patch.setattr(present, "_answer", lambda *asked: replace(answer(*asked), index_lag=0))


def cites_what_history_has_not(patch: Patch) -> None:
    _edited_after_the_check(patch)
    patch.setattr(present, "_unrecorded", lambda *_: set())


def refuses_what_can_not_be_caught_up_with(patch: Patch) -> None:
    def catch_up(
        _: Services, current: CurrentIndex, account: str, worker_for: present.WorkerFor
    ) -> tuple[int, list[Hint], index_worker.Unfinished]:
        worker_for(current.follower).work(account)
        return 0, [], ()

    patch.setattr(present, "_catch_up", catch_up)


def exceeds_the_budget(patch: Patch) -> None:
    compose = result.pack_hits

    def generous(tiers: Iterable[HitSection[Hit]], budget: int) -> PackedContext[Hit]:
        return compose(tiers, budget + 50)

    patch.setattr(answer, "pack_hits", generous)


def counts_tokens_as_words(patch: Patch) -> None:
    patch.setattr(result, "tokens_in", lambda text: len(text.split()))


def cuts_snippets(patch: Patch) -> None:
    entry = result.render_hit
    patch.setattr(result, "render_hit", lambda hit: entry(replace(hit, snippet=hit.snippet[:9])))


def builds_low_fences(patch: Patch) -> None:
    patch.setattr(result, "_FENCE", re.compile(r"(?!)"))


# ---------------------------------------------------------------- ranking
def asks_for_all_words(patch: Patch) -> None:
    by_words = Retriever.by_words

    def strictly(self: Retriever, plan: Any, *given: Any, **more: Any) -> object:  # noqa: ANN401 - a plan
        found = by_words(self, plan, *given, **more)
        return [hit for hit in found if all(word in hit.text.lower() for word in plan.words)]

    patch.setattr(Retriever, "by_words", strictly)


def trusts_every_word(patch: Patch) -> None:
    patch.setattr(score, "trust", lambda *_: 1.0)


def has_no_sense_of_meaning(patch: Patch) -> None:
    patch.setattr(Retriever, "_by_meaning", lambda *_: {})


def looks_beside_nothing(patch: Patch) -> None:
    patch.setattr(Retriever, "_add_neighbours", _nothing)


def borrows_from_nobody(patch: Patch) -> None:
    patch.setattr(score, "by_neighbours", _nothing)


def knows_no_relations(patch: Patch) -> None:
    def unrelated(_: Retriever, found: PassageCandidates, *__: object) -> list[PassageCandidate]:
        return score.best_first(found.all)

    patch.setattr(Retriever, "_by_relations", unrelated)


def opens_no_summaries(patch: Patch) -> None:
    patch.setattr(Retriever, "_by_parents", _nothing)


def knows_no_dates(patch: Patch) -> None:
    patch.setattr(score, "by_date", _nothing)


def hears_assistants_first(patch: Patch) -> None:
    patch.setattr(score, "by_role", _nothing)


def hears_no_names(patch: Patch) -> None:
    patch.setattr(score, "by_speaker", _nothing)


# ---------------------------------------------------------------- what holds
def takes_all_to_hold(patch: Patch) -> None:
    patch.setattr(score, "holds", lambda *_: True)


def hides_what_lapsed(patch: Patch) -> None:
    patch.setattr(ValidityOrder, "_wait", _nothing)


def doubts_messages_of_the_future(patch: Patch) -> None:
    holds = score.holds
    patch.setattr(score, "holds", lambda hit, now: holds(replace(hit, session_id=""), now))


def knows_no_successors(patch: Patch) -> None:
    patch.setattr(ConfirmedHits, "superseded", lambda *_: [])


def follows_one_edge(patch: Patch) -> None:
    successors = ConfirmedHits._successors
    patch.setattr(ConfirmedHits, "_successors", lambda self, uri: successors(self, uri)[:1])


def follows_edges_out_of_reach(patch: Patch) -> None:
    asks_nobody_for_reach(patch)
    _unfiltered(patch, "passage", 2)


def follows_edges_past_filters(patch: Patch) -> None:
    _unfiltered(patch, "passage", 2)


def tells_how_a_page_begins(patch: Patch) -> None:
    passage = Retriever.passage

    def first(self: Retriever, uri: str, _: str, filters: Mapping[str, Any]) -> object:
        return passage(self, uri, "", filters)

    patch.setattr(Retriever, "passage", first)


def demotes_all_alike(patch: Patch) -> None:
    demote = ValidityOrder._demote

    def alike(self: ValidityOrder, hit: Hit) -> Hit:
        self._demoted = 0
        return demote(self, hit)

    patch.setattr(ValidityOrder, "_demote", alike)


def hears_no_past(patch: Patch) -> None:
    patch.setattr(question, "_PAST", re.compile("(?!)"))


def knows_no_periods(patch: Patch) -> None:
    patch.setattr(score, "_overlaps", lambda *_: False)


def takes_today_for_the_past(patch: Patch) -> None:
    patch.setattr(score, "_contains", lambda *_: False)


def gives_former_statements_nothing(patch: Patch) -> None:
    patch.setattr(score, "by_former", _nothing)


def demotes_whatever_the_filter_says(patch: Patch) -> None:
    holds = score.holds

    def hits(self: ConfirmedHits, candidates: Iterable[Any]) -> Iterator[Hit]:
        for hit in confirmed(self, candidates):
            yield replace(hit, holds=holds(hit, datetime.now(UTC)))

    confirmed = ConfirmedHits.hits
    patch.setattr(ConfirmedHits, "hits", hits)


def packs_what_was_remembered_to_the_letter(patch: Patch) -> None:
    patch.setattr(validation, "presentable", str)


# ---------------------------------------------------------------- keeping up
def works_on_nothing(patch: Patch) -> None:
    patch.setattr(Worker, "_work", lambda *_: WorkCounts())


def moves_the_cursor_without_records(patch: Patch) -> None:
    def update(
        self: IndexFollower,
        account: str,
        places: Any,  # noqa: ANN401 - as given
        span: tuple[int, int],
        **_: object,
    ) -> IndexUpdate:
        cursor, now = span
        self.index.replace(account, {}, cursor=now, expect=cursor)
        return IndexUpdate(now, frozenset(places))

    patch.setattr(IndexFollower, "update", update)


def compares_no_cursor(patch: Patch) -> None:
    def update(
        self: IndexFollower,
        account: str,
        places: Any,  # noqa: ANN401 - as given
        span: tuple[int, int],
        **_: object,
    ) -> IndexUpdate:
        now = span[1]
        batch = self.indexer.batch(places)
        self.index.replace(account, batch.records, cursor=now)
        return IndexUpdate(now, frozenset(places), batch.failed)

    patch.setattr(IndexFollower, "update", update)


def goes_by_the_outbox_alone(patch: Patch) -> None:
    patch.setattr(LogReader, "changed", lambda *_: [])


def never_looks_again(patch: Patch) -> None:
    catch_up = IndexFollower.catch_up
    patch.setattr(
        IndexFollower, "catch_up", lambda self, account, *_, **__: catch_up(self, account)
    )


def knows_no_folders(patch: Patch) -> None:
    patch.setattr(Indexer, "indexes_folders", False)


def looks_at_no_folder_above(patch: Patch) -> None:
    patch.setattr(follower, "folders_of", lambda _: iter(()))
    patch.setattr(index_worker, "folders_of", lambda _: iter(()))


def indexes_what_is_archived(patch: Patch) -> None:
    def batch(self: Indexer, place: Uri, *_: object) -> list[IndexRecord]:
        if not place.is_node:
            return self._summaries.records(place)
        stored = self.reader.load(place)
        return [] if stored is None else records.records_of(stored.node, str(stored.cid))

    patch.setattr(Indexer, "_records", batch)


def lets_poison_stop_the_rest(patch: Patch) -> None:
    def embed_each(_: object, batch: IndexBatch, __: object, why: PerdureError) -> None:
        batch.failed |= dict.fromkeys(batch.records, why)

    patch.setattr(Indexer, "_embed_each", embed_each)


def takes_poison_for_an_outage(patch: Patch) -> None:
    patch.setattr(vectors.VectorMemo, "is_available", lambda _: False)


def drops_what_has_no_vector(patch: Patch) -> None:
    make = Indexer.batch

    def strictly(self: Indexer, places: Iterable[Uri], *more: Any) -> IndexBatch:  # noqa: ANN401 - as given
        batch = make(self, places, *more)
        batch.records |= {uri: [] for uri in batch.failed}
        return batch

    patch.setattr(Indexer, "batch", strictly)


def embeds_one_by_one(patch: Patch) -> None:
    def embed(self: Indexer, batch: IndexBatch, vectors: vectors.VectorMemo) -> None:
        self._embed_each(batch, vectors, PerdureError("never"))

    patch.setattr(Indexer, "_embed", embed)


def stops_at_odd_nodes(patch: Patch) -> None:
    patch.setattr(indexer, "InvalidValueError", ZeroDivisionError)


def keeps_leases(patch: Patch) -> None:
    patch.setattr(Worker, "_release", _nothing)


def takes_failed_for_done(patch: Patch) -> None:
    settle = Worker._settle
    patch.setattr(
        Worker,
        "_settle",
        lambda self, leased, caught: settle(self, leased, caught._replace(failed={})),
    )


def tries_for_ever(patch: Patch) -> None:
    def fail(outbox: Any, event: Any, uri: str, error: str, now: Any, worker_id: str) -> bool:  # noqa: ANN401, PLR0913, PLR0917 - as fail has it
        outbox.increment_retry(event, uri, now, worker_id=worker_id, error=error)
        return False

    patch.setattr(index_worker, "fail", fail)


# ---------------------------------------------------------------- the past
def builds_the_past_from_the_present(patch: Patch) -> None:
    def view(history: History, _: IndexState) -> View:
        return View(history, IndexState(0, history.position()))

    patch.setattr(past, "View", view)


def keeps_every_past(patch: Patch) -> None:
    patch.setattr("perdure.engine.past.RETAINED", 1_000)


def shows_the_past_to_everybody(patch: Patch) -> None:
    recall = answer.recall

    def openly(sources: Sources, question: Question, ctx: RequestContext) -> RecallResult:
        is_past = isinstance(sources.reader.backend, View)
        return recall(sources, question, replace(ctx, role=Role.ADMIN) if is_past else ctx)

    patch.setattr(answer, "recall", openly)


# ---------------------------------------------------------------- vectors
def shares_the_memo_between_owners(patch: Patch) -> None:
    folder = vectors.memo_folder
    patch.setattr(vectors, "memo_folder", lambda root, account, _: folder(root, account, "all"))


def shares_the_memo_between_models(patch: Patch) -> None:
    patch.setattr(vectors, "_parameters", lambda _: {})


def remembers_no_vector(patch: Patch) -> None:
    patch.setattr(ArtifactStore, "results_of", lambda _, sids: [None] * len(sids))


# ---------------------------------------------------------------- another model
def forgets_old_vectors(patch: Patch) -> None:
    patch.setattr(indexes.Indexes, "_finished", lambda *_: [])


def embeds_behind_ones_back(patch: Patch) -> None:
    patch.setattr(follower, "INLINE_LIMIT", 1_000_000)
    patch.setattr(indexes, "INLINE_LIMIT", 1_000_000)


def takes_any_model_for_the_old_one(patch: Patch) -> None:
    named = indexes.index_name

    def whichever(embedder: Embedder | None, provider: str) -> str:
        is_own = vectors.embedder_id(embedder or HashingEmbedder(8)) == vectors.embedder_id(
            HashingEmbedder(128)
        )
        return named(HashingEmbedder(256) if is_own else embedder, provider)

    patch.setattr(indexes, "index_name", whichever)


def trusts_what_others_can_write(patch: Patch) -> None:
    patch.setattr(indexes, "_OTHERS", 0)


def asks_endpoints_that_were_left(patch: Patch) -> None:
    def anyhow(settings: EmbeddingSettings, config: Config) -> Embedder:
        named = replace(config.embedding, base_url=settings.base_url)
        return reopen_embedder(settings, replace(config, embedding=named))

    patch.setattr("perdure.app.providers.reopen_embedder", anyhow)


def builds_beside_others(patch: Patch) -> None:
    patch.setattr(SqliteIndex, "build_lock", lambda *_, **__: nullcontext(enter_result=True))


def starts_over(patch: Patch) -> None:
    patch.setattr(IndexBuild, "_differs", lambda *_: True)


def looks_for_nothing_lost(patch: Patch) -> None:
    patch.setattr(IndexBuild, "lost", lambda _: [])


def stops_for_nobody(patch: Patch) -> None:
    add = IndexBuild.add
    patch.setattr(
        IndexBuild,
        "add",
        lambda self, places, progress, _: add(self, places, progress, lambda: True),
    )


def switches_without_vectors(patch: Patch) -> None:
    steps = Indexer.steps

    def run(self: Indexer, places: Iterable[Uri]) -> Iterator[IndexBatch]:
        for batch in steps(self, places):
            batch.outage = None
            yield batch

    patch.setattr(Indexer, "steps", run)


def forgets_what_failed(patch: Patch) -> None:
    patch.setattr(Worker, "_register_failures", lambda *_: None)


def throws_away_first(patch: Patch) -> None:
    patch.setattr(Indexer, "demand_model", lambda _: None)


def takes_the_end_for_the_beginning(patch: Patch) -> None:
    finish = IndexBuild.finish

    def later(self: IndexBuild) -> IndexUpdate:
        self.position += 1_000_000
        return finish(self)

    patch.setattr(IndexBuild, "finish", later)


def lets_events_wait(patch: Patch) -> None:
    patch.setattr(
        index_worker,
        "build_in_background",
        lambda wanted, account, _, goes_on, progress: wanted.build_on(account, goes_on, progress),
    )


def removes_who_answers(patch: Patch) -> None:
    patch.setattr(indexes, "accounts_of", lambda _: iter(()))


def remembers_late(patch: Patch) -> None:
    def remembered(self: ArtifactStore, sids: Sequence[Any]) -> list[bytes | None]:
        first = self.catalogue.first_results(sids)
        return [self.get(first[sid]) if sid in first else None for sid in sids]

    patch.setattr(ArtifactStore, "results_of", remembered)


# ---------------------------------------------------------------- upkeep
def finds_no_difference(patch: Patch) -> None:
    patch.setattr(upkeep._IndexComparison, "_kind", lambda *_: None)


def sees_no_surplus(patch: Patch) -> None:
    patch.setattr(upkeep._IndexComparison, "surplus", lambda _: {})


def heals_nothing(patch: Patch) -> None:
    verify = upkeep.verify_index
    patch.setattr(upkeep, "verify_index", lambda follower, account, **_: verify(follower, account))


def heals_by_forgetting(patch: Patch) -> None:
    compare = upkeep._IndexComparison.compare

    def forgetting(self: upkeep._IndexComparison, batch: dict[str, Any]) -> dict[str, Any]:
        return {uri: [] for uri in compare(self, batch)}

    patch.setattr(upkeep._IndexComparison, "compare", forgetting)


def leaves_summaries_behind(patch: Patch) -> None:
    patch.setattr(indexes.AbstractTenantData, "_remove", lambda *_: 0)


def forgets_the_indexes_of_yesterday(patch: Patch) -> None:
    def once(self: indexes.IndexTenantData, indexes: Any) -> None:  # noqa: ANN401 - a callable
        known = indexes()
        self._indexes = lambda: known

    patch.setattr(indexes.IndexTenantData, "__init__", once)


# ---------------------------------------------------------------- records, sessions, folders
def _with_payload(patch: Patch, **payload: object) -> None:
    passage = records._passage_payload

    def changed(*args: Any) -> dict[str, Any]:  # noqa: ANN401 - as it has it
        return {**passage(*args), **payload}

    patch.setattr(records, "_passage_payload", changed)


def miscounts_lines(patch: Patch) -> None:
    _with_payload(patch, lines=(1, 1))


def knows_no_neighbours(patch: Patch) -> None:
    _with_payload(patch, near=(-1, -1, -1))


def hears_questions_everywhere(patch: Patch) -> None:
    _with_payload(patch, asks=True)


def knows_no_party(patch: Patch) -> None:
    _with_payload(patch, party=())


def numbers_no_passages(patch: Patch) -> None:
    def same(uri: str, level: Level, passage: int = 0) -> str:
        del passage
        return record_id(uri, level)

    patch.setattr("perdure.model.node.record_id", same)


def makes_a_whole_of_one(patch: Patch) -> None:
    patch.setattr(records, "_SEVERAL", 1)


def keeps_silence(patch: Patch) -> None:
    def passages(messages: Sequence[Any]) -> Iterator[records.IndexedPassage]:
        for each in messages:
            line = each.first_line
            passage = records.Passage(each.message.content, line, line)
            yield records.IndexedPassage(passage, context=(), length=0, message=each)

    patch.setattr(records, "_message_passages", passages)


def takes_any_text_for_a_time(patch: Patch) -> None:
    patch.setattr(records, "read_time", lambda value: datetime.now(UTC) if value else None)


def sums_up_all_users(patch: Patch) -> None:
    def owner(_: object, folder: Uri) -> str:
        return folder.owner_space or "user:ana"

    patch.setattr(indexer.Summaries, "_owner", owner)


def sums_up_what_is_alone(patch: Patch) -> None:
    patch.setattr(indexer, "_LEAST", 1)


def overwrites_earlier_messages(patch: Patch) -> None:
    patch.setattr(sessions, "messages_in", lambda _: [])


def reads_every_session(patch: Patch) -> None:
    """Let any caller read a session, as far as recall confirms it."""
    read = ConfirmedHits.read

    def openly(self: ConfirmedHits, uris: Iterable[str]) -> None:
        self.ctx = replace(self.ctx, role=Role.ADMIN)
        read(self, uris)

    patch.setattr(ConfirmedHits, "read", openly)
