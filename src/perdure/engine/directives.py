"""What a sentence demands of what it names: files, commands and packages to use, or not to use.

Only names count. A demand without one ("keep functions small") is not about any tool call.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile

from perdure.dataclass import dataclass
from perdure.engine.commands import (
    EXECUTED,
    PROGRAMS,
    canonical,
    flags_in,
    is_path,
    word_set,
    words_in,
)
from perdure.patterns import later

LONGEST = 400
"""Characters of a sentence that is looked at; a longer one is a description."""
_MOST_NAMES = 12
_MOST_WORDS = 3
"""Words of a command that tell it from others: program, subcommand, its subcommand."""

PATH, COMMAND, WORD = "path", "command", "word"
WRONG, RIGHT, ABOUT, ALLOWED, NONE = "wrong", "right", "about", "allowed", ""


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a sentence: a path or glob, a command, or a word of code."""

    kind: str
    words: tuple[str, ...]
    """The parts of a path; program and subcommands; one word."""
    flags: frozenset[str] = frozenset()
    verb: str = ""
    """What is not to be done with a path, if that is not to change it: commit, read, run."""
    is_code: bool = False
    """Whether the sentence marks it as code."""

    @property
    def key(self) -> str:
        """The word by which an index finds it; of a glob, `*` and what it ends with."""
        if self.kind == PATH:
            last = self.words[-1].casefold()
            return f"*{last.rpartition('*')[2]}" if "*" in last else last
        return canonical(self.words[0]) if self.kind == COMMAND else self.words[0].casefold()


@dataclass(frozen=True, slots=True)
class Directive:
    wrong: tuple[Name, ...] = ()
    """What is not to be used."""
    right: tuple[Name, ...] = ()
    """What is to be used."""
    about: tuple[Name, ...] = ()
    """What it is about: who uses it should know the sentence."""
    allowed: tuple[Name, ...] = ()
    """What may be used again."""

    def __bool__(self) -> bool:
        commands = any(n.kind == COMMAND for n in self.right)
        return bool(self.wrong or self.about or self.allowed or commands)

    @property
    def keys(self) -> tuple[str, ...]:
        """The words of which a tool call has at least one, if the sentence is about it."""
        names = (*self.wrong, *self.right, *self.about, *self.allowed)
        keys = {name.key for name in names}
        for name in self.right:
            keys |= {each for group in EXCLUSIVE if name.key in group for each in group}
        keys |= {stem for name in self.wrong if (stem := package_of(name))}
        return tuple(sorted(keys))


EXCLUSIVE = (
    frozenset({"npm", "pnpm", "yarn", "bun"}),
    frozenset({"pip", "poetry", "uv", "pipenv"}),
    frozenset({"jest", "vitest", "mocha"}),
)
"""Programs of which a project uses one: a rule to use one is a rule not to use the others."""


def package_of(name: Name) -> str:
    """Return what a word is called where it is imported: `moment` of `moment.js`; or empty."""
    word = name.words[0].casefold() if name.kind == WORD else ""
    return re.sub(r"(?:\.js|js\(\)|\(\))$", "", word)


_EXTENSION = (
    r"(?:md|mdx|mdc|txt|rst|jsx?|tsx?|mjs|cjs|py|pyi|go|rs|rb|java|kt|swift|c|h|cc|cpp|hpp|cs|php|"
    r"vue|svelte|astro|css|scss|less|html?|json[c5l]?|ya?ml|toml|ini|cfg|conf|lock|sql|sh|bash|"
    r"env|xml|proto|graphql|tf|ipynb|csv|snap|j2|tmpl)"
)
_NAMES = later(
    rf"`(?P<code>[^`\n]{{1,120}})`"
    rf"|(?<![\w`/:.<])@?(?P<path>(?:\.{{0,2}}/)?(?:[\w.@*-]+/)+(?:[\w.@*-]*[\w*])?"
    rf"|(?:[\w-]+\.)*[\w*-]+\.{_EXTENSION}\b|\*\.\w+|\.(?:env|github|vscode|cursor|claude)\b"
    rf"(?:\.\w+)?|\.{_EXTENSION}(?= files?\b))"
    rf"|\b(?P<file>(?i:readme|changelog)|LICENSE|CONTRIBUTING|Makefile|Dockerfile|Justfile)\b"
    rf"|\b(?P<git>(?i:force[- ]push|commit|push|rebase))(?:t?ing|es|s|ed)?\b"
    rf"|\b(?P<request>PRs?|pull requests?)\b"
    rf"|(?<![\w./'-])(?P<program>[a-z][\w-]*)(?![\w/]|\.\w)"
    rf"|(?<![\w./-])(?P<word>@?[A-Za-z][\w@/+-]*(?:\.js)?)"
)
_SUBCOMMANDS = word_set(
    "install add remove run test ci i publish start build init exec dlx update upgrade audit "
    "link push commit rebase merge pull fetch checkout switch reset stash tag cherry-pick clone "
    "clean restore rm mv revert amend compose up down lint format check fmt deploy migrate sync "
    "lock clippy doc vet mod generate apply plan destroy delete create pr release"
)
_CUES = later(
    r"(?P<described>\b(?:i|it|they|he|she|which|that|there|who) (?:also |still |really )?"
    r"(?:do|does|did|is|are|was|were|can|could|would|has|have)(?:n'?t| not| never)\b"
    r"|\b(?:why|how come) (?:\w+ )?(?:don'?t|not)\b)"
    r"|(?P<idle>\b(?:don'?t|do not|doesn'?t) (?:need|have|see|think|know|believe|worry|mind|care|"
    r"get|understand|seem|look|want me|feel|hesitate|matter|exist|work|like)\b)"
    r"|(?P<right>\bdon'?t forget to\b|\bnever (?:forget|fail) to\b|\bnot only\b"
    r"|\b(?:must|should|only|always) (?:use|run)\b)"
    r"|(?P<except>\b(?:unless|except(?: for)?|other than|apart from|aside from)\b)"
    r"|(?P<without>\bwithout\b)"
    r"|(?P<wrong>\bnever\b|\b(?:do|does|must|should|may|can|need|could|would)(?:n'?t| not)\b"
    r"|\bcannot\b|\bdont\b|\bavoid(?:ing)?\b|\bstop\b|\bno longer\b|\binstead of\b|\brather than\b"
    r"|\bin place of\b|\bas opposed to\b|\brefrain from\b|\bnot\b(?! sure| yet)|\bforbid\b"
    r"|\bno(?= [`*.\w])|\bban(?:ned)?\b)"
    r"|(?P<over>\bover\b)"
    r"|(?P<about>\b(?:before|after|when|whenever|while|once|until|every time|each time|if)\b)"
    r"|(?P<use>\b(?:use[sd]?|using|run|runs|running|prefer|call|execute|switch(?:ed)? to|go with|"
    r"stick (?:to|with)|do|instead,)\b)"
    r"|(?P<stop>[;\u2014]|(?<!use)(?<!run)(?<!not)(?<!never)(?<!edit)(?<!touch)(?<!these):|\s[-\u2013]\s|\bbut\b|[.!?](?=\s|$))"
    r"|(?P<end>[:,(]|\band (?=use|run|always|never|do\b|only))",
    re.IGNORECASE,
)
_BANNED = later(
    r"\bforbidden\b|\b(?:must|should) not exist\b"
    r"|\b(?:is|are|was|were|be)\s+(?:strictly |auto-?|now |considered )?(?:banned|"
    r"prohibited|disallowed|deprecated|off[- ]limits|not (?:allowed|permitted|to be used)|"
    r"read[- ]only|generated|rejected)\b"
    r"|\b(?:must|should|may|can|shall)(?:n'?t| not| never) (?:ever )?be (?:\w+ ?){1,2}"
    r"|\b(?:cannot|never) be (?:\w+ ?){1,2}",
    re.IGNORECASE,
)
_CHANGING = (
    r"(?:edit|touch|modify|change|alter|update|delete|remove|rename|move|overwrite|rewrite|write to"
    r"|hand-edit|refactor|commit|use|import|add)(?:ing|e?d)?"
)
_IT = later(
    rf"(?:\s+(?:ever|manually|directly))?\s+{_CHANGING}"
    r"(?:\s+(?:it|them|this|that|these|those|there|anything|by hand|manually|directly|in place)\b"
    r"|\s*[.!,;]|\s*$)",
    re.IGNORECASE,
)
_PLACED = later(
    r"\b(?:put|place|store|save|create|write|move|add|adds|added|append|update|log|document|"
    r"documented|see|read|follow|check|consult|use|using|live|lives|go|goes|belongs?|defined|found|"
    r"located|listed|named|called|look at|look in|from|via|with|according to|per|export|copy)\b"
    r"(?:\W+[\w'`./-]+){0,5}?\W*$",
    re.IGNORECASE,
)
_SCOPED = later(r"\b(?:in|inside|within|under|into|to|from|for|of|on)\s+(?:the\s+)?[`@]?$")
_GIVEN = later(
    r"\b(?:put|place|store|save|create|write|add|adding|placing|putting|use|using|import|importing"
    r"|install|do|have)\b",
    re.IGNORECASE,
)
_ANYTHING = later(
    r"\b(?:put|place|store|save|create|write|add)(?:ing)?\s+"
    r"(?:(?:any|new|more)\s+)*(?:files?|anything|code|things?)\s+\w+\s+(?:the\s+)?[`@]?$",
    re.IGNORECASE,
)
_VERBS = (
    (
        "commit",
        later(r"\b(?:commit|push|stage|check in|git add)\w*\W+(?:\S+\W+){0,3}$", re.IGNORECASE),
    ),
    (
        "read",
        later(
            r"\b(?:read|open|print|cat|show|log|leak|expose|echo|view)\w*\W+(?:\S+\W+){0,2}$",
            re.IGNORECASE,
        ),
    ),
    ("run", later(r"\b(?:run|execute|call|invoke)\w*\W+(?:\S+\W+){0,1}$", re.IGNORECASE)),
    ("use", later(r"\b(?:use|import|using|importing)\W+(?:\S+\W+){0,1}$", re.IGNORECASE)),
)
_LASTING = later(
    r"\b(?:always|never|must|should|shall|only|every|all|each|needs? to|ha(?:s|ve) to|make sure|"
    r"ensure|required?|keep|don'?t|do not|avoid|prefer|before|after|when|whenever)\b",
    re.IGNORECASE,
)
_PASSING = later(
    r"\b(?:yet|for now|this time|right now|today|just this once|temporarily|at the moment|for the "
    r"moment|in this (?:session|chat|task|conversation)|currently|first pass|just now|looks like|"
    r"i'll|i will|i'm|i am|i've|let me|wait|hmm|error|errors?:|failed|failing|did(?:n'?t| not)|"
    r"was(?:n'?t| not)|were(?:n'?t| not)|seems?)\b",
    re.IGNORECASE,
)
_NOT_PACKAGES = word_set(
    "a an the any all it its this that these those them more new old other another one two both "
    "such only ever just use using add import install create write make put edit touch run do "
    "be have code file files test tests comment comments data line lines name names word words "
    "type types class classes function functions method methods variable variables default "
    "defaults inline global magic hard-coded hardcoded your our my their his her to in on at by "
    "for from with and or if so then than when while as of up out off over into about also too "
    "very not no need want let me you we i he she they us sure yet change changes changing "
    "modify remove delete break mix mention commit push rebase rename move rely assume guess "
    "skip ask show tell say give take get set keep leave read go come see look work works "
    "working instead rather there here how what why which who where is are was were am been "
    "being can could will would may might must shall should has had does did doing done"
)


_DEMANDING = frozenset({"rule", "rejected", "command"})
"""Kinds of statements that demand something."""
_GIVEN_UP = later(
    r"\b(?:reject|tried|try|too|not|did ?n[o']t|fail|dropped|abandon|ruled out|against|slow|broke)",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def directive_in(text: str, kind: str = "") -> Directive:
    """Return what a sentence demands; nothing if it is a question, or about this moment only.

    `kind` is that of a statement that was kept on purpose: then its form need not prove it.
    """
    line = " ".join(text.replace("\u2019", "'").split())
    is_asked = line.endswith("?") and not line.lower().startswith(("please", "can we not"))
    kind = kind if kind in _DEMANDING else ""
    is_passing = not kind and _PASSING.search(_without_code(line))
    if not line or len(line) > LONGEST or is_asked or is_passing:
        return Directive()
    is_general = bool(kind or _LASTING.search(_without_code(line)))
    if not (is_general or _CONTRAST.search(line) or _AGAIN.search(line)):
        return Directive()
    found = _roles(line, kind)
    parts = {
        role: tuple(dict.fromkeys(name for each, name in found if each == role))[:_MOST_NAMES]
        for role in (WRONG, RIGHT, ABOUT, ALLOWED)
    }
    if parts[WRONG] or not is_general:  # a place is then only where that is wrong
        parts[ABOUT] = ()
    return Directive(**parts)


_CONTRAST = later(
    r"\b(?:instead of|rather than|not|no longer|us(?:es?|ing)|run|switched to|from now on)\b"
    r"|\bno(?= `)|\bforbidden\b|\bonly\b",
    re.IGNORECASE,
)


def _without_code(line: str) -> str:
    return re.sub(r"`[^`]*`", "CODE", line)


@dataclass(frozen=True, slots=True)
class _Cue:
    role: str
    start: int
    end: int
    goes_on: bool = False
    """Whether "or" is before it: what was not to be done before is not to be done either."""


def _roles(line: str, kind: str) -> list[tuple[str, Name]]:
    """Return the names of a sentence, each with what the words before it say of it."""
    cues = list(_cues(line))
    found: list[tuple[str, Name, int]] = []
    for start, end, given in _names(line):
        cue = _cue_before(cues, start, [at for role, _, at in found if role])
        role, name = _role(line, cue, given, (start, end), kind)
        is_attached = line[start] == "@" and name.kind == PATH and role != WRONG
        found.append((NONE if is_attached else role, name, start))
    found = _with_pronouns(line, cues, _with_banned(line, _with_allowed(line, found)))
    return [(role, name) for role, name, _ in found if role]


def _cues(line: str) -> Iterator[_Cue]:
    plain = re.sub(r"`[^`]*`", lambda code: "`" + "_" * (len(code[0]) - 2) + "`", line)
    prefers = re.search(r"\b(?:prefer|favou?r|use|choose)\b", plain, re.IGNORECASE)
    for each in _CUES.finditer(plain):
        role = {"wrong": WRONG, "without": RIGHT, "except": "except", "about": ABOUT}.get(
            each.lastgroup or "", each.lastgroup or ""
        )
        if role == "over":
            role = WRONG if prefers and prefers.start() < each.start() else NONE
        if role in {"idle", "described"}:
            role = "except"
        if role:
            goes_on = plain[: each.start()].endswith((" or ", " nor "))
            yield _Cue(role, each.start(), each.end(), goes_on)


def _cue_before(cues: list[_Cue], start: int, named: list[int]) -> _Cue:
    """Return the cue that decides about a name.

    A verb such as "use" decides only where a clause begins, or after a name: in "never use npm" it
    does not.
    """
    now = _Cue(RIGHT, 0, 0)
    is_open = True
    for cue in cues:
        if cue.start >= start:
            break
        if cue.role in {"end", "stop"}:
            is_open = True
            if cue.role == "stop" or now.role in {ABOUT, "except"}:
                now = _Cue(RIGHT, cue.end, cue.end)
        elif cue.role == "use":
            has_named = any(now.end <= at < cue.start for at in named)
            if (is_open or has_named or now.role == RIGHT) and not cue.goes_on:
                now = _Cue(RIGHT, cue.start, cue.end)
            is_open = False
        else:
            now, is_open = cue, False
    return now


def _role(line: str, cue: _Cue, name: Name, span: tuple[int, int], kind: str) -> tuple[str, Name]:
    before = line[cue.end : span[0]]
    role = cue.role if cue.role in {WRONG, RIGHT, ABOUT} else NONE
    is_git = name.kind == COMMAND and name.words[0] in {"git", "gh"} and not name.is_code
    if re.match(r"[`\s]*only\b", line[span[1] :]):
        role = RIGHT
    is_bare = cue.start == cue.end  # nothing is said of it
    if role == RIGHT and is_bare and name.kind != PATH and not is_git:
        given_up = WRONG if _GIVEN_UP.search(line) else NONE
        role = {"rejected": given_up, "command": RIGHT, "rule": RIGHT}.get(kind, NONE)
    if name.kind == WORD and not name.is_code:
        is_meant = role in {WRONG, RIGHT} and _is_adjacent(before, line, cue, span[1])
        return role if is_meant else NONE, name
    if is_git:
        return _git_role(role, line, name, span), name
    if name.kind == PATH:
        return _path_role(role, before, (line[: span[0]], line[span[1] :]), name)
    return role, name


_FILLER = later(
    r"\W*(?:(?:use|using|uses|used|import|importing|add|adding|install|installing|introduce|"
    r"rely on|depend on|reach for|call|run|running|with|to|ever)\W+)*$",
    re.IGNORECASE,
)
_WHOLE = later(
    r"\W*$|\s*[.,;:!?)]|\s+(?:for|in|when|because|as|from|on|to|at|anywhere|here|again|any ?more|"
    r"and|or|since|if|ever|directly|with|unless|except)\b"
)
"""What follows a name that is not a part of a longer one, as in "human readers"."""


_CONTRASTS = frozenset({"instead of", "rather than", "in place of", "as opposed to", "over"})
_TAKEN_IN = later(
    r"\b(?:us(?:e[sd]?|ing)|import|install|add|introduce|rely|depend|reach|call|run)", re.IGNORECASE
)
_USED = later(r"\b(?:use[sd]?|using|prefer|with|run|via|go with)\b", re.IGNORECASE)


def _is_adjacent(before: str, line: str, cue: _Cue, end: int) -> bool:
    """Whether a plain word is what a cue is about: to be used, or not to be.

    "Never use moment", "axios instead of fetch", "use dayjs, not moment"; not "never ignore".
    """
    verb = line[cue.start : cue.end].casefold()
    if not (_FILLER.match(before) and _WHOLE.match(line, end)):
        return False
    if cue.role == RIGHT:
        return _USED.fullmatch(verb) is not None or verb == "switch to"
    if verb in _CONTRASTS or (verb == "not" and _USED.search(line[: cue.start])):
        return True
    return _TAKEN_IN.search(before) is not None


_NOUN = later(r"s?\s+(?:messages?|titles?|subjects?|history)\b", re.IGNORECASE)
_OF_COMMITS = later(
    r"\b(?:in|for|conventional|of|your|every|each|all)\s+(?:the\s+)?$", re.IGNORECASE
)
_ONLY = later(r"(?:\s+\w+)?\s+only\b", re.IGNORECASE)


def _git_role(role: str, line: str, name: Name, span: tuple[int, int]) -> str:
    """Return what is said of committing or pushing; to be told to do it is not a rule about it."""
    rest, before = line[span[1] :], line[: span[0]]
    is_noun = name.words[0] == "gh" or _NOUN.match(rest) or _OF_COMMITS.search(before)
    if role == RIGHT or (role == WRONG and is_noun):
        return ABOUT if is_noun or _ONLY.match(rest) else NONE
    if role == WRONG and re.match(r"\W+[`.]?[\w*/-]*[.*/]", rest):
        return NONE  # "never commit .env" is about the file
    return role


_CITED = later(
    r"\b(?:according to|per|see|by|as (?:in|described in)|following|described in)\s+[@`]?$",
    re.IGNORECASE,
)
_PARTS = later(r"\W*(?:entry|entries|sections?|items?|headings?|format)\b", re.IGNORECASE)
"""Parts of a file: to change them is not only to use the file."""


def _path_role(role: str, before: str, around: tuple[str, str], name: Name) -> tuple[str, Name]:
    head, tail = around
    if role == RIGHT:
        return (RIGHT if _PLACED.search(head) and not _PARTS.match(tail) else ABOUT), name
    if role != WRONG:
        return role, name
    verb = next((verb for verb, pattern in _VERBS if pattern.search(before)), "")
    if verb == "use" or _CITED.search(head):
        return NONE, name
    if _SCOPED.search(head) and _GIVEN.search(before) and not _ANYTHING.search(before):
        return NONE, name  # "never use lodash in src/core": wrong is something else there
    return WRONG, Name(PATH, name.words, name.flags, verb, name.is_code)


def _with_banned(line: str, found: list[tuple[str, Name, int]]) -> list[tuple[str, Name, int]]:
    """Return names as wrong of which the sentence says that they are forbidden."""
    for banned in _BANNED.finditer(line):
        start = max(line.rfind(mark, 0, banned.start()) for mark in (";", ". ", ":"))
        found = [
            (WRONG if start < at < banned.start() and name.kind != WORD else role, name, at)
            for role, name, at in found
        ]
    return found


_AGAIN = later(r"\b(?:again|now|after all|any ?more|from now on|no longer)\b", re.IGNORECASE)
_MAY = later(
    r"(?<!\bi )(?<!\bit )(?<!they )\b(?:may|can|(?:allowed|ok|okay|fine|free|good|safe) to) "
    r"(?:now |again )?(?:use|run|edit|touch|change|modify|install|import|add|call) (?:the )?$"
    r"|\b(?:ok|okay|fine|good) with (?:the )?$",
    re.IGNORECASE,
)
_IS_FINE = later(
    r"[\w ]{0,20}? (?:is|are) (?:now |again )?(?:fine|ok|okay|good|allowed|permitted|"
    r"no longer (?:banned|forbidden|prohibited|disallowed|off[- ]limits))\b"
    r"|[\w ]{0,20}? (?:may|can) (?:now |again )?be (?:used|run|edited|changed|touched)\b",
    re.IGNORECASE,
)
_LIMITED = later(
    r"\b(?:unless|except|if|when|until|while|only|but|not|never)\b|n't\b", re.IGNORECASE
)


def _with_allowed(line: str, found: list[tuple[str, Name, int]]) -> list[tuple[str, Name, int]]:
    """Return names as allowed that a sentence without conditions permits again."""
    if not _AGAIN.search(line) or _LIMITED.search(line):
        return found
    ends = {start: end for start, end, _ in _names(line)}
    return [
        (ALLOWED if _MAY.search(line[:at]) or _IS_FINE.match(line, ends[at]) else role, name, at)
        for role, name, at in found
    ]


def _with_pronouns(
    line: str, cues: list[_Cue], found: list[tuple[str, Name, int]]
) -> list[tuple[str, Name, int]]:
    """Return names as wrong of which the sentence goes on: "is generated, never edit it"."""
    for cue in cues:
        if cue.role == WRONG and _IT.match(line, cue.end):
            found = [
                (WRONG if at < cue.start and name.kind == PATH else role, name, at)
                for role, name, at in found
            ]
    return found


# ---------------------------------------------------------------- names
def _names(line: str) -> Iterator[tuple[int, int, Name]]:
    for each in _NAMES.finditer(line):
        name = _name_of(each)
        if name is not None:
            yield each.start(), each.end(), name


def _name_of(found: re.Match[str]) -> Name | None:
    kind, text = found.lastgroup or "", found[0]
    if found["code"] is not None:
        return _of_code(found["code"].strip())
    if found["path"] is not None or kind == "file":
        return Name(PATH, (f"{text}*",)) if kind == "file" else _of_path(found["path"])
    if found["git"] is not None:
        is_forced = found["git"].casefold().startswith("force")
        verb = "push" if is_forced else found["git"].casefold()
        return Name(COMMAND, ("git", verb), frozenset({"--force"} if is_forced else ()))
    if kind == "request":
        return Name(COMMAND, ("gh", "pr", "create"))
    if found["program"] is not None:
        return _of_program(found["program"], found.string[found.end() :])
    return _of_word(text)


def _of_word(text: str) -> Name | None:
    is_plain = text.casefold() in _NOT_PACKAGES or len(text) < 2  # noqa: PLR2004 - letters
    return None if is_plain else Name(WORD, (text,))


def _of_program(program: str, rest: str) -> Name | None:
    """Return a program that is named without marks, if no English word is spelled so."""
    if program not in PROGRAMS:
        return _of_word(program)
    words = rest.split()[: _MOST_WORDS - 1] if rest.startswith(" ") else []
    subs = takewhile(_SUBCOMMANDS.__contains__, (word.rstrip(".,;:!") for word in words))
    return Name(COMMAND, (program, *subs))


def _of_code(code: str) -> Name | None:
    """Return what is marked as code: a command, a path, or a word."""
    words = words_in(code)
    if not words:
        return None
    is_command = canonical(words[0]) in PROGRAMS | EXECUTED
    if is_command and (len(words) > 1 or "." not in words[0]):
        parts = [each for each in words if not each.startswith("-") and each[:1] not in "<$[{."]
        named = tuple(parts[:_MOST_WORDS])
        return Name(COMMAND, named, flags_in(words), is_code=True) if named else None
    if len(words) > 1:
        return _of_own_command(words)
    if is_path(code) or re.search(rf"[\w*]\.{_EXTENSION}$|^\.{_EXTENSION}$", code):
        return _of_path(code, is_code=True)
    return Name(WORD, (code,), is_code=True)


def _of_own_command(words: list[str]) -> Name | None:
    """Return a command of a program that nobody else has, if it looks like one."""
    named = list(takewhile(lambda each: re.fullmatch(r"[a-z][\w:-]*", each), words))
    is_command = any(each.startswith(("--", "<", "$")) for each in words)
    if not is_command or not 1 < len(named) <= _MOST_WORDS:
        return None
    return Name(COMMAND, tuple(named), flags_in(words), is_code=True)


_ALTERNATIVES = later(
    r"\b(?:and/or|either/or|yes/no|true/false|on/off|input/output|i/o|client/server|w/o?|n/a|"
    r"he/she|his/her|pros/cons|read/write|and|or)$",
    re.IGNORECASE,
)


_FOLDERS = word_set(
    "src source lib libs app apps test tests spec specs doc docs script scripts config configs db "
    "bin build dist public static assets server client web api core internal cmd pkg vendor "
    "packages node_modules migrations e2e examples tools infra deploy terraform charts include "
    "components pages hooks utils backend frontend service services data etc generated legacy"
)


def _of_path(text: str, *, is_code: bool = False) -> Name | None:
    """Return a path; None for two words with a slash between them, and for a library's name."""
    bare = text.strip().removeprefix("@").removeprefix("./")
    parts = tuple(part for part in bare.split("/") if part and part != "..")
    is_pair = len(parts) == 2 and not is_code and re.fullmatch(r"[A-Za-z]+/[A-Za-z]+", text)  # noqa: PLR2004
    if is_pair and parts[0].casefold() not in _FOLDERS:  # "version/platform"
        return None
    if not parts or _ALTERNATIVES.search(bare) or all(part in {"*", "**"} for part in parts):
        return None
    if len(parts) == 1 and parts[0].startswith(".") and not bare.startswith(".env"):
        is_ending = re.fullmatch(rf"\.{_EXTENSION}", parts[0]) is not None
        parts = (f"*{parts[0]}",) if is_ending else parts
    if len(parts) == 1 and re.fullmatch(r"[A-Za-z]+\.js", parts[0]) and not is_code:
        return Name(WORD, parts)
    return Name(PATH, parts, is_code=is_code)
