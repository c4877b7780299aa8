from tests.requirements import Requirement

SEED = "001_cda92c1e62eb17e3.txt"

PLUGIN = (
    "overruled by DESIGN decision 1: the vault backend ships and is registered, no plug-in is "
    "looked for"
)
ONE_COPY = (
    'overruled by DESIGN, "The house": one installed package holds the write protocol, so '
    "there is no second copy"
)
NO_DEMOTION = "overruled by DESIGN decision 10: selection errors always propagate"

REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(
        id="001-seven-verbs",
        section="Seam interface",
        behaviour=(
            "The seam's verbs are resolve, read, write, list, exists, info and mkdir on every "
            "backend."
        ),
    ),
    Requirement(
        id="001-verbs-speak-locators",
        section="Seam interface",
        behaviour=(
            "Every verb that takes or returns a place takes or returns a `Locator`, never a path."
        ),
    ),
    Requirement(
        id="001-locator-namespace-only",
        section="Seam interface",
        behaviour=(
            "A `Locator` is relative to its backend and offers only names of places beside its "
            "key: `child`, `name`, `parts`, `parent` and `contains`."
        ),
    ),
    Requirement(
        id="001-io-only-through-verbs",
        section="Seam interface",
        behaviour="A locator by itself gives no access to stored bytes; only a backend's verbs do.",
    ),
    Requirement(
        id="001-backends-swappable",
        section="Seam interface",
        behaviour="The same sequence of verbs gives the same results on every shipped backend.",
    ),
    Requirement(
        id="001-seam-imports-nothing-external",
        section="Seam interface",
        behaviour="The storage contract imports nothing but the standard library and Perdure.",
    ),
    Requirement(
        id="001-registry-miss-is-absence",
        section="Seam interface",
        behaviour="A registry miss is the value `None`; only selection turns it into an error.",
    ),
    Requirement(
        id="001-no-import-cycle",
        section="Seam interface",
        behaviour=(
            "The storage seam imports nothing from the layers above it, so there is no import "
            "cycle."
        ),
    ),
    Requirement(
        id="001-lazy-import-guard",
        section="Seam interface",
        behaviour=(
            "Selection imports the routing module only inside a call, as the one permitted "
            "lazy import."
        ),
        deferred=(
            'overruled by DESIGN, "The house": an edge is changed by a decision record, never '
            "by a lazy import"
        ),
    ),
    Requirement(
        id="001-gate-flags-path-return",
        section="Gate: no-Path-leak",
        behaviour=(
            "The no-Path gate reports every verb of the seam that is annotated to return a "
            "path, naming the file and the verb."
        ),
    ),
    Requirement(
        id="001-gate-flags-nested-path",
        section="Gate: no-Path-leak",
        behaviour=(
            "The no-Path gate finds a path type however deep it is nested in the return annotation."
        ),
    ),
    Requirement(
        id="001-gate-allows-path-in-body",
        section="Gate: no-Path-leak",
        behaviour="The no-Path gate says nothing about `Path` in the body of a verb.",
    ),
    Requirement(
        id="001-gate-reads-syntax",
        section="Gate: no-Path-leak",
        behaviour=(
            "The no-Path gate works on the parsed syntax tree, so the word Path in a comment "
            "or a string is not reported."
        ),
    ),
    Requirement(
        id="001-gate-scans-every-storage-module",
        section="Gate: no-Path-leak",
        behaviour=(
            "The no-Path gate reads every module of the storage package, backends included, "
            "and finds nothing in the shipped ones."
        ),
    ),
    Requirement(
        id="001-gate-covers-routing",
        section="Gate: no-Path-leak",
        behaviour="The no-Path gate also checks the return annotations of the routing functions.",
    ),
    Requirement(
        id="001-device-local-root",
        section="Device-local backend",
        behaviour=(
            "The device-local backend keeps plain files below `~/.perdure/memory`, or "
            "`memory` below `PERDURE_HOME`."
        ),
    ),
    Requirement(
        id="001-device-local-bytes-mode",
        section="Device-local backend",
        behaviour=(
            "The device-local backend writes bytes atomically, so line endings come back as "
            "they were given."
        ),
    ),
    Requirement(
        id="001-device-local-not-synced",
        section="Device-local backend",
        behaviour="The device-local backend declares `sync` false.",
    ),
    Requirement(
        id="001-vault-synced",
        section="Vault backend",
        behaviour="The vault backend declares `sync` true.",
    ),
    Requirement(
        id="001-vault-plain-markdown",
        section="Vault backend",
        behaviour=(
            "The vault backend stores each text as a plain file at its key below the vault's "
            "root, byte for byte."
        ),
    ),
    Requirement(
        id="001-vault-write-holds-mutex",
        section="Vault backend",
        behaviour=(
            "The vault backend's `write` takes the vault's mutex itself for as long as it "
            "compares and replaces."
        ),
    ),
    Requirement(
        id="001-vault-write-protocol",
        section="Vault backend",
        behaviour=(
            "The vault backend's `write` combines the mutex, the comparison by content hash "
            "and the synced rename."
        ),
    ),
    Requirement(
        id="001-vault-lives-in-plugin",
        section="Vault backend",
        behaviour="The vault backend is not part of the package and comes from a separate plug-in.",
        deferred=PLUGIN,
    ),
    Requirement(
        id="001-vault-plugin-discovery",
        section="Vault backend",
        behaviour=(
            "The vault backend is looked for by an environment override, then a sibling "
            "checkout, then the plug-in cache."
        ),
        deferred=PLUGIN,
    ),
    Requirement(
        id="001-vault-plugin-slot-stays-empty",
        section="Vault backend",
        behaviour="The registry's `vault` entry is empty before and after a selection.",
        deferred=PLUGIN,
    ),
    Requirement(
        id="001-vault-plugin-missing-refused",
        section="Vault backend",
        behaviour=(
            "Selecting vault while its plug-in cannot be found is refused with a message on "
            "how to install it."
        ),
        deferred=PLUGIN,
    ),
    Requirement(
        id="001-vault-exempt-from-registration",
        section="Vault backend",
        behaviour="An unregistered vault is exempt from the refusal of unregistered backends.",
        deferred=PLUGIN,
    ),
    Requirement(
        id="001-select-explicit-backend",
        section="Backend selection",
        behaviour=(
            "`storage.backend` in `~/.perdure/config.toml` names the backend that is selected."
        ),
    ),
    Requirement(
        id="001-select-config-before-environment",
        section="Backend selection",
        behaviour="A configured `storage.backend` wins over `MEMORY_VAULT_PATH`.",
    ),
    Requirement(
        id="001-select-environment-vault",
        section="Backend selection",
        behaviour=(
            "Without a configured backend, a non-empty `MEMORY_VAULT_PATH` selects vault at "
            "that path."
        ),
    ),
    Requirement(
        id="001-select-environment-empty",
        section="Backend selection",
        behaviour="An empty `MEMORY_VAULT_PATH` counts as not set.",
    ),
    Requirement(
        id="001-select-environment-per-session",
        section="Backend selection",
        behaviour=(
            "Choosing vault through `MEMORY_VAULT_PATH` holds for that session and leaves the "
            "config file as it was."
        ),
    ),
    Requirement(
        id="001-select-default-device-local",
        section="Backend selection",
        behaviour=(
            "With neither a configured backend nor `MEMORY_VAULT_PATH`, device-local is selected."
        ),
    ),
    Requirement(
        id="001-select-bare-vault-path-is-no-choice",
        section="Backend selection",
        behaviour="A vault path in the config without `storage.backend` does not select vault.",
    ),
    Requirement(
        id="001-select-refuses-unregistered",
        section="Backend selection",
        behaviour="A configured backend that is not registered raises `StorageSelectionError`.",
    ),
    Requirement(
        id="001-select-unregistered-message",
        section="Backend selection",
        behaviour=(
            "The refusal of an unregistered backend names it and the backends that are registered."
        ),
    ),
    Requirement(
        id="001-select-refuses-vault-without-path",
        section="Backend selection",
        behaviour="Selecting vault without any vault path raises `StorageSelectionError`.",
    ),
    Requirement(
        id="001-select-refuses-unreachable-vault",
        section="Backend selection",
        behaviour=(
            "Selecting vault while its folder cannot be reached raises "
            "`StorageSelectionError` and creates no folder."
        ),
    ),
    Requirement(
        id="001-select-refuses-corrupt-config",
        section="Backend selection",
        behaviour="A config file that cannot be parsed raises `StorageSelectionError`.",
    ),
    Requirement(
        id="001-select-refuses-non-string-backend",
        section="Backend selection",
        behaviour=(
            "A `storage.backend` that is present but no string raises `StorageSelectionError`."
        ),
    ),
    Requirement(
        id="001-select-never-demotes",
        section="Backend selection",
        behaviour=(
            "No refusal ever ends in a device-local backend instead, nor writes anything to one."
        ),
    ),
    Requirement(
        id="001-select-environment-graceful-skip",
        section="Backend selection",
        behaviour=(
            "A vault named by `MEMORY_VAULT_PATH` that cannot be reached is passed over "
            "without an error."
        ),
        deferred=(
            "overruled by DESIGN decision 10: nothing is ever silently demoted to device-local"
        ),
    ),
    Requirement(
        id="001-required-unmet-raises",
        section="Capability-request matching",
        behaviour=(
            "`select_backend` raises `CapabilityMismatchError` if the selected backend lacks "
            "a flag that `required` sets."
        ),
    ),
    Requirement(
        id="001-required-every-flag",
        section="Capability-request matching",
        behaviour=(
            "Every true flag of `required` must be met; meeting some of them is still a mismatch."
        ),
    ),
    Requirement(
        id="001-required-false-asks-nothing",
        section="Capability-request matching",
        behaviour=(
            "A false flag of `required` asks nothing, so a backend may promise more than was asked."
        ),
    ),
    Requirement(
        id="001-required-met-returns-backend",
        section="Capability-request matching",
        behaviour=(
            "`select_backend` with a `required` that the backend meets returns the same "
            "backend as without it."
        ),
    ),
    Requirement(
        id="001-required-default-none",
        section="Capability-request matching",
        behaviour="`required` is `None` by default, and then no capability is checked.",
    ),
    Requirement(
        id="001-capability-mismatch-is-selection-error",
        section="Capability-request matching",
        behaviour="`CapabilityMismatchError` is a `StorageSelectionError`.",
    ),
    Requirement(
        id="001-required-never-downgrades",
        section="Capability-request matching",
        behaviour="A mismatch raises; it neither picks another backend nor merely warns.",
    ),
    Requirement(
        id="001-doctor-requires",
        section="Capability-request matching",
        behaviour=(
            "`perdure doctor --requires` checks requested capabilities in advance, through "
            "the same code as the runtime check."
        ),
    ),
    Requirement(
        id="001-preview-never-raises",
        section="storage_preview",
        behaviour="`storage_preview` reports every refusal as a value and raises none of them.",
    ),
    Requirement(
        id="001-preview-never-mutates",
        section="storage_preview",
        behaviour=(
            "`storage_preview` creates, changes and removes nothing, neither files nor "
            "registrations."
        ),
    ),
    Requirement(
        id="001-preview-same-words",
        section="storage_preview",
        behaviour=(
            "The text that `storage_preview` gives for a refusal is, byte for byte, the "
            "message that `select_backend` raises."
        ),
    ),
    Requirement(
        id="001-preview-same-path",
        section="storage_preview",
        behaviour=(
            "`storage_preview` decides through the same code as `select_backend`, so both "
            "name the same backend for the same configuration."
        ),
    ),
    Requirement(
        id="001-doctor-shows-preview",
        section="storage_preview",
        behaviour="`perdure doctor` shows what `storage_preview` answers as its storage check.",
    ),
    Requirement(
        id="001-lock-outside-vault",
        section="Vault write protocol",
        behaviour="`vault_mutex` keeps its lock outside the vault, and leaves nothing inside it.",
    ),
    Requirement(
        id="001-lock-keyed-by-real-path",
        section="Vault write protocol",
        behaviour=(
            "The lock is `<home>/locks/<digest>/lock`, where the digest is the sha256 of the "
            "root's real path, so every alias of a root leads to one lock."
        ),
    ),
    Requirement(
        id="001-lock-in-cache-directory",
        section="Vault write protocol",
        behaviour="The lock lies below the user's cache directory.",
        deferred="overruled by DESIGN decision 13: locks live under `~/.perdure/`",
    ),
    Requirement(
        id="001-lock-is-a-directory",
        section="Vault write protocol",
        behaviour=(
            "The lock is a directory whose one entry says who holds it; only one process can "
            "take it at a time."
        ),
    ),
    Requirement(
        id="001-lock-excludes",
        section="Vault write protocol",
        behaviour=(
            "Of all processes on one machine that ask for a root's mutex, at most one holds "
            "it at a time."
        ),
    ),
    Requirement(
        id="001-lock-advisory",
        section="Vault write protocol",
        behaviour=(
            "The mutex binds only those who ask for it; an editor or sync client can still "
            "write the files."
        ),
    ),
    Requirement(
        id="001-lock-heartbeat-keeps",
        section="Vault write protocol",
        behaviour="A holder refreshes a heartbeat, so a slow but living holder keeps its lock.",
    ),
    Requirement(
        id="001-lock-stale-taken-over",
        section="Vault write protocol",
        behaviour="A lock whose heartbeat has stopped for too long is taken over by a waiter.",
    ),
    Requirement(
        id="001-lock-wait-backs-off",
        section="Vault write protocol",
        behaviour="A waiter tries again and again with growing pauses.",
    ),
    Requirement(
        id="001-lock-wait-bounded",
        section="Vault write protocol",
        behaviour=(
            "A waiter gives up with an error when its waiting time is over, and has then "
            "written nothing."
        ),
    ),
    Requirement(
        id="001-lock-one-per-root",
        section="Vault write protocol",
        behaviour=(
            "One lock guards a whole root, so writers of two different keys below it take turns."
        ),
    ),
    Requirement(
        id="001-lock-roots-independent",
        section="Vault write protocol",
        behaviour="The locks of two different roots do not block each other.",
    ),
    Requirement(
        id="001-content-hash-sha256",
        section="Vault write protocol",
        behaviour="`content_hash` is the sha256 of the bytes and depends on nothing else.",
    ),
    Requirement(
        id="001-compare-by-hash",
        section="Vault write protocol",
        behaviour=(
            "A conditional write whose expected hash is not that of the present bytes raises "
            "`ConcurrentModificationError` and changes nothing."
        ),
    ),
    Requirement(
        id="001-compare-ignores-mtime",
        section="Vault write protocol",
        behaviour=(
            "The comparison ignores mtime: a touched file with the same bytes still matches, "
            "and changed bytes under an old mtime do not."
        ),
    ),
    Requirement(
        id="001-atomic-write-fsync-before-rename",
        section="Vault write protocol",
        behaviour="`atomic_write` syncs the new bytes to disk before it renames them into place.",
    ),
    Requirement(
        id="001-atomic-write-whole",
        section="Vault write protocol",
        behaviour=(
            "Someone who reads during `atomic_write` sees all of the old bytes or all of the "
            "new ones."
        ),
    ),
    Requirement(
        id="001-atomic-write-bytes",
        section="Vault write protocol",
        behaviour=(
            "`atomic_write` stores exactly the bytes that it is given, with no newline translation."
        ),
    ),
    Requirement(
        id="001-plain-fsync",
        section="Vault write protocol",
        behaviour="`atomic_write` syncs with the plain `fsync` and does not ask for F_FULLFSYNC.",
    ),
    Requirement(
        id="001-one-write-library",
        section="Vault write protocol",
        behaviour=(
            "Both file backends and `write_personal` use the one implementation of "
            "`vault_mutex`, `content_hash` and `atomic_write`."
        ),
    ),
    Requirement(
        id="001-write-library-vendored",
        section="Vault write protocol",
        behaviour=(
            "A byte-identical second copy of the write library is kept for the skill scripts."
        ),
        deferred=ONE_COPY,
    ),
    Requirement(
        id="001-write-library-parity-gate",
        section="Vault write protocol",
        behaviour="A gate fails if the two copies of the write library differ.",
        deferred=ONE_COPY,
    ),
    Requirement(
        id="001-concurrent-vault-writers",
        section="Vault write protocol",
        behaviour=(
            "Several processes that write to one vault at the same time lose no update and "
            "tear no file."
        ),
    ),
    Requirement(
        id="001-conflict-copies-tolerated",
        section="Vault write protocol",
        behaviour=(
            "Conflict copies that a sync client puts into the vault are listed and readable "
            "like other files, and no verb fails because of them."
        ),
    ),
    Requirement(
        id="001-conflict-janitor",
        section="Vault write protocol",
        behaviour="A janitor finds the conflict copies of the known sync clients.",
    ),
    Requirement(
        id="001-personal-own-verb",
        section="Personal space (T1)",
        behaviour="Writing to the personal space is a call of its own, `write_personal`.",
    ),
    Requirement(
        id="001-personal-no-flag-on-write",
        section="Personal space (T1)",
        behaviour="`write` has no argument that would make it reach the personal space.",
    ),
    Requirement(
        id="001-personal-unreachable-by-verbs",
        section="Personal space (T1)",
        behaviour="No locator that the seven verbs accept leads to a place above the store's root.",
    ),
    Requirement(
        id="001-personal-targets-above-store",
        section="Personal space (T1)",
        behaviour="`write_personal` writes to the personal root that lies above the store's root.",
    ),
    Requirement(
        id="001-personal-refused-without-authorisation",
        section="Personal space (T1)",
        behaviour=(
            "`write_personal` without an explicit authorisation object is refused, and "
            "nothing is written."
        ),
    ),
    Requirement(
        id="001-personal-authorisation-by-operator",
        section="Personal space (T1)",
        behaviour=(
            "Only an operator's action makes the authorisation that `write_personal` accepts; "
            "a flag or a truthy value is not one."
        ),
    ),
    Requirement(
        id="001-personal-composes-protocol",
        section="Personal space (T1)",
        behaviour=(
            "`write_personal` takes the mutex, compares by content hash and writes "
            "atomically, just as `write` does."
        ),
    ),
    Requirement(
        id="001-conformance-any-backend",
        section="Conformance suite",
        behaviour=(
            "`perdure.testing` offers one suite of the verbs that runs against any backend "
            "for which it is given a factory."
        ),
    ),
    Requirement(
        id="001-conformance-device-local",
        section="Conformance suite",
        behaviour="The device-local backend passes the whole conformance suite.",
    ),
    Requirement(
        id="001-conformance-vault",
        section="Conformance suite",
        behaviour="The vault backend passes the whole conformance suite.",
    ),
    Requirement(
        id="001-conformance-routing",
        section="Conformance suite",
        behaviour=(
            "The conformance suite proves registering, listing and unregistering a repository "
            "on any backend."
        ),
    ),
    Requirement(
        id="001-conformance-routing-both-backends",
        section="Conformance suite",
        behaviour="The routing half of the suite runs against device-local and vault.",
    ),
    Requirement(
        id="001-config-outside-vault",
        section="Configuration home",
        behaviour=(
            "Configuration is read from `~/.perdure` and never from the vault, so it is "
            "readable on a machine whose vault is missing."
        ),
    ),
    Requirement(
        id="001-state-synced-backend",
        section="Harness state I/O",
        behaviour=(
            "With a synced backend and a resolved project, state files live at "
            "`projects/<slug>/_harness/<file>` of that backend."
        ),
    ),
    Requirement(
        id="001-state-without-backend-local",
        section="Harness state I/O",
        behaviour="Without a backend, state files live in `.harness/` of the project.",
    ),
    Requirement(
        id="001-state-unsynced-backend-local",
        section="Harness state I/O",
        behaviour=(
            "With a backend whose `sync` is false, state files live in `.harness/` of the project."
        ),
    ),
    Requirement(
        id="001-state-missing-root-local",
        section="Harness state I/O",
        behaviour="Without a project locator, state files live in `.harness/` of the project.",
    ),
    Requirement(
        id="001-state-opt-out-local",
        section="Harness state I/O",
        behaviour=(
            "With the marker `.project-mode` set to local, state files live in `.harness/` of "
            "the project."
        ),
    ),
    Requirement(
        id="001-state-opt-out-first",
        section="Harness state I/O",
        behaviour="The local opt-out is looked at before the backend, and wins over a synced one.",
    ),
    Requirement(
        id="001-state-three-functions-agree",
        section="Harness state I/O",
        behaviour=(
            "`harness_state_dir`, `read_state_file` and `write_state_file` always agree on "
            "the place of a file."
        ),
    ),
    Requirement(
        id="001-state-degrades-by-rule",
        section="Harness state I/O",
        behaviour=(
            "A machine without a vault gets local state by the same rule, with no separate "
            "code path."
        ),
    ),
    Requirement(
        id="001-state-writes-through-seam",
        section="Harness state I/O",
        behaviour=(
            "On a synced backend `write_state_file` goes through `backend.write`, with mutex, "
            "comparison and atomic replacement."
        ),
    ),
    Requirement(
        id="001-state-never-raw-path",
        section="Harness state I/O",
        behaviour="State in a synced store is never written by path behind the backend's back.",
    ),
    Requirement(
        id="001-state-local-atomic",
        section="Harness state I/O",
        behaviour="Local state is written with `atomic_write` alone.",
    ),
    Requirement(
        id="001-state-by-capability",
        section="Harness state I/O",
        behaviour=(
            "The place of state is decided by `capabilities.sync`, never by the class of the "
            "backend."
        ),
    ),
    Requirement(
        id="001-state-unanswered-capability-local",
        section="Harness state I/O",
        behaviour="A backend that cannot tell its capabilities gets local state.",
    ),
    Requirement(
        id="001-state-not-by-vault-path",
        section="Harness state I/O",
        behaviour=(
            "A vault path alone, without a selected synced backend, does not move state into "
            "the vault."
        ),
    ),
    Requirement(
        id="001-hook-progress-beside-plan",
        section="Harness state I/O",
        behaviour=(
            "The session-start hook looks for progress.md beside the plan that was resolved, "
            "wherever that is."
        ),
    ),
    Requirement(
        id="001-hook-four-line-block",
        section="Harness state I/O",
        behaviour=(
            "The session-start hook prints its four-line block if plan and progress both exist."
        ),
    ),
    Requirement(
        id="001-state-mode-device",
        section="State mode",
        behaviour="`state_mode` in `~/.perdure/config.toml` sets the mode of the device.",
    ),
    Requirement(
        id="001-state-mode-set-by-command",
        section="State mode",
        behaviour=(
            "An installation option or a configuration command sets the device's `state_mode`."
        ),
    ),
    Requirement(
        id="001-state-mode-repo-marker",
        section="State mode",
        behaviour="The marker `.harness/.project-mode` of a repository sets its mode.",
    ),
    Requirement(
        id="001-state-mode-marker-first",
        section="State mode",
        behaviour="The repository's marker wins over the device's mode.",
    ),
    Requirement(
        id="001-state-mode-neither",
        section="State mode",
        behaviour=(
            "Without marker and device mode the vault comes first, and a missing vault raises "
            "`ValueError`."
        ),
    ),
    Requirement(
        id="001-state-mode-canonical-backend",
        section="State mode",
        behaviour='The canonical mode that is not local is called "backend".',
    ),
    Requirement(
        id="001-state-mode-vault-config-alias",
        section="State mode",
        behaviour='A configured mode "vault" is read as "backend".',
    ),
    Requirement(
        id="001-state-mode-vault-marker-alias",
        section="State mode",
        behaviour='A marker "vault" is read as "backend".',
    ),
    Requirement(
        id="001-state-mode-alias-no-rewrite",
        section="State mode",
        behaviour="Reading the old name leaves the file unchanged.",
    ),
    Requirement(
        id="001-state-mode-alias-on-write",
        section="State mode",
        behaviour='The command line accepts "vault" as a deprecated name and stores "backend".',
    ),
    Requirement(
        id="001-state-mode-explicit",
        section="State mode",
        behaviour="A missing vault path is never taken to mean local mode.",
    ),
    Requirement(
        id="001-state-mode-not-in-vault",
        section="State mode",
        behaviour="No marker inside the vault has any effect on the state mode.",
    ),
    Requirement(
        id="001-state-mode-own-key",
        section="State mode",
        behaviour="`state_mode` is a key of its own, apart from the mode of installation.",
    ),
    Requirement(
        id="001-resolve-project-keys",
        section="Routing plane",
        behaviour=(
            "`resolve_project` answers with slug, project_locator, backend, project_root and "
            "layout."
        ),
    ),
    Requirement(
        id="001-resolve-project-locator",
        section="Routing plane",
        behaviour="The `project_locator` of a resolution is a `Locator`.",
    ),
    Requirement(
        id="001-resolve-project-backend",
        section="Routing plane",
        behaviour="The `backend` of a resolution is the `StorageBackend` that selection chose.",
    ),
    Requirement(
        id="001-resolve-project-no-vault-path",
        section="Routing plane",
        behaviour="A resolution carries no vault path.",
    ),
    Requirement(
        id="001-resolve-project-projects-directory",
        section="Routing plane",
        behaviour='Projects lie below `backend.resolve("projects")`.',
    ),
    Requirement(
        id="001-resolve-project-swallows-selection-error",
        section="Routing plane",
        behaviour=(
            "A selection error inside `resolve_project` becomes a resolution without a backend."
        ),
        deferred=NO_DEMOTION,
    ),
    Requirement(
        id="001-repo-registry-takes-backend",
        section="Routing plane",
        behaviour="Every public function of `repo_registry` takes the backend as an argument.",
    ),
    Requirement(
        id="001-repo-registry-locator",
        section="Routing plane",
        behaviour='The repository registry is stored at `backend.resolve("_meta", "repos.json")`.',
    ),
    Requirement(
        id="001-repo-registry-vault-place",
        section="Routing plane",
        behaviour="On vault the registry is the file `_meta/repos.json` of the vault.",
    ),
    Requirement(
        id="001-repo-registry-device-local-place",
        section="Routing plane",
        behaviour="On device-local the registry is `~/.perdure/memory/_meta/repos.json`.",
    ),
    Requirement(
        id="001-routing-imports-no-backend",
        section="Routing plane",
        behaviour=(
            "The routing modules never import a concrete backend, and a gate fails if they do."
        ),
    ),
    Requirement(
        id="001-phase-recall-empty",
        section="Routing plane",
        behaviour="`phase_recall` always answers with the empty string.",
        deferred="overruled by DESIGN decision 9: recall really searches, the index exists",
    ),
    Requirement(
        id="001-documenter-context-none",
        section="Routing plane",
        behaviour="`resolve_documenter_context` answers `None`.",
        deferred=(
            "overruled by DESIGN decision 9: the documenter is a phase of `recall_here`, which "
            "really answers"
        ),
    ),
)
