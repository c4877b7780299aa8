"""The small words of English, by what they do in a statement."""

from perdure.engine.merge.vocabulary import set_of

SOFT = set_of(
    """
    a an the this that these those it its itself there please kindly really very quite just
    actually currently now nowadays still already so also too any which who whom
    whose you your yours they their theirs them themselves ever ~at ~bid let being been etc
    """
)
"""Words that may be left out."""
PERSONS = {
    word: person
    for person, said in {
        "me": "i me my mine myself",
        "us": "we us our ours ourselves",
        "him": "he him his himself",
        "her": "she her hers herself",
    }.items()
    for word in said.split()
}
PERSONS |= {
    "ich": "me", "je": "me", "yo": "me", "eu": "me", "\u044f": "me",
    "wir": "us", "nous": "us", "nosotros": "us", "n\u00f3s": "us", "\u043c\u044b": "us",
    "er": "him", "il": "him", "\u00e9l": "him", "ele": "him", "\u043e\u043d": "him",
    "elle": "her", "ella": "her", "ela": "her", "\u043e\u043d\u0430": "her",
}  # fmt: skip
BE = {"am": "is", "is": "is", "are": "is", "be": "is", "~be": "is", "was": "was", "were": "was"}
DO = frozenset({"do", "does", "did"})
HAVE = frozenset({"have", "has", "had", "get", "gets", "got"})
"""Also helping verbs, before a participle."""
OBLIGATIONS = {"must": "must", "should": "should"}
WEAK = set_of(
    """
    in at on for of with by to as into onto through during via among
    """
)
"""Prepositions that other ones may stand for, or none."""
STRONG = set_of(
    """
    before after from until till since ~than under below above off out between against despite
    except unless if when whenever while because whether up down beyond or nor where why how
    what within inside outside behind toward towards
    """
)
"""Words that a clause or a phrase may begin with, and that must be the same."""
NEGATIONS = {
    "not": "not",
    "no": "not",
    "~not": "not",
    "never": "never",
    "~never": "never",
    "~ceased": "ceased",
    "~notyet": "not yet",
}
STOPPING = set_of(
    """
    stop stops stopped stopping quit quits quitting cease ceases ceased
    """
)
"""What negates a verb that follows it in -ing."""
NEGATED = {
    "dislike": "like", "dislikes": "likes", "disliked": "liked", "distrust": "trust",
    "distrusts": "trusts", "disagree": "agree", "disagrees": "agrees", "disagreed": "agreed",
    "disallow": "allow", "disallows": "allows", "disallowed": "allowed", "disabled": "enabled",
    "disable": "enable", "disables": "enables", "disapprove": "approve", "disapproves": "approves",
    "unavailable": "available", "unsupported": "supported", "unsigned": "signed", "unpaid": "paid",
    "unable": "able", "unhappy": "happy", "unclear": "clear", "unknown": "known",
    "unnecessary": "necessary", "uncertain": "certain", "unverified": "verified", "unsafe": "safe",
    "unstable": "stable", "unreliable": "reliable", "unfinished": "finished", "unused": "used",
    "untested": "tested", "unmarried": "married", "unemployed": "employed", "unlocked": "locked",
    "unread": "read", "unlikely": "likely", "inactive": "active", "incorrect": "correct",
    "incomplete": "complete", "invalid": "valid", "impossible": "possible",
    "incompatible": "compatible",
    "inconsistent": "consistent", "illegal": "legal", "irregular": "regular",
    "unfamiliar": "familiar",
    "uncomfortable": "comfortable", "unhealthy": "healthy", "uninstalled": "installed",
    "undocumented": "documented", "unencrypted": "encrypted", "unwilling": "willing",
}  # fmt: skip
"""Words that say that another one is not so."""
TAKES_NO = set_of("want need eat drink use own like take get")
"""Verbs that are negated by the "no" after them."""
ADVERBS = set_of(
    """
    usually normally typically generally mostly often frequently sometimes occasionally rarely
    seldom daily weekly monthly yearly hourly nightly always again together today tomorrow
    yesterday first last next maybe perhaps possibly probably
    """
)
MODALS = set_of("~will ~was can could may might would")
BOUNDS = frozenset({"~atleast", "~atmost"})
FLOATING = (ADVERBS, MODALS, BOUNDS)
"""Words that may stand anywhere, if there is one of their kind."""
EACH = set_of("every each all jeden jede jedes")
SPELLS = set_of(
    """
    morning afternoon evening night day week weekend weekday month quarter year spring summer
    autumn winter morgen abend tag woche monat jahr nacht
    """
)
"""Stretches of time; "every summer" may stand anywhere."""
CONJUNCTIONS = set_of(
    """
    before after until till since unless if when whenever while because
    """
)
SERVING = set_of(
    """
    use need require store hold contain include show display monitor test build deploy
    format lint generate manage encrypt compile host run power cache keep
    """
)
"""Verbs whose subject may as well stand behind: "B uses A", "A is used for B"."""
ERGATIVE = set_of(
    """
    rotate run deploy build start restart open close move change update ship release expire
    reload load sync refresh
    """
)
"""Verbs that say the same of what they are done to, with "is" or without."""
INTERCHANGEABLE = (
    frozenset({"in", "at", "on", "into", "onto", "within", "during"}),
    frozenset({"for", "at", "in", "of", "on"}),
    frozenset({"as", "in"}),
    frozenset({"with", "by", "through", "via"}),
    frozenset({"with", "in"}),
    frozenset({"to", "for"}),
    frozenset({"to", "in", "at"}),
    frozenset({"to", "of"}),
    frozenset({"with", "of"}),
    frozenset({"on", "by"}),
)
"""Prepositions of which one may stand for the other."""
