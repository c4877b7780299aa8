"""On whose behalf a model is asked."""

from dataclasses import dataclass

from perdure.errors import InvalidValueError
from perdure.model import check_owner_space
from perdure.model.uri import check_id
from perdure.model.values import bounded

_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Occasion:
    """Whose memory it is for, in which session, and what for. No call is made without one."""

    account_id: str
    owner_space: str
    session_id: str
    purpose: str
    """One word or two of ours, as `extract`."""

    def __post_init__(self) -> None:
        check_id(self.account_id, "account")
        check_owner_space(self.owner_space)
        for name in ("session_id", "purpose"):
            if not bounded(getattr(self, name), _LONGEST, name):
                raise InvalidValueError(
                    f"the {name} of a call is empty, so that it would count for no budget. "
                    "Fix: say in which session it is made, and what for."
                )
