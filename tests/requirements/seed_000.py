from tests.requirements import Requirement

SEED = "000_f565ee120a4b319e.txt"

CONTRACT_ONLY = "overruled by DESIGN decision 1: both file backends ship and are registered"
NO_INDEX = "overruled by DESIGN decision 1: reindex and changed_since work and the index exists"

REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(
        id="000-seven-verbs-abstract",
        section="Verb table",
        behaviour=(
            "`StorageBackend` is abstract and demands read, write, list, exists, info, mkdir "
            "and the `capabilities` property (resolve it has itself), so a class that lacks one "
            "of them cannot be instantiated."
        ),
    ),
    Requirement(
        id="000-no-path-crosses-seam",
        section="Verb table",
        behaviour=(
            "Nothing that a verb of a shipped backend returns is or contains a `pathlib.Path`."
        ),
    ),
    Requirement(
        id="000-path-inside-backend-allowed",
        section="Verb table",
        behaviour=(
            "A file backend may work with `Path` inside its methods without failing the "
            "no-Path check."
        ),
    ),
    Requirement(
        id="000-no-path-check-static",
        section="Verb table",
        behaviour=(
            "The no-Path rule is checked from source code alone, and a backend verb annotated "
            "to return a path fails it."
        ),
    ),
    Requirement(
        id="000-text-is-the-currency",
        section="Verb table",
        behaviour="`write` accepts and `read` returns `str`, and no verb exchanges bytes.",
    ),
    Requirement(
        id="000-only-contract-ships",
        section="Verb table",
        behaviour="The storage package holds the contract alone and no concrete backend.",
        deferred=CONTRACT_ONLY,
    ),
    Requirement(
        id="000-locator-frozen",
        section="Locator",
        behaviour="A `Locator` cannot be changed once it is built.",
    ),
    Requirement(
        id="000-locator-hashable",
        section="Locator",
        behaviour="Locators with the same key are equal, hash alike and serve as dictionary keys.",
    ),
    Requirement(
        id="000-locator-is-not-a-path",
        section="Locator",
        behaviour="A `Locator` is neither a path type nor accepted by the operating system as one.",
    ),
    Requirement(
        id="000-locator-has-no-io",
        section="Locator",
        behaviour=(
            "A `Locator` offers names only (`key`, `parts`, `name`, `child`) and nothing that "
            "reads or writes a store."
        ),
    ),
    Requirement(
        id="000-locator-key-normalized",
        section="Locator",
        behaviour=(
            "A locator's key has the same canonical form whether it was built directly, by "
            "`resolve` or by `child`."
        ),
    ),
    Requirement(
        id="000-locator-root-key-empty",
        section="Locator",
        behaviour="The key of the root locator is the empty string.",
    ),
    Requirement(
        id="000-locator-parts",
        section="Locator",
        behaviour="`Locator.parts` is the tuple of the key's segments in order.",
    ),
    Requirement(
        id="000-locator-root-parts-empty",
        section="Locator",
        behaviour="`Locator.parts` of the root is the empty tuple.",
    ),
    Requirement(
        id="000-locator-name",
        section="Locator",
        behaviour="`Locator.name` is the last segment of the key.",
    ),
    Requirement(
        id="000-locator-root-name-empty",
        section="Locator",
        behaviour="`Locator.name` of the root is the empty string.",
    ),
    Requirement(
        id="000-locator-child-appends",
        section="Locator",
        behaviour="`Locator.child` returns a locator with the given parts added below this one.",
    ),
    Requirement(
        id="000-locator-child-normalizes",
        section="Locator",
        behaviour="`Locator.child` brings each part it is given into canonical form.",
    ),
    Requirement(
        id="000-locator-child-cannot-escape",
        section="Locator",
        behaviour="`Locator.child` refuses a `..` segment with `InvalidLocatorError`.",
    ),
    Requirement(
        id="000-locator-str-is-key",
        section="Locator",
        behaviour="`str()` of a locator is its key and nothing else.",
    ),
    Requirement(
        id="000-key-drops-empty-segments",
        section="normalize_key",
        behaviour=(
            "`normalize_key` leaves out empty segments, such as those of doubled or trailing "
            "slashes."
        ),
    ),
    Requirement(
        id="000-key-drops-dot-segments",
        section="normalize_key",
        behaviour="`normalize_key` leaves out segments that are a single dot.",
    ),
    Requirement(
        id="000-key-relativizes-leading-slash",
        section="normalize_key",
        behaviour=(
            "`normalize_key` turns a key with a leading slash into the same key relative to "
            "the root, without complaint."
        ),
    ),
    Requirement(
        id="000-key-rejects-dotdot",
        section="normalize_key",
        behaviour=(
            "`normalize_key` raises `InvalidLocatorError` for a key with a `..` segment "
            "anywhere in it."
        ),
    ),
    Requirement(
        id="000-key-keeps-other-segments",
        section="normalize_key",
        behaviour="`normalize_key` keeps every other segment in order, joined by single slashes.",
    ),
    Requirement(
        id="000-key-never-leaves-root",
        section="normalize_key",
        behaviour=(
            "Whatever key is given, it is refused or it names a place inside the backend's root."
        ),
    ),
    Requirement(
        id="000-info-frozen",
        section="Info",
        behaviour="An `Info` cannot be changed once it is built.",
    ),
    Requirement(
        id="000-info-locator",
        section="Info",
        behaviour="`Info.locator` is the locator that was asked about.",
    ),
    Requirement(
        id="000-info-is-dir",
        section="Info",
        behaviour="`Info.is_dir` is true for a directory and false for a file.",
    ),
    Requirement(
        id="000-info-size-bytes",
        section="Info",
        behaviour="`Info.size` of a file is its length in bytes, not in characters.",
    ),
    Requirement(
        id="000-info-size-zero-directory",
        section="Info",
        behaviour="`Info.size` of a directory is 0.",
    ),
    Requirement(
        id="000-info-mtime-epoch-seconds",
        section="Info",
        behaviour=(
            "`Info.mtime` is the time of the last change as a float of seconds since the epoch."
        ),
    ),
    Requirement(
        id="000-capabilities-frozen",
        section="Capabilities",
        behaviour="A `Capabilities` value cannot be changed once it is built.",
    ),
    Requirement(
        id="000-capabilities-four-flags",
        section="Capabilities",
        behaviour=(
            "`Capabilities` has the flags concurrent_writers, conflict_files, encryption and "
            "sync, all booleans."
        ),
    ),
    Requirement(
        id="000-capabilities-default-false",
        section="Capabilities",
        behaviour="Each flag of `Capabilities` is false unless it is set.",
    ),
    Requirement(
        id="000-capabilities-concurrent-writers",
        section="Capabilities",
        behaviour=(
            "A backend that declares `concurrent_writers` stays whole and loses no write "
            "while several processes write to it."
        ),
    ),
    Requirement(
        id="000-capabilities-conflict-files",
        section="Capabilities",
        behaviour=(
            "On a backend that declares `conflict_files`, a sync client's conflict copies can "
            "be present without breaking any verb on the other keys."
        ),
    ),
    Requirement(
        id="000-capabilities-encryption",
        section="Capabilities",
        behaviour=(
            "A backend declares `encryption` only if it encrypts what it stores, so neither "
            "shipped file backend declares it."
        ),
    ),
    Requirement(
        id="000-capabilities-sync",
        section="Capabilities",
        behaviour=(
            "A backend declares `sync` exactly if an outside sync client replicates its tree, "
            "so vault does and device-local does not."
        ),
    ),
    Requirement(
        id="000-capabilities-declared",
        section="Capabilities",
        behaviour="Each backend answers `capabilities`, a property, with a `Capabilities` value.",
    ),
    Requirement(
        id="000-resolve-joins-parts",
        section="resolve",
        behaviour="`resolve` makes one backend-relative `Locator` out of the parts it is given.",
    ),
    Requirement(
        id="000-resolve-no-parts-is-root",
        section="resolve",
        behaviour="`resolve` without parts is the root of the backend.",
    ),
    Requirement(
        id="000-resolve-dotdot-raises",
        section="resolve",
        behaviour="`resolve` raises `InvalidLocatorError` if a part holds a `..` segment.",
    ),
    Requirement(
        id="000-read-returns-text",
        section="read",
        behaviour="`read` returns the text stored at the locator.",
    ),
    Requirement(
        id="000-read-absent-raises",
        section="read",
        behaviour="`read` raises `FileNotFoundError` where nothing is stored.",
    ),
    Requirement(
        id="000-read-absent-is-not-invalid",
        section="read",
        behaviour=(
            "The error for reading an absent key is not an `InvalidLocatorError`, so absence "
            "and a bad key can be told apart."
        ),
    ),
    Requirement(
        id="000-write-returns-locator",
        section="write",
        behaviour="`write` returns the locator that it wrote.",
    ),
    Requirement(
        id="000-write-round-trips",
        section="write",
        behaviour=(
            "Reading the locator that `write` returned gives exactly the text that was written."
        ),
    ),
    Requirement(
        id="000-write-atomic",
        section="write",
        behaviour=(
            "A reader or a crash at any moment of a `write` meets the whole old text or the "
            "whole new text, never a mixture."
        ),
    ),
    Requirement(
        id="000-write-durable",
        section="write",
        behaviour=(
            "When `write` has returned, the text has been synced to the disk and survives a crash."
        ),
    ),
    Requirement(
        id="000-write-composes-protocol",
        section="write",
        behaviour=(
            "The file backends write through `atomic_write`, the comparison of content hashes "
            "and `vault_mutex`, and have no write path of their own."
        ),
    ),
    Requirement(
        id="000-write-onto-directory-raises",
        section="write",
        behaviour=(
            "`write` onto a directory or the root raises `IsADirectoryError` and changes "
            "nothing, as DESIGN decision 3 settles the backend's choice."
        ),
    ),
    Requirement(
        id="000-write-below-file-raises",
        section="write",
        behaviour=(
            "`write` below a file raises `NotADirectoryError` and changes nothing, as DESIGN "
            "decision 3 settles the backend's choice."
        ),
    ),
    Requirement(
        id="000-write-unencodable-raises",
        section="write",
        behaviour=(
            "`write` of text that UTF-8 cannot encode raises `ValueError` and changes "
            "nothing, as DESIGN decision 3 settles the backend's choice."
        ),
    ),
    Requirement(
        id="000-list-immediate-children",
        section="list",
        behaviour=(
            "`list` returns the direct children of a directory, files and directories, and "
            "nothing from deeper down."
        ),
    ),
    Requirement(
        id="000-list-returns-locators",
        section="list",
        behaviour="`list` returns locators that the other verbs accept, and no paths.",
    ),
    Requirement(
        id="000-list-empty-directory",
        section="list",
        behaviour="`list` of an empty directory is the empty list.",
    ),
    Requirement(
        id="000-list-absent-is-empty",
        section="list",
        behaviour=(
            "`list` of a locator where there is no directory is the empty list on every "
            "backend, as the conformance suite fixes it."
        ),
    ),
    Requirement(
        id="000-exists-file",
        section="exists",
        behaviour="`exists` is true for a file.",
    ),
    Requirement(
        id="000-exists-directory",
        section="exists",
        behaviour="`exists` is true for a directory.",
    ),
    Requirement(
        id="000-exists-absent",
        section="exists",
        behaviour="`exists` is false where nothing is stored, and does not raise.",
    ),
    Requirement(
        id="000-info-absent-raises",
        section="info",
        behaviour="`info` raises `FileNotFoundError` where nothing is stored.",
    ),
    Requirement(
        id="000-mkdir-creates",
        section="mkdir",
        behaviour="After `mkdir` there is a directory at the locator.",
    ),
    Requirement(
        id="000-mkdir-returns-locator",
        section="mkdir",
        behaviour="`mkdir` returns the locator of the directory.",
    ),
    Requirement(
        id="000-mkdir-idempotent",
        section="mkdir",
        behaviour=(
            "`mkdir` on a directory that exists already succeeds and leaves its content alone."
        ),
    ),
    Requirement(
        id="000-mkdir-onto-file-raises",
        section="mkdir",
        behaviour=(
            "`mkdir` onto a file raises `FileExistsError` and leaves the file alone, as "
            "DESIGN decision 3 settles it."
        ),
    ),
    Requirement(
        id="000-invalid-locator-is-value-error",
        section="InvalidLocatorError",
        behaviour="`InvalidLocatorError` is a `ValueError`.",
    ),
    Requirement(
        id="000-invalid-locator-everywhere",
        section="InvalidLocatorError",
        behaviour=(
            "A `..` segment raises `InvalidLocatorError` from `normalize_key`, from building "
            "a `Locator` and from `resolve` alike."
        ),
    ),
    Requirement(
        id="000-invalid-locator-is-not-absence",
        section="InvalidLocatorError",
        behaviour="`InvalidLocatorError` is not a `FileNotFoundError`, nor the other way round.",
    ),
    Requirement(
        id="000-registry-stores-classes",
        section="BackendRegistry",
        behaviour=(
            "A `BackendRegistry` holds backend classes under protocol names, and hands back "
            "the very class that was registered."
        ),
    ),
    Requirement(
        id="000-registry-get-absent-none",
        section="BackendRegistry",
        behaviour=(
            "`BackendRegistry.get` of a name that nobody registered is `None` and does not raise."
        ),
    ),
    Requirement(
        id="000-registry-contains",
        section="BackendRegistry",
        behaviour=(
            "`name in registry` is true exactly for the registered names, and does not raise "
            "for others."
        ),
    ),
    Requirement(
        id="000-registry-protocols-sorted",
        section="BackendRegistry",
        behaviour="`BackendRegistry.protocols` is a sorted tuple of the registered names.",
    ),
    Requirement(
        id="000-registry-register-returns-none",
        section="BackendRegistry",
        behaviour="`BackendRegistry.register` returns `None`.",
    ),
    Requirement(
        id="000-registry-rejects-non-backend",
        section="BackendRegistry",
        behaviour="Registering something that is not a `StorageBackend` class raises `TypeError`.",
    ),
    Requirement(
        id="000-registry-rejects-abstract-base",
        section="BackendRegistry",
        behaviour=(
            "Registering `StorageBackend` itself, or a subclass that still lacks a verb, "
            "raises `TypeError`."
        ),
    ),
    Requirement(
        id="000-registry-rejects-instance",
        section="BackendRegistry",
        behaviour="Registering an instance of a backend instead of its class raises `TypeError`.",
    ),
    Requirement(
        id="000-registry-rejects-empty-name",
        section="BackendRegistry",
        behaviour="Registering under an empty name raises `ProtocolError`.",
    ),
    Requirement(
        id="000-registry-rejects-duplicate",
        section="BackendRegistry",
        behaviour=(
            "Registering a name for the second time raises `ProtocolError` by default and "
            "keeps the first class."
        ),
    ),
    Requirement(
        id="000-registry-clobber-replaces",
        section="BackendRegistry",
        behaviour="Registering a name again with `clobber=True` replaces its class.",
    ),
    Requirement(
        id="000-registry-instances-independent",
        section="BackendRegistry",
        behaviour="What is registered in one `BackendRegistry` is not seen in another.",
    ),
    Requirement(
        id="000-registry-imports-no-fsspec-nor-database",
        section="BackendRegistry",
        behaviour=(
            "The registry mirrors the named-protocol idea by hand and imports neither fsspec "
            "nor a database."
        ),
    ),
    Requirement(
        id="000-selection-instantiates-class",
        section="BackendRegistry",
        behaviour="Selection turns the registered class into an instance; the registry never does.",
    ),
    Requirement(
        id="000-backends-protocol-names",
        section="BackendRegistry",
        behaviour=(
            "The two shipped file backends are registered under the names `device-local` and "
            "`vault`."
        ),
    ),
    Requirement(
        id="000-default-registry-process-wide",
        section="registry",
        behaviour=(
            "`perdure.storage.registry` is the one `BackendRegistry` that a whole process "
            "shares by default."
        ),
    ),
    Requirement(
        id="000-default-registry-empty",
        section="registry",
        behaviour="The default registry starts with no backend in it.",
        deferred=CONTRACT_ONLY,
    ),
    Requirement(
        id="000-protocol-error-is-value-error",
        section="ProtocolError",
        behaviour="`ProtocolError` is a `ValueError`.",
    ),
    Requirement(
        id="000-protocol-error-not-for-misses",
        section="ProtocolError",
        behaviour=(
            "Looking up a missing name never raises `ProtocolError`; only a bad registration does."
        ),
    ),
    Requirement(
        id="000-tier-three-members",
        section="Tier",
        behaviour="`Tier` has exactly the members SOURCE, SHARED_ABSTRACTS and LOCAL_INDEX.",
    ),
    Requirement(
        id="000-tier-source",
        section="Tier",
        behaviour='`Tier.SOURCE` has the value "source", may be synced and is not derived.',
    ),
    Requirement(
        id="000-tier-shared-abstracts",
        section="Tier",
        behaviour=(
            '`Tier.SHARED_ABSTRACTS` has the value "shared-abstracts", may be synced and is '
            "derived."
        ),
    ),
    Requirement(
        id="000-tier-local-index",
        section="Tier",
        behaviour=(
            '`Tier.LOCAL_INDEX` has the value "local-index", may never be synced and is derived.'
        ),
    ),
    Requirement(
        id="000-tier-only-local-index-never-syncs",
        section="Tier",
        behaviour="LOCAL_INDEX is the only tier whose `syncs` is false.",
    ),
    Requirement(
        id="000-tier-only-source-not-derived",
        section="Tier",
        behaviour="SOURCE is the only tier whose `derived` is false.",
    ),
    Requirement(
        id="000-tier-derived-rebuilds-from-source",
        section="Tier",
        behaviour="A lost derived tier can be made again from SOURCE without loss.",
    ),
    Requirement(
        id="000-tier-no-index-built",
        section="Tier",
        behaviour="The tiers are designated only; nothing is derived into any of them.",
        deferred=NO_INDEX,
    ),
    Requirement(
        id="000-layout-frozen",
        section="TierLayout",
        behaviour="A `TierLayout` cannot be changed once it is built.",
    ),
    Requirement(
        id="000-layout-default-source",
        section="TierLayout",
        behaviour='`TierLayout.source` is `Locator("source")` unless it is given.',
    ),
    Requirement(
        id="000-layout-default-shared-abstracts",
        section="TierLayout",
        behaviour=(
            '`TierLayout.shared_abstracts` is `Locator("shared-abstracts")` unless it is given.'
        ),
    ),
    Requirement(
        id="000-layout-default-local-index",
        section="TierLayout",
        behaviour='`TierLayout.local_index` is `Locator("local-index")` unless it is given.',
    ),
    Requirement(
        id="000-layout-roots-overridable",
        section="TierLayout",
        behaviour="A `TierLayout` takes another root for each tier.",
    ),
    Requirement(
        id="000-layout-never-sync-root",
        section="TierLayout",
        behaviour="`TierLayout.never_sync_root` is the root of LOCAL_INDEX.",
    ),
    Requirement(
        id="000-layout-root-for",
        section="TierLayout",
        behaviour="`TierLayout.root_for` gives the root of each tier.",
    ),
    Requirement(
        id="000-layout-roots-distinct",
        section="TierLayout",
        behaviour="A `TierLayout` in which two tiers share a root is refused with `ValueError`.",
    ),
    Requirement(
        id="000-layout-creates-nothing",
        section="TierLayout",
        behaviour="Building a `TierLayout` creates no directory.",
    ),
    Requirement(
        id="000-maintenance-not-instantiable",
        section="DerivedMaintenance",
        behaviour="`DerivedMaintenance` is abstract and cannot be instantiated.",
    ),
    Requirement(
        id="000-maintenance-two-operations",
        section="DerivedMaintenance",
        behaviour=(
            "The abstract methods of `DerivedMaintenance` are exactly `reindex` and "
            "`changed_since`."
        ),
    ),
    Requirement(
        id="000-maintenance-reindex-signature",
        section="DerivedMaintenance",
        behaviour=(
            "`DerivedMaintenance.reindex` is declared to take a `Tier` and to return nothing."
        ),
    ),
    Requirement(
        id="000-maintenance-changed-since-signature",
        section="DerivedMaintenance",
        behaviour=(
            "`DerivedMaintenance.changed_since` is declared to take a float and to return a "
            "list of locators."
        ),
    ),
    Requirement(
        id="000-maintenance-reindex-rebuilds",
        section="DerivedMaintenance",
        behaviour="`reindex` makes the given derived tier anew, all of it, from SOURCE.",
    ),
    Requirement(
        id="000-maintenance-changed-since-newer",
        section="DerivedMaintenance",
        behaviour=(
            "`changed_since` returns the SOURCE locators whose mtime is later than the one "
            "given, and no others."
        ),
    ),
    Requirement(
        id="000-maintenance-no-subclass",
        section="DerivedMaintenance",
        behaviour="No concrete `DerivedMaintenance` exists.",
        deferred=NO_INDEX,
    ),
    Requirement(
        id="000-seam-imports-no-database",
        section="DerivedMaintenance",
        behaviour="The modules of the storage seam import no database, index or vector library.",
    ),
    Requirement(
        id="000-public-names",
        section="Public surface",
        behaviour=(
            "`perdure.storage` exports at least InvalidLocatorError, normalize_key, Locator, "
            "Info, Capabilities, StorageBackend, ProtocolError, BackendRegistry, registry, "
            "Tier, TierLayout and DerivedMaintenance in `__all__`."
        ),
    ),
    Requirement(
        id="000-no-module-entry-point",
        section="Public surface",
        behaviour=(
            "`perdure.storage` is imported, never run: `python -m perdure.storage` finds no "
            "entry point."
        ),
    ),
)
