"""Former statements, as saving leaves them when a new one contradicts them."""

from perdure.app import Context
from perdure.model import RelationEdge, RequestContext
from tests.engine.remembering import ANA, of

MEMORIES = "ctx://local/users/ana/memories"
HOME = f"{MEMORIES}/preference/home"


def former(
    context: Context,
    text: str,
    *targets: str,
    valid: tuple[str, str] = ("", "2026-03-02"),
    who: RequestContext = ANA,
) -> str:
    """Save what does not hold any more, with edges to what superseded it; return its URI."""
    metadata = {
        name: time for name, time in zip(("valid_from", "valid_until"), valid, strict=True) if time
    }
    uri = of(context, who).save(text, category="former", slug=slug_of(text), metadata=metadata)
    edges = [RelationEdge(uri, target, "superseded_by") for target in targets]
    context.relations.upsert_edges(edges, who)
    return uri


def slug_of(text: str) -> str:
    return "-".join(text.lower().strip(".").split())


def moved_to_porto(context: Context) -> str:
    """Let Ana live in Porto, and have lived in Lisbon until March; return the former statement."""
    of(context).save(
        "Ana lives in Porto.",
        category="preference",
        slug="home",
        metadata={"valid_from": "2026-03-02"},
    )
    return former(context, "Ana lives in Lisbon.", HOME, valid=("2024-05-01", "2026-03-02"))


def found(context: Context, question: str, **how: object) -> list[str]:
    """Return the first sentences of what is found."""
    hits = of(context).recall(question, **how).hits  # type: ignore[arg-type] # as recall has them
    return [hit.snippet.partition(".")[0] for hit in hits]
