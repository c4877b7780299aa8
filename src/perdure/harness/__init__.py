"""Projects: which one a folder is of, the repositories that are known, plans and other state."""

from typing import TYPE_CHECKING

from perdure.exports import exports

if TYPE_CHECKING:
    from perdure.harness.plans import (
        DEFAULT,
        Plan,
        PlanText,
        list_plans,
        named_plan,
        read_plan,
        resolve_active_plan,
        tasks_in,
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
    from perdure.harness.state import (
        Device,
        StateDir,
        harness_state_dir,
        path_in,
        read_state_file,
        state_mode,
    )
    from perdure.harness.state_writing import (
        clear_plan,
        mark_mode,
        start_plan,
        switch_plan,
        write_state_file,
    )
    from perdure.markdown import Task
else:
    __getattr__ = exports(
        __name__,
        {
            "plans": "DEFAULT Plan PlanText Task list_plans named_plan read_plan "
            "resolve_active_plan tasks_in",
            "projects": "Project project_locator remote_of resolve_project",
            "repo_registry": "Repo find_repo list_repos register_repo registry_locator "
            "unregister_repo",
            "state": "Device StateDir harness_state_dir path_in read_state_file state_mode",
            "state_writing": "clear_plan mark_mode start_plan switch_plan write_state_file",
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
