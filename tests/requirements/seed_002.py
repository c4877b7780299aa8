from tests.requirements import Requirement

SEED = "002_50d514758fec3578.txt"


REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(
        id="002-three-functions",
        section="Function table",
        behaviour="`perdure.process` exports exactly recall_here, offer_save_here and state_path.",
    ),
    Requirement(
        id="002-module-is-the-contract",
        section="Function table",
        behaviour="All that the shim can do can be done by importing `perdure.process`.",
    ),
    Requirement(
        id="002-public-readers-only",
        section="Function table",
        behaviour="The three functions are built on the public readers of memory alone.",
    ),
    Requirement(
        id="002-writes-nothing",
        section="Read-only invariant",
        behaviour=(
            "No call of the process seam creates, changes or removes anything in a store, the "
            "home or the project."
        ),
    ),
    Requirement(
        id="002-imports-no-write-path",
        section="Read-only invariant",
        behaviour="The process seam neither imports nor calls anything that writes.",
    ),
    Requirement(
        id="002-saving-stays-elsewhere",
        section="Read-only invariant",
        behaviour="Saving a candidate takes a separate call of the save verb.",
    ),
    Requirement(
        id="002-context-none",
        section="context",
        behaviour="Each of the three functions accepts `None` as its context.",
    ),
    Requirement(
        id="002-context-keys-optional",
        section="context",
        behaviour="Every key of the context may be missing.",
    ),
    Requirement(
        id="002-context-cwd",
        section="context",
        behaviour="The context's `cwd` is the project root for all three functions.",
    ),
    Requirement(
        id="002-context-cwd-default",
        section="context",
        behaviour="Without `cwd` the working directory of the process is the project root.",
    ),
    Requirement(
        id="002-context-phase",
        section="context",
        behaviour="The context's `phase` sets the scope of `recall_here`.",
    ),
    Requirement(
        id="002-context-phase-default",
        section="context",
        behaviour='Without `phase` the scope is "work".',
    ),
    Requirement(
        id="002-context-plan",
        section="context",
        behaviour=(
            "The context's `plan` with the slug foo makes `state_path` choose PLAN-foo.md or "
            "progress-foo.md."
        ),
    ),
    Requirement(
        id="002-context-plan-default",
        section="context",
        behaviour="Without `plan`, `state_path` takes the active plan, or the default one.",
    ),
    Requirement(
        id="002-recall-returns-markdown",
        section="recall_here",
        behaviour=(
            "`recall_here` returns Markdown for the phase and the project, cut to its budget."
        ),
    ),
    Requirement(
        id="002-recall-scoped-to-project",
        section="recall_here",
        behaviour="`recall_here` finds the project from `cwd` and returns only what belongs to it.",
    ),
    Requirement(
        id="002-recall-limit-is-token-budget",
        section="recall_here",
        behaviour="`limit` is the budget of `recall_here` in tokens.",
    ),
    Requirement(
        id="002-recall-limit-default",
        section="recall_here",
        behaviour="Without `limit` the phase's own budget applies.",
    ),
    Requirement(
        id="002-recall-query-accepted",
        section="recall_here",
        behaviour=(
            "`recall_here` takes `query` and `limit` as keyword arguments that are `None` by "
            "default."
        ),
    ),
    Requirement(
        id="002-recall-query-ignored",
        section="recall_here",
        behaviour="A `query` changes nothing about what `recall_here` returns.",
        deferred="overruled by DESIGN decision 9: `recall_here(query=...)` really searches",
    ),
    Requirement(
        id="002-recall-absent-empty",
        section="recall_here",
        behaviour="Without memory or vault `recall_here` returns the empty string.",
    ),
    Requirement(
        id="002-recall-never-raises",
        section="recall_here",
        behaviour="`recall_here` raises for no absence of memory.",
    ),
    Requirement(
        id="002-recall-phases",
        section="recall_here",
        behaviour="The phases are setup, plan, work, review, release, bugfix and documenter.",
    ),
    Requirement(
        id="002-recall-unknown-phase",
        section="recall_here",
        behaviour='An unknown phase is treated as "work" and raises nothing.',
    ),
    Requirement(
        id="002-offer-returns-enriched",
        section="offer_save_here",
        behaviour=(
            "With memory and a project, `offer_save_here` returns a list of one enriched candidate."
        ),
    ),
    Requirement(
        id="002-offer-adds-project",
        section="offer_save_here",
        behaviour="The enriched candidate carries the project's slug as `project`.",
    ),
    Requirement(
        id="002-offer-adds-target",
        section="offer_save_here",
        behaviour=(
            "The enriched candidate carries where it would be saved as `target`, a string or "
            "`None`."
        ),
    ),
    Requirement(
        id="002-offer-passes-phase",
        section="offer_save_here",
        behaviour="A `phase` in the context appears on the candidate, and no phase is made up.",
    ),
    Requirement(
        id="002-offer-copies",
        section="offer_save_here",
        behaviour="`offer_save_here` leaves the caller's candidate unchanged.",
    ),
    Requirement(
        id="002-offer-keeps-fields",
        section="offer_save_here",
        behaviour="Every field of the caller's candidate is passed on as it came, unchecked.",
    ),
    Requirement(
        id="002-offer-wraps-non-dict",
        section="offer_save_here",
        behaviour="A candidate that is no dict is wrapped as the `body` of one.",
    ),
    Requirement(
        id="002-offer-absent-empty",
        section="offer_save_here",
        behaviour="Without memory or vault `offer_save_here` returns the empty list.",
    ),
    Requirement(
        id="002-offer-no-project-empty",
        section="offer_save_here",
        behaviour="`offer_save_here` returns the empty list if no project resolves.",
    ),
    Requirement(
        id="002-offer-empty-candidate",
        section="offer_save_here",
        behaviour="`offer_save_here` returns the empty list for an empty candidate.",
    ),
    Requirement(
        id="002-offer-never-persists",
        section="offer_save_here",
        behaviour="`offer_save_here` stores nothing.",
    ),
    Requirement(
        id="002-offer-never-judges",
        section="offer_save_here",
        behaviour="`offer_save_here` does not decide whether a candidate is worth saving.",
    ),
    Requirement(
        id="002-state-path-plan-or-progress",
        section="state_path",
        behaviour=(
            '`state_path` answers for "plan" and for "progress" with the file of the active pair.'
        ),
    ),
    Requirement(
        id="002-state-path-vault",
        section="state_path",
        behaviour=(
            "With a vault-backed memory `state_path` lies in the project's `_harness` folder "
            "in the vault."
        ),
    ),
    Requirement(
        id="002-state-path-degrades",
        section="state_path",
        behaviour="Without a vault `state_path` is the file in `.harness/` of the project root.",
    ),
    Requirement(
        id="002-state-path-never-none",
        section="state_path",
        behaviour="`state_path` never returns `None`.",
    ),
    Requirement(
        id="002-state-path-named-plan",
        section="state_path",
        behaviour="`state_path` resolves named plans through the same rule as the active plan.",
    ),
    Requirement(
        id="002-state-path-unknown-which",
        section="state_path",
        behaviour="`state_path` raises `ValueError` for any other `which`.",
    ),
    Requirement(
        id="002-state-path-dangling-marker",
        section="state_path",
        behaviour=(
            "An `active-plan` marker that points nowhere raises `ActivePlanError` instead of "
            "degrading."
        ),
    ),
    Requirement(
        id="002-state-path-unsafe-marker",
        section="state_path",
        behaviour="An `active-plan` marker with an unsafe slug raises instead of degrading.",
    ),
    Requirement(
        id="002-state-path-corrupt-never-local",
        section="state_path",
        behaviour="A corrupt marker never leads to another plan's file.",
    ),
    Requirement(
        id="002-shim-exit-zero",
        section="Shell shim",
        behaviour="The shim exits with 0 whenever absent memory is answered with nothing.",
    ),
    Requirement(
        id="002-shim-recall-here",
        section="Shell shim",
        behaviour=(
            "`recall-here` takes --cwd, --phase, --query and --limit and prints the Markdown."
        ),
    ),
    Requirement(
        id="002-shim-recall-here-empty",
        section="Shell shim",
        behaviour="`recall-here` prints nothing if there is nothing to recall.",
    ),
    Requirement(
        id="002-shim-state-path",
        section="Shell shim",
        behaviour="`state-path` takes plan or progress, --cwd and --plan, and prints the path.",
    ),
    Requirement(
        id="002-shim-offer-save-here",
        section="Shell shim",
        behaviour=(
            "`offer-save-here` takes --cwd, --phase, --body-file, --confidence and "
            "--confidence-reason and prints the candidates as indented JSON."
        ),
    ),
    Requirement(
        id="002-shim-offer-required",
        section="Shell shim",
        behaviour="`offer-save-here` demands --kind and --slug.",
    ),
    Requirement(
        id="002-shim-offer-stdin",
        section="Shell shim",
        behaviour="`offer-save-here --body-file -` reads the body from standard input.",
    ),
    Requirement(
        id="002-one-way-dependency",
        section="Import direction",
        behaviour="Memory never imports the process seam, and a gate fails if it does.",
    ),
)
