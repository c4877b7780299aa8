from tests.requirements import Requirement

SEED = "003_dd82161db90e47a5.txt"

REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(
        id="003-protocols-structural",
        section="Module",
        behaviour=(
            "The interfaces are protocols: any class of the right shape fits, without inheriting."
        ),
    ),
    Requirement(
        id="003-values-shared",
        section="Module",
        behaviour=(
            "RequestContext, ContextNode, RelationEdge, CandidateMemory, WritePlan, "
            "IndexRecord, OutboxEvent and SeedHit are the values that all interfaces "
            "exchange."
        ),
    ),
    Requirement(
        id="003-contextfs-runtime-checkable",
        section="ContextFS",
        behaviour="`isinstance` tells whether an object has the shape of `ContextFS`.",
    ),
    Requirement(
        id="003-contextfs-access-every-method",
        section="ContextFS",
        behaviour="Every method of `ContextFS` checks access against the request context.",
    ),
    Requirement(
        id="003-contextfs-account-prefix",
        section="ContextFS",
        behaviour="`ContextFS` refuses a URI whose account is not that of the request context.",
    ),
    Requirement(
        id="003-contextfs-directory",
        section="ContextFS",
        behaviour=(
            "A memory of a user is stored in "
            "`accounts/{account}/users/{user}/memories/{category}/{slug}`."
        ),
    ),
    Requirement(
        id="003-contextfs-files",
        section="ContextFS",
        behaviour=(
            "A node consists of content.md, .relations.json, .abstract.md, .overview.md and "
            ".meta.json."
        ),
    ),
    Requirement(
        id="003-write-node-content-first",
        section="write_node",
        behaviour="`write_node` writes content.md before anything else of the node.",
    ),
    Requirement(
        id="003-write-node-relations-second",
        section="write_node",
        behaviour="`write_node` writes .relations.json after content.md and before the summaries.",
    ),
    Requirement(
        id="003-write-node-summaries-third",
        section="write_node",
        behaviour=(
            "`write_node` writes .abstract.md and .overview.md after the relations, in either "
            "order."
        ),
    ),
    Requirement(
        id="003-write-node-meta-last",
        section="write_node",
        behaviour="`write_node` writes .meta.json with status ACTIVE last, as the commit point.",
    ),
    Requirement(
        id="003-write-node-order-strict",
        section="write_node",
        behaviour=(
            "No step of `write_node` begins before the step ahead of it is finished, so that "
            "repair can tell how far a write came."
        ),
    ),
    Requirement(
        id="003-write-node-torn-invisible",
        section="write_node",
        behaviour="A write that stops before .meta.json leaves no new node that readers can see.",
    ),
    Requirement(
        id="003-write-node-registers-event",
        section="write_node",
        behaviour=(
            "A finished `write_node` registers an outbox event, and an unfinished one does not."
        ),
    ),
    Requirement(
        id="003-write-node-other-account-denied",
        section="write_node",
        behaviour="`write_node` to another account raises `AccessDeniedError`.",
    ),
    Requirement(
        id="003-read-node-returns",
        section="read_node",
        behaviour="`read_node` returns the node that was written.",
    ),
    Requirement(
        id="003-read-node-other-account-denied",
        section="read_node",
        behaviour="`read_node` in another account raises `AccessDeniedError`.",
    ),
    Requirement(
        id="003-read-node-absent",
        section="read_node",
        behaviour="`read_node` raises `NodeNotFoundError` if there is no such node.",
    ),
    Requirement(
        id="003-read-node-not-active",
        section="read_node",
        behaviour="`read_node` raises `NodeNotFoundError` if the node is not ACTIVE.",
    ),
    Requirement(
        id="003-delete-node-removes",
        section="delete_node",
        behaviour="After `delete_node` the node is gone.",
    ),
    Requirement(
        id="003-delete-node-other-account-denied",
        section="delete_node",
        behaviour="`delete_node` in another account raises `AccessDeniedError`.",
    ),
    Requirement(
        id="003-archive-node-marks",
        section="archive_node",
        behaviour="`archive_node` sets the status ARCHIVED and keeps the files.",
    ),
    Requirement(
        id="003-archive-node-hides",
        section="archive_node",
        behaviour="An archived node is neither read nor said to exist.",
    ),
    Requirement(
        id="003-archive-node-other-account-denied",
        section="archive_node",
        behaviour="`archive_node` in another account raises `AccessDeniedError`.",
    ),
    Requirement(
        id="003-archive-node-absent",
        section="archive_node",
        behaviour="`archive_node` raises `NodeNotFoundError` if there is no such node.",
    ),
    Requirement(
        id="003-move-node-renames",
        section="move_node",
        behaviour="After `move_node` the node is found at the new URI only.",
    ),
    Requirement(
        id="003-move-node-source-denied",
        section="move_node",
        behaviour="`move_node` out of another account raises `AccessDeniedError`.",
    ),
    Requirement(
        id="003-move-node-target-denied",
        section="move_node",
        behaviour="`move_node` into another account raises `AccessDeniedError`.",
    ),
    Requirement(
        id="003-list-children",
        section="list_children",
        behaviour="`list_children` returns the URIs directly below a URI.",
    ),
    Requirement(
        id="003-list-children-accessible-only",
        section="list_children",
        behaviour="`list_children` leaves out every URI that the caller may not access.",
    ),
    Requirement(
        id="003-exists-active-only",
        section="exists",
        behaviour="`exists` is true only if .meta.json is there and its status is ACTIVE.",
    ),
    Requirement(
        id="003-exists-pending-hidden",
        section="exists",
        behaviour="A PENDING node is not visible to any layer above.",
    ),
    Requirement(
        id="003-relations-in-node-directory",
        section="RelationStore",
        behaviour="Relations are kept in .relations.json of the node that they start from.",
    ),
    Requirement(
        id="003-relations-directed",
        section="RelationStore",
        behaviour="An edge belongs to the node it starts from and not to its target.",
    ),
    Requirement(
        id="003-relations-weighted",
        section="RelationStore",
        behaviour="Every edge carries a weight.",
    ),
    Requirement(
        id="003-get-edges-outgoing",
        section="RelationStore",
        behaviour="`get_edges` returns all edges that start at a node.",
    ),
    Requirement(
        id="003-get-edges-none",
        section="RelationStore",
        behaviour="`get_edges` returns the empty list for a node that has no relations.",
    ),
    Requirement(
        id="003-get-edges-absent-node",
        section="RelationStore",
        behaviour="`get_edges` returns the empty list for a node that does not exist.",
    ),
    Requirement(
        id="003-upsert-edges-adds",
        section="RelationStore",
        behaviour="`upsert_edges` adds edges that are new.",
    ),
    Requirement(
        id="003-upsert-edges-updates",
        section="RelationStore",
        behaviour="`upsert_edges` replaces an edge with the same start, target and type.",
    ),
    Requirement(
        id="003-upsert-edges-idempotent",
        section="RelationStore",
        behaviour="The same `upsert_edges` twice leaves what it left once.",
    ),
    Requirement(
        id="003-one-hop-by-weight",
        section="RelationStore",
        behaviour="`get_one_hop` returns the heaviest outgoing edges first.",
    ),
    Requirement(
        id="003-one-hop-limit",
        section="RelationStore",
        behaviour="`get_one_hop` returns no more edges than `limit`.",
    ),
    Requirement(
        id="003-one-hop-default-limit",
        section="RelationStore",
        behaviour="The default `limit` of `get_one_hop` is 3.",
    ),
    Requirement(
        id="003-one-hop-none",
        section="RelationStore",
        behaviour=(
            "`get_one_hop` returns the empty list for a node without relations or that does "
            "not exist."
        ),
    ),
    Requirement(
        id="003-extract-four-extractors",
        section="CandidateExtractor",
        behaviour=(
            "There is one extractor each for profile, preference, entities and events, and "
            "procedures."
        ),
    ),
    Requirement(
        id="003-extract-profile",
        section="CandidateExtractor",
        behaviour="`ProfileExtractor` finds what a user is and does.",
    ),
    Requirement(
        id="003-extract-preference",
        section="CandidateExtractor",
        behaviour="`PreferenceExtractor` finds what a user prefers and thinks.",
    ),
    Requirement(
        id="003-extract-entity-event",
        section="CandidateExtractor",
        behaviour="`EntityEventExtractor` finds entities and events.",
    ),
    Requirement(
        id="003-extract-procedure",
        section="CandidateExtractor",
        behaviour=(
            "`ProcedureExtractor` finds skills and procedures, and puts them in the agent's space."
        ),
    ),
    Requirement(
        id="003-extract-message-format",
        section="CandidateExtractor",
        behaviour="`extract` accepts messages with the keys role (user or assistant) and content.",
    ),
    Requirement(
        id="003-extract-confidence",
        section="CandidateExtractor",
        behaviour="Each candidate that `extract` returns carries a confidence.",
    ),
    Requirement(
        id="003-merge-four-policies",
        section="MergePolicy",
        behaviour="There is one policy each for profile, topics, append-only memories and skills.",
    ),
    Requirement(
        id="003-merge-profile",
        section="MergePolicy",
        behaviour="`ProfilePolicy` always merges, into one fixed URI.",
    ),
    Requirement(
        id="003-merge-aggregate-topic",
        section="MergePolicy",
        behaviour=(
            "`AggregateTopicPolicy` merges preferences, entities and patterns that have the "
            "same slug."
        ),
    ),
    Requirement(
        id="003-merge-append-only",
        section="MergePolicy",
        behaviour=(
            "`AppendOnlyPolicy` always creates events and cases, each under an id of its own."
        ),
    ),
    Requirement(
        id="003-merge-skill-tool",
        section="MergePolicy",
        behaviour="`SkillToolPolicy` gathers what worked best for a skill at one fixed URI.",
    ),
    Requirement(
        id="003-merge-plan-action",
        section="MergePolicy",
        behaviour=(
            "`plan` answers with a `WritePlan` whose action is create, merge, append or skip."
        ),
    ),
    Requirement(
        id="003-index-tenant-filter",
        section="VectorIndex",
        behaviour="The index itself keeps accounts apart, so that the layers above need not.",
    ),
    Requirement(
        id="003-index-upsert-idempotent",
        section="VectorIndex",
        behaviour="`upsert` of a record with an id that is there already replaces it.",
    ),
    Requirement(
        id="003-index-upsert-adds",
        section="VectorIndex",
        behaviour="`upsert` makes a new record findable.",
    ),
    Requirement(
        id="003-index-delete",
        section="VectorIndex",
        behaviour="`delete` removes the records with the given ids.",
    ),
    Requirement(
        id="003-index-delete-absent",
        section="VectorIndex",
        behaviour="`delete` of an id that is not there does nothing.",
    ),
    Requirement(
        id="003-index-search-hits",
        section="VectorIndex",
        behaviour="`search_by_vector` returns `SeedHit` values with their level.",
    ),
    Requirement(
        id="003-index-search-mixed-levels",
        section="VectorIndex",
        behaviour="One `search_by_vector` can return L0, L1 and L2 hits together.",
    ),
    Requirement(
        id="003-index-search-filters",
        section="VectorIndex",
        behaviour="`search_by_vector` returns only what its filters admit.",
    ),
    Requirement(
        id="003-index-search-top-k",
        section="VectorIndex",
        behaviour="`search_by_vector` returns no more than `top_k` hits.",
    ),
    Requirement(
        id="003-index-search-unsupported",
        section="VectorIndex",
        behaviour=(
            "An index that does not implement `search_by_vector` raises `NotImplementedError`."
        ),
    ),
    Requirement(
        id="003-index-children-immediate",
        section="VectorIndex",
        behaviour="`search_children` returns hits directly below the parent URI only.",
    ),
    Requirement(
        id="003-index-children-mandatory",
        section="VectorIndex",
        behaviour="Every index implements `search_children`.",
    ),
    Requirement(
        id="003-index-children-expansion",
        section="VectorIndex",
        behaviour=(
            "Recall widens its hits from parent to child through `search_children`, level by level."
        ),
    ),
    Requirement(
        id="003-index-delete-account",
        section="VectorIndex",
        behaviour="`delete_account_data` removes all records of an account and returns how many.",
    ),
    Requirement(
        id="003-index-delete-owner-space",
        section="VectorIndex",
        behaviour=(
            "`delete_by_owner_space` removes all records of one owner space in one account "
            "and returns how many."
        ),
    ),
    Requirement(
        id="003-index-owner-space-format",
        section="VectorIndex",
        behaviour='An owner space is written "user:{id}" or "agent:{id}".',
    ),
    Requirement(
        id="003-namespace-delete-account",
        section="VectorIndex",
        behaviour=(
            "`NamespaceManager.delete_account` removes the account's index records through "
            "`delete_account_data`."
        ),
    ),
    Requirement(
        id="003-namespace-delete-user-agent",
        section="VectorIndex",
        behaviour=(
            "`NamespaceManager.delete_user` and `delete_agent` remove index records through "
            "`delete_by_owner_space`."
        ),
    ),
    Requirement(
        id="003-embedder-runtime-checkable",
        section="Embedder",
        behaviour="`isinstance` tells whether an object has the shape of `Embedder`.",
    ),
    Requirement(
        id="003-embedder-one-vector-each",
        section="Embedder",
        behaviour="`embed_texts` returns as many vectors as it was given texts, in order.",
    ),
    Requirement(
        id="003-embedder-same-dimension",
        section="Embedder",
        behaviour="All vectors of an embedder have one dimension.",
    ),
    Requirement(
        id="003-llm-runtime-checkable",
        section="LLM",
        behaviour="`isinstance` tells whether an object has the shape of `LLM`.",
    ),
    Requirement(
        id="003-llm-complete-json",
        section="LLM",
        behaviour="`complete_json` returns a parsed dict that fits the schema.",
    ),
    Requirement(
        id="003-llm-schema-format",
        section="LLM",
        behaviour="`complete_json` takes an object schema with its properties.",
    ),
    Requirement(
        id="003-llm-tools-invocations",
        section="LLM",
        behaviour="`complete_with_tools` returns every tool call as a dict with tool and input.",
    ),
    Requirement(
        id="003-llm-tools-none-called",
        section="LLM",
        behaviour="`complete_with_tools` returns the empty list if the model calls no tool.",
    ),
    Requirement(
        id="003-llm-tools-choice",
        section="LLM",
        behaviour=(
            "`complete_with_tools` leaves the choice of tool to the model by default, and "
            "takes the name of one instead."
        ),
    ),
    Requirement(
        id="003-llm-tool-definition",
        section="LLM",
        behaviour="A tool is defined by name, description and an input_schema in JSON Schema.",
    ),
    Requirement(
        id="003-llm-messages-history",
        section="LLM",
        behaviour=(
            "`complete_with_tools_messages` takes a whole conversation of messages with role "
            "and content."
        ),
    ),
    Requirement(
        id="003-llm-messages-returns",
        section="LLM",
        behaviour="`complete_with_tools_messages` returns the tool calls and the text as a pair.",
    ),
    Requirement(
        id="003-llm-messages-empty-text",
        section="LLM",
        behaviour=(
            "The text of `complete_with_tools_messages` is empty if there were only tool calls."
        ),
    ),
    Requirement(
        id="003-llm-messages-no-tools",
        section="LLM",
        behaviour=(
            "With `tools` at its default of `None`, `complete_with_tools_messages` offers the "
            "model no tool."
        ),
    ),
    Requirement(
        id="003-llm-messages-choice",
        section="LLM",
        behaviour=(
            "`complete_with_tools_messages` takes auto (the default), required, none or a "
            "tool's name as its choice."
        ),
    ),
    Requirement(
        id="003-outbox-durable",
        section="OutboxStore",
        behaviour="A registered event survives a restart of the process.",
    ),
    Requirement(
        id="003-outbox-register-write",
        section="OutboxStore",
        behaviour="`register_write` stores and returns an event for a node that was written.",
    ),
    Requirement(
        id="003-outbox-register-write-after",
        section="OutboxStore",
        behaviour="A write is registered only after `write_node` succeeded.",
    ),
    Requirement(
        id="003-outbox-register-delete",
        section="OutboxStore",
        behaviour="`register_delete` stores and returns an event for a deleted URI.",
    ),
    Requirement(
        id="003-outbox-register-archive",
        section="OutboxStore",
        behaviour=(
            "`register_archive` stores and returns an event for an archived URI, after "
            "archiving succeeded."
        ),
    ),
    Requirement(
        id="003-outbox-archive-leaves-search",
        section="OutboxStore",
        behaviour="Once the worker has handled an archive event, the node is in no search result.",
    ),
    Requirement(
        id="003-outbox-register-directory",
        section="OutboxStore",
        behaviour=(
            "`register_directory` stores and returns an UPSERT_DIRECTORY event for the parent "
            "of a node."
        ),
    ),
    Requirement(
        id="003-outbox-directory-siblings",
        section="OutboxStore",
        behaviour="A directory event carries the abstracts of at most 20 siblings.",
    ),
    Requirement(
        id="003-outbox-directory-self-contained",
        section="OutboxStore",
        behaviour="A directory event carries all that the indexer needs, so that it reads no node.",
    ),
    Requirement(
        id="003-outbox-list-pending",
        section="OutboxStore",
        behaviour="`list_pending` returns the waiting events as pairs of node URI and event.",
    ),
    Requirement(
        id="003-outbox-list-pending-account",
        section="OutboxStore",
        behaviour="`list_pending` returns the events of the given account only.",
    ),
    Requirement(
        id="003-outbox-mark-processing",
        section="OutboxStore",
        behaviour="`mark_processing` records that an event is being worked on.",
    ),
    Requirement(
        id="003-outbox-mark-done",
        section="OutboxStore",
        behaviour="`mark_done` removes the event for good.",
    ),
    Requirement(
        id="003-outbox-dead-letter",
        section="OutboxStore",
        behaviour="`move_to_dlq` takes an event out of the queue and into the dead-letter queue.",
    ),
    Requirement(
        id="003-outbox-dead-letter-after-retries",
        section="OutboxStore",
        behaviour=(
            "An event goes to the dead-letter queue when its retries are more than the "
            "permitted number."
        ),
    ),
    Requirement(
        id="003-outbox-increment-retry",
        section="OutboxStore",
        behaviour="`increment_retry` raises the retry count of an event by one.",
    ),
    Requirement(
        id="003-outbox-next-retry-at",
        section="OutboxStore",
        behaviour=(
            "`increment_retry` stores when the event may be tried next, if it is told, and "
            "`None` is the default."
        ),
    ),
    Requirement(
        id="003-outbox-acquire-atomic",
        section="OutboxStore",
        behaviour=(
            "Of several workers that call `try_acquire` for one event at once, exactly one "
            "gets `True`."
        ),
    ),
    Requirement(
        id="003-outbox-acquire-refused",
        section="OutboxStore",
        behaviour=(
            "`try_acquire` is `False` while another worker's claim is younger than the timeout."
        ),
    ),
    Requirement(
        id="003-outbox-acquire-expired",
        section="OutboxStore",
        behaviour="`try_acquire` is `True` once the earlier claim is older than the timeout.",
    ),
    Requirement(
        id="003-outbox-acquire-default-timeout",
        section="OutboxStore",
        behaviour="The default timeout of a claim is 300 seconds.",
    ),
    Requirement(
        id="003-outbox-acquire-lock-file",
        section="OutboxStore",
        behaviour="A claim is a file `.outbox/{event_id}.processing`.",
        deferred=(
            "overruled by DESIGN decision 5: the outbox lives in the never-synced local tier, "
            "and claims are leases in it"
        ),
    ),
    Requirement(
        id="003-outbox-release",
        section="OutboxStore",
        behaviour="`release` gives up a claim, so that another worker can take the event.",
    ),
    Requirement(
        id="003-outbox-release-always",
        section="OutboxStore",
        behaviour="The worker releases its claim on success and on an exception.",
    ),
    Requirement(
        id="003-outbox-release-lock-file",
        section="OutboxStore",
        behaviour="Releasing a claim removes the file `.outbox/{event_id}.processing`.",
        deferred=(
            "overruled by DESIGN decision 5: the outbox lives in the never-synced local tier, "
            "and claims are leases in it"
        ),
    ),
)
