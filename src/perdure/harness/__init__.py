"""Projects: which one a folder is of, the repositories that are known, plans and other state."""

from typing import TYPE_CHECKING

from perdure.exports import exports

if TYPE_CHECKING:
    from perdure.harness.modes import Device, state_mode
    from perdure.harness.planning import clear_plan, start_plan, switch_plan
    from perdure.harness.plans import (
        DEFAULT,
        Plan,
        PlanText,
        list_plans,
        named_plan,
        read_plan,
        resolve_active_plan,
    )
    from perdure.harness.projects import Project, project_locator, remote_of, resolve_project
    from perdure.harness.repo_registry import (
        Repo,
        find_repo,
        list_repos,
        register_repo,
        registry_locator,
        unregister_repo,
    )
    from perdure.harness.state import StateDir, harness_state_dir, path_in, read_state_file
    from perdure.harness.state_writing import mark_mode, write_state_file
    from perdure.harness.tasks import Task, tasks_in
else:
    __getattr__ = exports(
        __name__,
        {
            "planning": "clear_plan start_plan switch_plan",
            "plans": "DEFAULT Plan PlanText list_plans named_plan read_plan resolve_active_plan",
            "projects": "Project project_locator remote_of resolve_project",
            "repo_registry": "Repo find_repo list_repos register_repo registry_locator "
            "unregister_repo",
            "state": "StateDir harness_state_dir path_in read_state_file",
            "modes": "Device state_mode",
            "state_writing": "mark_mode write_state_file",
            "tasks": "Task tasks_in",
        },
    )

__all__ = [
    "DEFAULT",
    "Device",
    "Plan",
    "PlanText",
    "Project",
    "Repo",
    "StateDir",
    "Task",
    "clear_plan",
    "find_repo",
    "harness_state_dir",
    "list_plans",
    "list_repos",
    "mark_mode",
    "named_plan",
    "path_in",
    "project_locator",
    "read_plan",
    "read_state_file",
    "register_repo",
    "registry_locator",
    "remote_of",
    "resolve_active_plan",
    "resolve_project",
    "start_plan",
    "state_mode",
    "switch_plan",
    "tasks_in",
    "unregister_repo",
    "write_state_file",
]
