"""Whether the words that statements rest on are still where they were said."""

from dataclasses import replace

from perdure.context.nodes import Nodes
from perdure.engine.extract.evidence import Evidence, cid_of
from perdure.engine.merge.grounds import Grounds, Saying
from perdure.engine.sessions import Sessions
from perdure.engine.why.provenance import Quote, Said
from perdure.errors import AccessDeniedError, BrokenNodeError, InvalidUriError
from perdure.model import RequestContext, Uri
from perdure.model.transcript import Message

_UNREADABLE = "the session can't be read; `perdure repair` says why"
_SHOWN = 200
_NO_SESSION = "the session is not there any more"


class Witnesses:
    """Reads each session once, on behalf of somebody who asks why."""

    def __init__(self, nodes: Nodes, ctx: RequestContext) -> None:
        self._sessions = Sessions(nodes)
        self._ctx = ctx
        self._heard: dict[str, list[Message] | str | None] = {}

    def said(self, grounds: Grounds) -> tuple[tuple[Said, ...], int]:
        """Return where a statement was said, and in how many places out of reach it was too."""
        within = [each for each in grounds.said if self._messages(each.session) is not None]
        return tuple(map(self._said, within)), len(grounds.said) - len(within)

    def _said(self, saying: Saying) -> Said:
        saying = self._told(saying) if saying.is_withheld else saying
        first, *more = saying.evidence
        speaker = saying.speaker
        quotes = (self._quote(first, saying, speaker), *(self._quote(e, saying) for e in more))
        return Said(saying.session, speaker, quotes, saying.wording)

    def _quote(self, evidence: Evidence, saying: Saying, speaker: str | None = None) -> Quote:
        """Look for some words; if it is said who spoke, that must be so."""
        found = self._messages(saying.session)
        trouble = found if isinstance(found, str) else _trouble(evidence, found or [], speaker)
        return Quote(evidence.message, evidence.quote, trouble)

    def _told(self, saying: Saying) -> Saying:
        """Return a saying with what was kept back, for somebody who may read the session."""
        found = self._messages(saying.session)
        heard = found if isinstance(found, list) else []
        told = tuple(
            each
            if _amiss(each, heard)
            else replace(each, quote=heard[each.message].content[:_SHOWN])
            for each in saying.evidence
        )
        first = told[0]
        speaker = "" if _amiss(first, heard) else heard[first.message].speaker
        return replace(saying, evidence=told, speaker=speaker)

    def _messages(self, session: str) -> list[Message] | str | None:
        """Return what was said in a session, or why nobody knows; None if it is out of reach."""
        if session not in self._heard:
            self._heard[session] = self._read(session)
        return self._heard[session]

    def _read(self, session: str) -> list[Message] | str | None:
        try:
            place = Uri(self._ctx.account_id, ("sessions", session))
            return self._sessions.messages(place, self._ctx) or _NO_SESSION
        except InvalidUriError:
            return _NO_SESSION
        except BrokenNodeError:
            return _UNREADABLE
        except AccessDeniedError:
            return None


def _trouble(evidence: Evidence, messages: list[Message], speaker: str | None) -> str:
    """Say what is wrong with some words; nothing if nothing is."""
    if trouble := _amiss(evidence, messages):
        return trouble
    message = messages[evidence.message]
    if not evidence.quote.strip() or evidence.quote not in message.content:
        return "the message does not say this"
    return "" if speaker in {None, message.speaker} else "somebody else said this"


def _amiss(evidence: Evidence, messages: list[Message]) -> str:
    """Say why a message is not the one that was heard; nothing if it is."""
    if not 0 <= evidence.message < len(messages):
        return f"the session has no message {evidence.message} any more"
    same = cid_of(messages[evidence.message].content) == evidence.cid
    return "" if same else "the message was changed since"
