"""What a process may ask of memory: to read it, where it works, and nothing else.

All that can't be had is answered with nothing, so that no process is held up by an absent memory.
"""

from typing import TYPE_CHECKING

from perdure.exports import exports

if TYPE_CHECKING:
    from perdure.process.here import offer_save_here, recall_here
    from perdure.process.plan_path import state_path
else:
    __getattr__ = exports(
        __name__, {"here": "offer_save_here recall_here", "plan_path": "state_path"}
    )

__all__ = ["offer_save_here", "recall_here", "state_path"]
