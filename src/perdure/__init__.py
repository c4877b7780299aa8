"""Memory for AI agents that its owner can read, edit, search, rewind and prove.

    import perdure

    with perdure.open(user="ana") as memory:
        memory.save("Prefers tabs over spaces.", category="preference", slug="indentation")
        for hit in memory.recall("Which indentation?").hits:
            print(hit.uri, hit.snippet)

`open` opens a memory for one caller, `open_async` the same for asyncio. Every verb is a method of
`Memory`; what it returns is a frozen value; what it refuses is a `PerdureError` that says how to
fix it.

    save, remember, commit_session, append, unmerge     keep and learn
    candidates, accept, reject                          decide what is worth keeping
    recall, briefing, at, sessions, why                 find, now and as of a state
    shown                                               what agents were given, and when
    read, list, tree, write, edit, move, relate         nodes, by URI or short name
    archive, unarchive, delete, forget                  take out of use, or erase for good
    history, blame, restore, rewind                     every version
    import_from, export                                 from and to other programs and machines
    status, doctor, lint, repair, index, outbox, log    upkeep
    projects                                            name, merge, split and move projects
    for_caller, tenants                                 users, agents and accounts
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from perdure import errors
from perdure.errors import *  # noqa: F403 - all of them are public
from perdure.plugins import exports

if TYPE_CHECKING:
    from perdure.artifacts.cid import CID
    from perdure.engine.async_memory import AsyncMemory, AsyncPastMemory
    from perdure.engine.briefing import BriefingItem
    from perdure.engine.browse import Edges, Entry
    from perdure.engine.conflicts import Conflict
    from perdure.engine.conversation import ConversationFile, read_conversation, session_id_for
    from perdure.engine.erasure_plan import ErasurePlan, ErasureReport, ForgetReport
    from perdure.engine.file_watch import WatchKind, WatchReport
    from perdure.engine.indexing.index_worker import WorkKind, WorkReport, WorkResult
    from perdure.engine.indexing.indexes import ListedIndex
    from perdure.engine.learn.new_statement import Citation, RememberResult
    from perdure.engine.learn.review_queue import ReviewItem
    from perdure.engine.lint import LintFinding
    from perdure.engine.memory import Memory, PastMemory
    from perdure.engine.namespaces import TenantDeletion, TenantKind, Tenants
    from perdure.engine.node_writes import SaveResult, WriteResult
    from perdure.engine.present import Lag
    from perdure.engine.project_registry import ProjectInfo, Projects, ReassignmentReport
    from perdure.engine.provenance import (
        FormerNode,
        MergeRecord,
        Provenance,
        Quote,
        SessionEvidence,
        StatementProvenance,
    )
    from perdure.engine.recall.result import (
        INTRODUCTION,
        Hint,
        HintKind,
        Hit,
        RecallResult,
        tokens_in,
    )
    from perdure.engine.reminders import Enforcement, Fix, Reminder
    from perdure.engine.repair import RepairFinding, RepairReport
    from perdure.engine.restore import RewindOutcome, RewindReport, RewindStep
    from perdure.engine.services import Check, Checkup, Severity, StatusSection
    from perdure.engine.session_commit import CandidateResult, Outcome, SessionCommit
    from perdure.engine.sessions import SessionInfo
    from perdure.engine.shown_lines import LineState, ShownEmission, ShownLine
    from perdure.engine.tool_calls import AgentAction
    from perdure.engine.upkeep import IndexProof, IndexStatus, IndexUpkeep, OutboxUpkeep
    from perdure.engine.versions import Garbage, Proof, VerificationReport, VersionLog, check_proof
    from perdure.llm.ledger import Cost
    from perdure.model import ContextNode
    from perdure.model.anchors import Anchors, AnchorStatus, SessionOrigin
    from perdure.model.messages import SkippedContent
    from perdure.proofs.proof import ProvenEntry
    from perdure.safety.validation import Note, presentable
    from perdure.storage.reconciliation import EditReport
    from perdure.storage.text_history import BlamedLine, Event, Version
    from perdure.transfer.export import is_export
    from perdure.transfer.imports import ImportReport, import_formats
    from perdure.transfer.migrate import MigrationPlan, MigrationReport
else:
    __getattr__ = exports(
        __name__,
        {
            "artifacts.artifact": "CID",
            "proofs.proof": "ProvenEntry",
            "engine.tool_calls": "AgentAction",
            "engine.present": "Lag",
            "engine.async_memory": "AsyncMemory AsyncPastMemory",
            "engine.briefing": "BriefingItem",
            "engine.browse": "Edges Entry",
            "engine.conflicts": "Conflict",
            "engine.conversation": "ConversationFile read_conversation session_id_for",
            "transfer.migrate": "MigrationReport MigrationPlan",
            "storage.reconciliation": "EditReport",
            "engine.erasure_plan": "ErasureReport ErasurePlan ForgetReport",
            "transfer.export": "is_export",
            "transfer.imports": "ImportReport import_formats",
            "engine.learn.new_statement": "Citation RememberResult",
            "engine.learn.review_queue": "ReviewItem",
            "engine.lint": "LintFinding",
            "llm.ledger": "Cost",
            "engine.memory": "Memory PastMemory",
            "engine.project_registry": "ProjectInfo Projects ReassignmentReport",
            "engine.namespaces": "TenantDeletion TenantKind Tenants",
            "engine.recall.result": "Hint HintKind Hit INTRODUCTION RecallResult tokens_in",
            "engine.reminders": "Enforcement Fix Reminder",
            "engine.repair": "RepairFinding RepairReport",
            "engine.restore": "RewindOutcome RewindStep RewindReport",
            "engine.session_commit": "Outcome CandidateResult SessionCommit",
            "engine.sessions": "SessionInfo",
            "safety.validation": "Note presentable",
            "engine.provenance": (
                "FormerNode MergeRecord Provenance Quote SessionEvidence StatementProvenance"
            ),
            "engine.shown_lines": "LineState ShownEmission ShownLine",
            "engine.versions": "Garbage VersionLog Proof VerificationReport check_proof",
            "engine.indexing.indexes": "ListedIndex",
            "engine.services": "Check Checkup Severity StatusSection",
            "engine.upkeep": "IndexProof IndexStatus IndexUpkeep OutboxUpkeep",
            "engine.file_watch": "WatchKind WatchReport",
            "engine.indexing.index_worker": "WorkKind WorkReport WorkResult",
            "engine.node_writes": "SaveResult WriteResult",
            "model": "ContextNode",
            "model.anchors": "Anchors SessionOrigin AnchorStatus",
            "model.messages": "SkippedContent",
            "storage.text_history": "BlamedLine Event Version",
        },
    )

__all__ = ["AsyncMemory", "AsyncPastMemory", "Memory", "PastMemory", "open", "open_async"]
__all__ += [
    "CandidateResult",
    "Citation",
    "Outcome",
    "RememberResult",
    "ReviewItem",
    "SaveResult",
    "SessionCommit",
]
__all__ += [
    "ConversationFile",
    "SessionInfo",
    "SkippedContent",
    "read_conversation",
    "session_id_for",
]
__all__ += ["INTRODUCTION", "Hint", "HintKind", "Hit", "Lag", "RecallResult", "tokens_in"]
__all__ += ["AnchorStatus", "Anchors", "BriefingItem", "SessionOrigin"]
__all__ += [
    "Conflict",
    "ContextNode",
    "Edges",
    "EditReport",
    "Entry",
    "Note",
    "WriteResult",
    "presentable",
]
__all__ += ["ErasurePlan", "ErasureReport", "ForgetReport"]
__all__ += ["TenantDeletion", "TenantKind", "Tenants"]
__all__ += ["CID", "BlamedLine", "Event", "Version", "VersionLog"]
__all__ += ["RewindOutcome", "RewindReport", "RewindStep"]
__all__ += ["FormerNode", "MergeRecord", "Provenance", "Quote"]
__all__ += ["SessionEvidence", "StatementProvenance"]
__all__ += ["LineState", "ShownEmission", "ShownLine"]
__all__ += ["Garbage", "Proof", "ProvenEntry", "VerificationReport", "check_proof"]
__all__ += ["ImportReport", "MigrationPlan", "MigrationReport", "import_formats", "is_export"]
__all__ += ["Check", "Checkup", "Severity", "StatusSection"]
__all__ += ["LintFinding", "RepairFinding", "RepairReport"]
__all__ += ["IndexProof", "IndexStatus", "IndexUpkeep", "ListedIndex", "OutboxUpkeep"]
__all__ += ["Cost", "WatchKind", "WatchReport", "WorkKind", "WorkReport", "WorkResult"]
__all__ += ["ProjectInfo", "Projects", "ReassignmentReport"]
__all__ += ["AgentAction", "Enforcement", "Fix", "Reminder"]
__all__ += errors.__all__  # type: ignore[attr-defined] # it is made when imported


def open(  # noqa: PLR0913 - a name for each
    *,
    user: str | None = None,
    agent: str | None = None,
    account: str | None = None,
    project: Path | str = "",
    home: Path | str | None = None,
    backend: str | None = None,
) -> "Memory":
    """Open the memory that the config file and the environment name, for one caller.

    Without `user`, `agent` and `account`, the caller is the user of this machine, who reaches
    everything in the account `local`. A named `user` is a member of the account, who reaches what
    is theirs or shared. `project` is the slug of a project, or a folder in one: its memories come
    first in what `recall` packs for a prompt. `home` and `backend` replace what the config names.
    Close the memory, or use it in a `with`.
    """
    from perdure.app import caller_for, open_memory  # noqa: PLC0415 - see exports

    named = {} if home is None else {"PERDURE_HOME": str(Path(home).expanduser().absolute())}
    environ = {**os.environ, **named}
    caller = caller_for(environ, account=account, user=user, agent=agent)
    if not project:
        return open_memory(environ, caller, backend=backend)
    from perdure.app.project_state import identity_named  # noqa: PLC0415 - see exports

    return open_memory(environ, caller, backend=backend, project=identity_named(project))


def open_async(  # noqa: PLR0913 - as `open`
    *,
    user: str | None = None,
    agent: str | None = None,
    account: str | None = None,
    project: Path | str = "",
    home: Path | str | None = None,
    backend: str | None = None,
) -> "AsyncMemory":
    """Return the memory that `open` opens, for asyncio; use it in an `async with`."""
    from perdure.engine.async_memory import AsyncMemory  # noqa: PLC0415 - see exports

    def opening() -> "Memory":
        return open(
            user=user, agent=agent, account=account, project=project, home=home, backend=backend
        )

    return AsyncMemory(opening)


def __dir__() -> list[str]:
    return sorted(__all__)
