from tests.requirements import Requirement

SEED = "004_817598ab14e5a64d.txt"

REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(
        id="004-two-operations",
        section="2. Scope",
        behaviour=(
            "`ArtifactStore` makes content visible through `put` and returns it through "
            "`get`, and in no other way."
        ),
    ),
    Requirement(
        id="004-no-layout-assumed",
        section="2. Scope",
        behaviour="The contract holds for any layout of blocks and any block store.",
    ),
    Requirement(
        id="004-dag-by-sid",
        section="3. Actors and Dependencies",
        behaviour="Artifacts form a DAG in which each is addressed by its SID.",
    ),
    Requirement(
        id="004-cache-optional",
        section="3. Actors and Dependencies",
        behaviour="`put` and `get` give the same answers with and without the SID to CID cache.",
    ),
    Requirement(
        id="004-index-maps-cid",
        section="3. Actors and Dependencies",
        behaviour="The content index maps a CID to its `ArtifactLocation`.",
    ),
    Requirement(
        id="004-blocks-opaque",
        section="3. Actors and Dependencies",
        behaviour="The block store keeps bytes and knows nothing of what they mean.",
    ),
    Requirement(
        id="004-never-bypass-index",
        section="3. Actors and Dependencies",
        behaviour="No bytes are found except through the content index.",
    ),
    Requirement(
        id="004-put-returns-cid-and-state",
        section="4.1 PUT Signature",
        behaviour="`put` returns the CID and the `IndexState` that holds after it.",
    ),
    Requirement(
        id="004-index-state-pair",
        section="4.1 PUT Signature",
        behaviour="An `IndexState` is the pair of snapshot id and log position.",
    ),
    Requirement(
        id="004-put-lazy-artifact",
        section="4.1 PUT Signature",
        behaviour="`put` accepts an artifact that has not been materialized yet.",
    ),
    Requirement(
        id="004-put-order",
        section="4.2 PUT Semantics",
        behaviour="However `put` is optimized, its effects are as if its steps were done in order.",
    ),
    Requirement(
        id="004-put-registers-structure",
        section="Step 1: Structural registration",
        behaviour="`put` registers the artifact's structure under its SID.",
    ),
    Requirement(
        id="004-put-reuses-sid",
        section="Step 1: Structural registration",
        behaviour="`put` of a structure whose SID is known reuses that entry.",
    ),
    Requirement(
        id="004-sid-independent-of-storage",
        section="Step 1: Structural registration",
        behaviour="An artifact's SID does not depend on where or whether it is stored.",
    ),
    Requirement(
        id="004-put-uses-cached-cid",
        section="Step 2: CID resolution",
        behaviour="If the cache knows the CID of a SID, `put` takes it and materializes nothing.",
    ),
    Requirement(
        id="004-put-materializes",
        section="Step 2: CID resolution",
        behaviour=(
            "If the cache does not know the SID, `put` materializes the artifact and computes "
            "its CID."
        ),
    ),
    Requirement(
        id="004-put-caches-cid",
        section="Step 2: CID resolution",
        behaviour="After materializing, `put` remembers the CID of the SID.",
    ),
    Requirement(
        id="004-put-materializes-children",
        section="Step 2: CID resolution",
        behaviour="Materializing an artifact materializes the children that it needs.",
    ),
    Requirement(
        id="004-put-checks-current",
        section="Step 3: Deduplication check",
        behaviour="`put` looks the CID up in the content index as it is now.",
    ),
    Requirement(
        id="004-put-dedup-writes-nothing",
        section="Step 3: Deduplication check",
        behaviour="`put` of content that is indexed already writes no bytes to any block.",
    ),
    Requirement(
        id="004-put-dedup-needs-no-entry",
        section="Step 3: Deduplication check",
        behaviour="`put` of content that is indexed already needs no new index entry.",
    ),
    Requirement(
        id="004-put-dedup-succeeds",
        section="Step 3: Deduplication check",
        behaviour="`put` of content that is indexed already succeeds and returns its CID.",
    ),
    Requirement(
        id="004-put-dedup-global",
        section="Step 3: Deduplication check",
        behaviour="Equal bytes are stored once, whichever artifacts they came from.",
    ),
    Requirement(
        id="004-put-writes-bytes",
        section="Step 4: Physical storage",
        behaviour="`put` of new content writes its bytes to a block.",
    ),
    Requirement(
        id="004-location-is-slices",
        section="Step 4: Physical storage",
        behaviour="An `ArtifactLocation` is a sequence of `BlockSlice` values.",
    ),
    Requirement(
        id="004-slice-fields",
        section="Step 4: Physical storage",
        behaviour="A `BlockSlice` is a block id, an offset and a length.",
    ),
    Requirement(
        id="004-put-appends-entry",
        section="Step 5: Index mutation",
        behaviour="`put` of new content appends one Put entry, from CID to location, to the log.",
    ),
    Requirement(
        id="004-put-visible-at-position",
        section="Step 5: Index mutation",
        behaviour="The entry of a `put` is seen from its log position on and not before.",
    ),
    Requirement(
        id="004-put-only-visible-moment",
        section="Step 5: Index mutation",
        behaviour="Content that is in a block but not in the log is not visible.",
    ),
    Requirement(
        id="004-put-cid-stable",
        section="4.3 PUT Guarantees",
        behaviour="The CID of an artifact stays the same for ever.",
    ),
    Requirement(
        id="004-put-retrievable",
        section="4.3 PUT Guarantees",
        behaviour="What `put` returned can be fetched with `get`.",
    ),
    Requirement(
        id="004-put-bytes-immutable",
        section="4.3 PUT Guarantees",
        behaviour="A CID leads to the same bytes at every later time.",
    ),
    Requirement(
        id="004-state-monotonic",
        section="4.3 PUT Guarantees",
        behaviour="The index state never goes backwards.",
    ),
    Requirement(
        id="004-state-replayable",
        section="4.3 PUT Guarantees",
        behaviour="The index can be rebuilt by replaying the log.",
    ),
    Requirement(
        id="004-put-idempotent",
        section="4.3 PUT Guarantees",
        behaviour="The same `put` twice has the effect of one.",
    ),
    Requirement(
        id="004-get-default-current",
        section="5.1 GET Signature",
        behaviour="`get` without a state answers as of now.",
    ),
    Requirement(
        id="004-get-at-state",
        section="5.1 GET Signature",
        behaviour="`get` with an `IndexState` answers as of that state.",
    ),
    Requirement(
        id="004-get-resolves-prefix",
        section="5.2 GET Semantics",
        behaviour=(
            "`get` resolves a CID through the snapshot and the log up to the position asked for."
        ),
    ),
    Requirement(
        id="004-get-not-found",
        section="5.2 GET Semantics",
        behaviour="`get` of a CID with no entry in that state returns `None`.",
    ),
    Requirement(
        id="004-get-exact-bytes",
        section="5.2 GET Semantics",
        behaviour="`get` reads exactly the length of each slice from its block and offset.",
    ),
    Requirement(
        id="004-get-verbatim",
        section="5.2 GET Semantics",
        behaviour="`get` returns the bytes as they were stored, uninterpreted.",
    ),
    Requirement(
        id="004-get-deterministic",
        section="5.3 GET Guarantees",
        behaviour="The same `get` at the same state always gives the same answer.",
    ),
    Requirement(
        id="004-get-content-addressed",
        section="5.3 GET Guarantees",
        behaviour="The bytes that `get` returns hash to the CID that was asked for.",
    ),
    Requirement(
        id="004-get-never-materializes",
        section="5.3 GET Guarantees",
        behaviour="`get` never materializes an artifact.",
    ),
    Requirement(
        id="004-get-never-mutates",
        section="5.3 GET Guarantees",
        behaviour="`get` changes no state.",
    ),
    Requirement(
        id="004-visible-only-sealed",
        section="6. Visibility Rules",
        behaviour="An entry is visible only if the block that it names is sealed.",
    ),
    Requirement(
        id="004-visible-only-up-to-current",
        section="6. Visibility Rules",
        behaviour="An entry is visible only if its position is not beyond the current one.",
    ),
    Requirement(
        id="004-visible-only-in-prefix",
        section="6. Visibility Rules",
        behaviour="An entry is visible only if the snapshot or the log prefix contains it.",
    ),
    Requirement(
        id="004-visible-if-all-hold",
        section="6. Visibility Rules",
        behaviour="An entry for which all three conditions hold is visible.",
    ),
    Requirement(
        id="004-no-dangling-entry",
        section="7. Failure Semantics",
        behaviour="No visible entry names bytes that are missing or can still change.",
    ),
    Requirement(
        id="004-partial-write-invisible",
        section="7. Failure Semantics",
        behaviour="A write that did not finish is never visible.",
    ),
    Requirement(
        id="004-replay-after-crash",
        section="7. Failure Semantics",
        behaviour="After a crash, replaying snapshot and log gives a valid index.",
    ),
    Requirement(
        id="004-same-cid",
        section="8. Determinism Contract",
        behaviour="The same artifact gives the same CID on every machine.",
    ),
    Requirement(
        id="004-same-location",
        section="8. Determinism Contract",
        behaviour="The same snapshot and log position resolve a CID to the same location.",
    ),
    Requirement(
        id="004-same-get",
        section="8. Determinism Contract",
        behaviour="The same snapshot and log position give the same bytes.",
    ),
    Requirement(
        id="004-agnostic-of-derivation",
        section="9. Relationship to q-bits",
        behaviour="Storage treats content alike, however its CID came about.",
    ),
)
