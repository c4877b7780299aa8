"""The verbs of memory: keep it, and find it again, as it is or as it was."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Self

from perdure.artifacts import CID
from perdure.context.files import CONTENT
from perdure.engine.answering import Answering, Parts
from perdure.engine.past import Past, When
from perdure.engine.recall.recalling import Question
from perdure.engine.recall.result import RecallResult
from perdure.engine.worker import Worker
from perdure.errors import (
    EmbeddingError,
    InvalidValueError,
    NodeExistsError,
    NodeNotFoundError,
    StorageError,
)
from perdure.model import ContextNode, RequestContext, Uri, slugify
from perdure.model.values import JSON, encodable, read_moment
from perdure.storage.history import RESTORE, BlamedLine, Version

if TYPE_CHECKING:
    from perdure.engine.carrying.exporting import Exported
    from perdure.engine.erasing.plan import Forgotten
    from perdure.engine.past import Pasts
    from perdure.engine.rewinding import Rewound
    from perdure.engine.saving.outcome import SessionCommit
    from perdure.engine.unmerging import Unmerged
    from perdure.engine.why.provenance import Provenance


class Memory:
    """Memory on behalf of somebody. Whatever it saved, its next recall knows of."""

    def __init__(self, parts: Parts, request: RequestContext) -> None:
        self._parts = parts
        self.request = request

    def on_behalf_of(self, request: RequestContext) -> "Memory":
        """Return the same memory for somebody else; closing either closes both."""
        return Memory(self._parts, request)

    def close(self) -> None:
        self._parts.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------ keeping
    def save(  # noqa: PLR0913 - the public verb, with a name for each
        self,
        content: str,
        *,
        category: str,
        slug: str = "",
        metadata: Mapping[str, JSON] | None = None,
        mask_secrets: bool = False,
        replace_learned: bool = False,
    ) -> str:
        """Keep a text as a memory of the caller, or as its next version; return its URI.

        The same text twice is the same version. What could harm who reads it is made harmless. A
        secret in it is refused (`SecretRefusedError`), unless it may be masked. A page of what was
        learned from sessions is not replaced (`NodeExistsError`), unless that is meant.
        """
        if not encodable(content, "content").strip():
            raise InvalidValueError("there is nothing to remember. Fix: give a text.")
        place = Uri(self.request.account_id, ("users", self.request.user_id, "memories", category))
        if place.is_node and slug:
            raise InvalidValueError(
                f"{category!a} is one memory, and has no {slug[:80]!a}. Fix: leave the slug out."
            )
        _refuse_secret_names(category, slug)
        content, told = _validated(content, metadata or {}, mask_secrets=mask_secrets)
        if not place.is_node:
            place = place.child(slug or _slug(content))
        uri = str(place)
        try:
            before = self._parts.nodes.read_node(uri, self.request)
        except NodeNotFoundError:
            node = ContextNode(uri=uri, content=content, metadata=told)
        else:
            if before.content == content and told.items() <= before.metadata.items():
                return uri
            if not replace_learned:
                _refuse_learned(before)
            node = before.revised(content=content, metadata=told)
        self._parts.nodes.write_node(node, self.request)
        self.settle()
        return uri

    def commit_session(  # noqa: PLR0913 - as before
        self,
        messages: Iterable[Mapping[str, object]],
        *,
        session_id: str,
        extract: bool = True,
        min_confidence: float | None = None,
        dry_run: bool = False,
        again: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> "SessionCommit":
        """Keep the messages of a session, and what can be learned from them.

        The same twice changes nothing; so does what was begun before and stopped anywhere. With
        more messages, it goes on with those. Secrets in them are masked. `extract=False` keeps and
        indexes the messages only; a dry run writes nothing, and says what would be done. `again`
        learns from all messages anew: what could not be kept before, or was not found.
        """
        from perdure.engine.saving.saving import (  # noqa: PLC0415 - who has a session pays
            LEAST_CONFIDENCE,
            Wishes,
            saving_for,
        )

        wishes = Wishes(
            LEAST_CONFIDENCE if min_confidence is None else min_confidence,
            extract=extract,
            dry_run=dry_run,
            again=again,
            progress=progress or (lambda _done, _all: None),
        )
        saving = saving_for(self._parts, replace(self.request, session_id=session_id), wishes)
        return saving.commit(messages, session_id, self.request, settle=self.settle)

    def unmerge(self, uri: str, statement: str = "") -> "Unmerged":
        """Undo the last merge of a node, or the last one of a statement of it.

        The node is again what it was before; what was merged is a memory of its own from then on,
        and the two are not merged again. What was superseded holds again.
        """
        from perdure.engine.unmerging import Unmerging  # noqa: PLC0415 - who takes apart pays

        done = Unmerging(self._parts.nodes, self._parts.history).unmerge(
            uri, self.request, statement
        )
        self.settle()
        return done

    def restore(self, uri: str, version: CID | When) -> ContextNode:
        """Let a node be again what it was at a moment, or with a content; return it.

        That is its next version, and nothing is lost; a node that was deleted comes back. If it is
        so already, nothing changes. The caller must be allowed to see it then and now, and to
        change it. `NodeNotFoundError` if there was none.
        """
        from perdure.engine.restoring import Restoring  # noqa: PLC0415 - who restores pays

        node = Restoring(self._parts.nodes, self._parts.history).planned(
            uri, self._pasts.state, version, self.request
        )
        if node is not None:
            self._parts.nodes.because(origin=RESTORE).write_node(node, self.request)
            self.settle()
        return self.read(uri)

    def rewind(self, when: When, folder: str = "", *, dry_run: bool = False) -> "Rewound":
        """Let all memories in a folder be as they were at a moment; return what that changes.

        Without a folder, it is all that the caller remembers. In one commit, what changed says
        again what it said, what was deleted comes back, and what was not there goes; history keeps
        all of it, so a rewind can be rewound. Sessions stay. A dry run changes nothing.
        """
        from perdure.engine.rewinding import Rewinding  # noqa: PLC0415 - who rewinds pays

        own = Uri(self.request.account_id, ("users", self.request.user_id))
        below = self._parts.nodes.reach.seen(folder, self.request) if folder else own
        rewinding = Rewinding(self._parts.nodes, self._parts.history, self.request)
        done = rewinding.rewind(self._pasts.state(when), below, dry_run=dry_run)
        self.settle()
        return done

    def forget(
        self, uri: str, *, erase: bool = False, dry_run: bool = False, reason: str = ""
    ) -> "Forgotten":
        """Put a node away, or all nodes in a folder; or erase it, so that nothing of it is left.

        What is put away is found by nobody, and `unarchive` brings it back. What is erased is gone
        from its files, from every state of history and from all that was derived; a signed receipt
        says so. That is only for ROOT, for all accounts share one history. A user or an agent
        (`ctx://account/users/id`) goes with their sessions. Twice is once; a dry run changes
        nothing, and says what would be done. If it is interrupted, the next one who opens this
        memory ends it.
        """
        from perdure.engine.erasing.forgetting import Forgetting  # noqa: PLC0415 - who forgets pays

        forgetting = Forgetting(self._parts.nodes, self._parts.erasing, self.request)
        if erase:
            return forgetting.erase(uri, reason, dry_run=dry_run)
        done = forgetting.archive(uri, reason, dry_run=dry_run)
        if done.archived and not dry_run:
            self.settle()
        return done

    def export(
        self, folder: Path | str, *, progress: Callable[[int, int], None] | None = None
    ) -> "Exported":
        """Write all that the caller reaches in this account into a folder, with its history.

        Memories are there as Markdown for people, and as one archive that `perdure import` takes
        in on another machine. The folder is empty, or an earlier export, of which only what
        changed is written. If it is interrupted, do it again.
        """
        from perdure.engine.carrying.exporting import Exporting  # noqa: PLC0415 - who exports pays
        from perdure.engine.carrying.reaching import Reachable  # noqa: PLC0415 - as before

        reach = Reachable.by(self.request, self._parts.history, self._parts.nodes)
        exporting = Exporting(self._parts.recorded, reach, reach.said(self.request))
        return exporting.run(Path(folder), progress)

    def settle(self) -> None:
        """Bring the index up to date with all that was written, if that can be done now.

        What was written is there in any case, and a recall says how far its index is behind.
        """
        with suppress(EmbeddingError, StorageError):
            self._worker().drain(self.request.account_id)

    # ------------------------------------------------------------ reading
    def read(self, uri: str) -> ContextNode:
        return self._parts.nodes.read_node(uri, self.request)

    def history(self, uri: str) -> list[Version]:
        """Return the versions of the content of a node, oldest first."""
        place = self._parts.nodes.reach.seen(uri, self.request)
        return self._parts.history.versions(self._parts.nodes.file(place, CONTENT))

    def blame(self, uri: str) -> list[BlamedLine]:
        """Return the lines of the content of a node, each with the version that brought it."""
        place = self._parts.nodes.reach.seen(uri, self.request)
        return self._parts.history.blame(self._parts.nodes.file(place, CONTENT))

    def why(self, uri: str) -> "Provenance":
        """Return where a node comes from: evidence, versions, merges, edges, what it superseded.

        Evidence is looked up anew. What the caller may not see is counted, or not told of at all.
        """
        from perdure.engine.why.asking import Asking  # noqa: PLC0415 - who asks why pays

        return Asking(self._parts.nodes, self._parts.history, self.request).why(uri)

    # ------------------------------------------------------------ finding
    def recall(  # noqa: PLR0913 - the public verb, with a name for each
        self,
        query: str,
        *,
        top_k: int = 10,
        budget_tokens: int | None = None,
        at: When | None = None,
        valid_at: datetime | date | str | None = None,
        filters: Mapping[str, JSON] | None = None,
        project: str = "",
    ) -> RecallResult:
        """Return what memory has to say to a question, now or as of a moment.

        `at` asks what was known then; `valid_at`, what held then. With a budget, `context` is
        Markdown for a prompt: the caller's profile, then what is of the project, then the rest.
        """
        limits = top_k, budget_tokens
        question = _question(query, limits, valid_at, filters, project)
        if at is not None:
            return self._past(at).recall(question, self.request)
        return Answering(self._parts).recall(question, self.request)

    def at(self, when: When) -> "PastMemory":
        """Return memory as it was at a moment; it can be asked and read, and not changed."""
        return PastMemory(self._past(when), self.request)

    def _past(self, when: When) -> Past:
        return self._pasts.at(when)

    @property
    def _pasts(self) -> "Pasts":
        return self._parts.pasts(self.request.account_id)

    def _worker(self) -> Worker:
        return Worker(self._parts.outbox, self._parts.present(self.request.account_id).following)


class PastMemory:
    """Memory as of a moment."""

    def __init__(self, past: Past, request: RequestContext) -> None:
        self._past = past
        self.request = request

    def read(self, uri: str) -> ContextNode:
        return self._past.reader.read_node(uri, self.request)

    def recall(  # noqa: PLR0913 - as of the present
        self,
        query: str,
        *,
        top_k: int = 10,
        budget_tokens: int | None = None,
        valid_at: datetime | date | str | None = None,
        filters: Mapping[str, JSON] | None = None,
        project: str = "",
    ) -> RecallResult:
        """Return what memory had to say to a question then; all else is as in the present."""
        limits = top_k, budget_tokens
        question = _question(query, limits, valid_at, filters, project)
        return self._past.recall(question, self.request)


def _question(
    text: str,
    limits: tuple[int, int | None],
    valid_at: datetime | date | str | None,
    filters: Mapping[str, JSON] | None,
    project: str,
) -> Question:
    top_k, budget_tokens = limits
    return Question(
        text=text,
        top_k=top_k,
        budget_tokens=budget_tokens,
        valid_at=None if valid_at is None else _moment(valid_at),
        filters=filters,
        project=project,
    )


def _validated(
    content: str, metadata: Mapping[str, JSON], *, mask_secrets: bool
) -> tuple[str, Mapping[str, JSON]]:
    """Return a text and what is told of it as they may be kept."""
    from perdure.engine.validate.secrets import SecretPolicy  # noqa: PLC0415 - who saves pays
    from perdure.engine.validate.validating import safe  # noqa: PLC0415 - as before

    clean = safe(content, metadata, SecretPolicy.MASK if mask_secrets else SecretPolicy.REFUSE)
    return clean.content, clean.metadata


def _refuse_secret_names(category: str, slug: str) -> None:
    """Refuse a place that names a secret: names are in every listing, and can't be masked."""
    from perdure.engine.validate.texts import refuse_secrets  # noqa: PLC0415 - who saves pays

    refuse_secrets(category, "category", "name it otherwise.")
    refuse_secrets(slug, "slug", "name it otherwise.")


def _refuse_learned(page: ContextNode) -> None:
    from perdure.engine.merge.grounds import grounds_of  # noqa: PLC0415 - as before

    if grounds_of(page):
        raise NodeExistsError(
            f"{page.uri!a} says what was learned from sessions, and this would replace it. Nothing "
            "was written. Fix: give it another slug, add it to the page by hand, or let learned "
            "pages be replaced."
        )


def _slug(content: str) -> str:
    """Return a name for a text that nobody named; another text has another one."""
    digest = sha256(content.encode(errors="replace")).hexdigest()[:8]
    return f"{slugify(content[:200])[:60].strip('-')}-{digest}"


def _moment(when: datetime | date | str) -> datetime:
    """Return a time; a date is its beginning, and what has no zone is in UTC."""
    if isinstance(when, str):
        read = read_moment(when)
        if read is None:
            raise InvalidValueError(
                f"{when[:80]!a} is no time. Fix: write it as 2026-03-02 or 2026-03-02T10:00:00Z."
            )
        return read
    if not isinstance(when, datetime):
        when = datetime(when.year, when.month, when.day, tzinfo=UTC)
    return when if when.tzinfo else when.replace(tzinfo=UTC)
