"""Where a node comes from, as programs read it."""

from datetime import datetime

from perdure.engine.validate.texts import presentable
from perdure.engine.why.provenance import Claim, Former, Merged, Provenance, Said
from perdure.storage.history import Version
from perdure.surfaces.nodes.describing import stamp, told_edges
from perdure.surfaces.telling import utc_time


def told(found: Provenance) -> dict[str, object]:
    return {
        "uri": found.uri,
        "title": found.title,
        "kind": found.kind.value,
        "version": found.version,
        "created_at": stamp(found.created_at),
        "updated_at": stamp(found.updated_at),
        "holds": found.holds,
        "messages": found.messages,
        "source": found.source or None,
        "statements": [_claim(each) for each in found.claims],
        "merges": [_merged(each) for each in found.merges],
        "superseded": [_former(each) for each in found.superseded],
        "superseded_by": [{"uri": each.uri, "reason": each.reason} for each in found.superseded_by],
        "edges": told_edges(found.edges),
        "incoming": told_edges(found.incoming),
        "versions": [_version(each) for each in found.versions],
        "unrecorded": found.unrecorded,
    }


def _claim(claim: Claim) -> dict[str, object]:
    return {
        "text": presentable(claim.text),
        "cid": claim.cid,
        "extracted": claim.extracted,
        "since": claim.since.isoformat() if claim.since else None,
        "when": _stamp(claim.when),
        "confidence": claim.confidence,
        "topic": claim.topic or None,
        "holds": claim.holds if claim.extracted else None,
        "said": [_said(each) for each in claim.said],
        "out_of_reach": claim.out_of_reach,
    }


def _said(each: Said) -> dict[str, object]:
    return {
        "session": each.session,
        "speaker": presentable(each.speaker),
        "wording": presentable(each.wording) or None,
        "quotes": [
            {
                "message": quote.message,
                "quote": presentable(quote.text),
                "holds": quote.holds,
                "trouble": quote.trouble or None,
            }
            for quote in each.quotes
        ],
    }


def _merged(merged: Merged) -> dict[str, object]:
    return {
        "version": merged.version,
        "action": merged.action,
        "statement": merged.statement or None,
        "text": presentable(merged.text) or None,
        "time": _stamp(merged.when),
        "former": list(merged.former),
        "undoable": merged.undoable,
    }


def _former(former: Former) -> dict[str, object]:
    return {
        "uri": former.uri,
        "text": presentable(former.text),
        "reason": former.reason,
        "valid_from": _stamp(former.valid_from),
        "valid_until": _stamp(former.valid_until),
        "statements": [_claim(each) for each in former.claims],
        "superseded": [_former(each) for each in former.superseded],
    }


def _version(version: Version) -> dict[str, object]:
    return {
        "version": version.number,
        "time": utc_time(version.time),
        "actor": version.actor,
        "origin": version.origin,
        "reason": version.reason,
        "cid": None if version.cid is None else str(version.cid),
    }


def _stamp(moment: datetime | None) -> str | None:
    return stamp(moment) if moment else None
