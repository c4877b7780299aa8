"""Beginning plans, and saying which of them is active."""

from perdure.errors import ConcurrentModificationError, HarnessError, PlanNameError
from perdure.harness.modes import Device
from perdure.harness.plans import MARKER, Plan, PlanText, named_plan, read_plan
from perdure.harness.state import StateDir
from perdure.harness.state_writing import remove_local, write_in, write_local
from perdure.storage import ABSENT


def start_plan(place: StateDir, device: Device, plan: Plan, text: str) -> PlanText:
    """Write a plan that is not there yet, with an empty progress, and make it active.

    One that is there stays as it is: `HarnessError`.
    """
    try:
        write_in(place, device, plan.plan_file, text, expect=ABSENT)
    except ConcurrentModificationError as error:
        raise HarnessError(
            f"the plan {plan.called!a} is there already, in {place.shown!a}. "
            f"Fix: `perdure plan switch {plan.called}` makes it active."
        ) from error
    try:
        progress = f"# Progress: {plan.called}\n"
        write_in(place, device, plan.progress_file, progress, expect=ABSENT)
    except ConcurrentModificationError:
        pass  # what was noted before stays
    activate(place, device, plan)
    return PlanText(plan, text)


def switch_plan(place: StateDir, device: Device, name: str) -> PlanText:
    """Make a plan that is there the active one."""
    plan = named_plan(name)
    found = read_plan(place, plan)
    if found is None:
        raise PlanNameError(
            f"there is no plan {name!a} in {place.shown!a}. "
            "Fix: `perdure plan list` shows what there is, `perdure plan start` begins one."
        )
    activate(place, device, plan)
    return found


def activate(place: StateDir, device: Device, plan: Plan) -> None:
    """Let a plan be the active one of this checkout; the one without a name has no marker."""
    if plan.name:
        write_local(place.project_root, device.home, MARKER, f"{plan.name}\n")
    else:
        clear_plan(place, device)


def clear_plan(place: StateDir, device: Device) -> None:
    """Let no named plan be active."""
    remove_local(place.project_root, device.home, MARKER)
