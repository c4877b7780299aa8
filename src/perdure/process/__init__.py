"""The process seam: what a host process may read of memory, in the folder where it works.

Memory that is not available gives an empty answer, so that no process fails because of it.
"""

from typing import TYPE_CHECKING

from perdure.plugins import exports

if TYPE_CHECKING:
    from perdure.process.here import offer_save_here, recall_here
    from perdure.process.plan_path import state_path
else:
    __getattr__ = exports(
        __name__, {"here": "offer_save_here recall_here", "plan_path": "state_path"}
    )

__all__ = ["offer_save_here", "recall_here", "state_path"]
