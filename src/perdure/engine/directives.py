"""Directives: the files, commands and packages that a sentence says to use, or not to use.

A demand without such a name ("keep functions small") is not a directive. `matches` tells which
directive is about which tool call.
"""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import takewhile

from perdure.dataclass import dataclass, replace
from perdure.engine.tool_calls import (
    EXECUTED,
    PROGRAMS,
    AgentAction,
    ShellCommand,
    canonical,
    flags_in,
    is_path,
    path_segments,
    word_set,
    words_in,
)
from perdure.patterns import later

LONGEST = 400
"""Characters. A longer sentence is a description."""
_MOST_NAMES = 12
_MOST_WORDS = 3
"""Words that identify a command: program, subcommand, its subcommand."""

PATH, COMMAND, WORD = "path", "command", "word"


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a sentence: a path or glob, a command, or a word of code."""

    kind: str
    words: tuple[str, ...]
    """The segments of a path; program and subcommands; one word."""
    flags: frozenset[str] = frozenset()
    verb: str = ""
    """What not to do with a path, if that is not to change it: commit, read."""
    is_code: bool = False
    """Whether the sentence marks it as code."""

    @property
    def key(self) -> str:
        """The word by which an index finds it; of a glob, `*` and its end."""
        if self.kind == PATH:
            last = self.words[-1].casefold()
            return f"*{last.rpartition('*')[2]}" if "*" in last else last
        return canonical(self.words[0]) if self.kind == COMMAND else self.words[0].casefold()


@dataclass(frozen=True, slots=True)
class Directive:
    wrong: tuple[Name, ...] = ()
    """The names not to use."""
    right: tuple[Name, ...] = ()
    """The names to use."""
    about: tuple[Name, ...] = ()
    """The names that a stored statement is about, without forbidding them."""

    def __bool__(self) -> bool:
        return bool(self.wrong or self.about)

    @property
    def keys(self) -> tuple[str, ...]:
        """The words of which a tool call has at least one, if the sentence is about it."""
        keys = {name.key for name in (*self.wrong, *self.right, *self.about)}
        return tuple(sorted(keys | {package_of(name) for name in self.wrong} - {""}))


def package_of(name: Name) -> str:
    """Return the import name of a word: `moment` for `moment.js`; empty if it is not a word."""
    word = name.words[0].casefold() if name.kind == WORD else ""
    return re.sub(r"(?:\.js|js\(\)|\(\))$", "", word)


_EXTENSION = (
    r"(?:md|mdx|mdc|txt|rst|jsx?|tsx?|mjs|cjs|py|pyi|go|rs|rb|java|kt|swift|c|h|cc|cpp|hpp|cs|php|"
    r"vue|svelte|astro|css|scss|less|html?|json[c5l]?|ya?ml|toml|ini|cfg|conf|lock|sql|sh|bash|"
    r"env|xml|proto|graphql|tf|ipynb|csv|snap|j2|tmpl)"
)
_NAMES = later(
    rf"`(?P<code>[^`\n]{{1,120}})`"
    rf"|(?i:(?:\b(?:not|don'?t|never|avoid|longer|stop) (?:us(?:e|ing)|import(?:ing)?|"
    rf"install(?:ing)?|add(?:ing)?)|\binstead of|\brather than|, not) )"
    rf"(?P<package>@?[a-z][\w-]*(?:\.js)?)(?=[.,;:!?)](?!\w)|$|\s(?:for|in|and|or|here|anywhere|directly)\b)"
    rf"|(?<![\w`/:.<])@?(?P<path>(?:\.{{0,2}}/)?(?:[\w.@*-]+/)+(?:[\w.@*-]*[\w*])?"
    rf"|(?:[\w-]+\.)*[\w*-]+\.{_EXTENSION}\b|\*\.\w+|\.(?:env|github|vscode|cursor|claude)\b"
    rf"(?:\.\w+)?|\.{_EXTENSION}(?= files?\b))"
    rf"|\b(?P<git>(?i:force[- ]push|commit|push|rebase))(?:t?ing|es|s|ed)?\b"
    rf"|(?<![\w./'-])(?P<program>[a-z][\w-]*)(?![\w/]|\.\w)"
)
_SUBCOMMANDS = word_set(
    "install add remove run test ci i publish start build init exec dlx update upgrade audit "
    "link push commit rebase merge pull fetch checkout switch reset stash tag cherry-pick clone "
    "clean restore rm mv revert amend compose up down lint format check fmt deploy migrate sync "
    "lock clippy doc vet mod generate apply plan destroy delete create pr release"
)
_CUES = later(
    r"(?P<none>\b(?:i|it|they|he|she|which|that|there|who) (?:also |still |really )?"
    r"(?:do|does|did|is|are|was|were|can|could|would|has|have)(?:n'?t| not| never)\b"
    r"|\b(?:don'?t|do not|doesn'?t) (?:need|have|see|think|know|believe|worry|mind|care|forget)\b"
    r"|\b(?:unless|except(?: for)?|other than|apart from|not only)\b)"
    r"|(?P<wrong>\bnever\b|\b(?:do|does|must|should|may|can|need|could|would)(?:n'?t| not)\b"
    r"|\bcannot\b|\bdont\b|\bavoid(?:ing)?\b|\bstop\b|\bno longer\b|\binstead of\b|\brather than\b"
    r"|\bnot\b(?! sure| yet)|\bforbid\b|\bno(?= [`*.\w])|\bban(?:ned)?\b|\bover\b)"
    r"|(?P<about>\b(?:before|after|when|whenever|while|once|until|without|if)\b)"
    r"|(?P<use>\b(?:use[sd]?|using|runs?|running|prefer|call|execute|switch(?:ed)? to|go with"
    r"|let'?s)\b)"
    r"|(?P<stop>[;\u2014]|(?<!use)(?<!run)(?<!not)(?<!never):|\s[-\u2013]\s|\bbut\b|[.!?](?=\s|$))"
    r"|(?P<comma>[,(])",
    re.IGNORECASE,
)
_BANNED = later(
    r"\bforbidden\b|\b(?:must|should) not exist\b"
    r"|\b(?:is|are|be)\s+(?:strictly |auto-?|now )?(?:banned|prohibited|deprecated|read[- ]only|"
    r"off[- ]limits|not (?:allowed|permitted|to be used)|generated|rejected)\b"
    r"|\b(?:must|should|may|can|shall)(?:n'?t| not| never) (?:ever )?be (?:\w+ ?){1,2}"
    r"|\b(?:never|do not|don'?t|must not) \w+ (?:it|them|this|these|those|anything there)\b",
    re.IGNORECASE,
)
"""Phrases that forbid the names before them."""
_VERBS = (
    (
        "commit",
        later(r"\b(?:commit|push|stage|check in|git add)\w*\W+(?:\S+\W+){0,3}$", re.IGNORECASE),
    ),
    (
        "read",
        later(r"\b(?:read|open|print|cat|show|log|leak|echo)\w*\W+(?:\S+\W+){0,2}$", re.IGNORECASE),
    ),
)
_PASSING = later(
    r"\b(?:yet|for now|this time|right now|today|just this once|temporarily|at the moment|for the "
    r"moment|in this (?:session|chat|task|conversation)|currently|first pass|just now|looks like|"
    r"i'll|i will|i'm|i am|i've|let me|wait|hmm|error|errors?:|failed|failing|did(?:n'?t| not)|"
    r"was(?:n'?t| not)|were(?:n'?t| not)|seems?)\b",
    re.IGNORECASE,
)
_DEMANDING = frozenset({"rule", "rejected", "command"})
_NOUN = later(r"s?\s+(?:messages?|titles?|subjects?|history)\b", re.IGNORECASE)


@lru_cache(maxsize=4096)
def directive_in(text: str, kind: str = "") -> Directive:
    """Return the directive of a sentence; empty for a question, and for what holds only now.

    `kind` is that of a stored statement, in which all names count. In other sentences, only those
    count that are forbidden.
    """
    line = " ".join(text.replace("\u2019", "'").split())
    is_stored = kind in _DEMANDING
    is_passing = not is_stored and _PASSING.search(re.sub(r"`[^`]*`", "CODE", line))
    if not line or len(line) > LONGEST or line.endswith("?") or is_passing:
        return Directive()
    found = list(_roles(line, is_tried=kind == "rejected"))
    wrong, right = (
        tuple(dict.fromkeys(name for each, name in found if each == role))[:_MOST_NAMES]
        for role in ("wrong", "right")
    )
    if wrong or not is_stored:  # other names only say where those are forbidden
        return Directive(wrong, right)
    about = tuple(dict.fromkeys(name for role, name in found if role and name.kind != WORD))
    return Directive((), right, about[:_MOST_NAMES])


def _roles(line: str, *, is_tried: bool) -> Iterator[tuple[str, Name]]:
    """Yield the names of a sentence, each with the role that the words before it give it.

    A verb such as "use" ends a prohibition only if a name followed that one.
    """
    plain = re.sub(r"`[^`]*`", lambda code: "`" + "_" * (len(code[0]) - 2) + "`", line)
    banned = max((each.start() for each in _BANNED.finditer(plain)), default=-1)
    usual = "wrong" if is_tried else "right"
    role, since, is_named = usual, 0, False
    steps: list[tuple[int, re.Match[str] | Name]] = [*_names(line)]
    steps += ((cue.start(), cue) for cue in _CUES.finditer(plain))
    for at, each in sorted(steps, key=lambda step: (step[0], isinstance(step[1], Name))):
        if isinstance(each, Name):
            is_named = True
            if at < banned and each.kind != WORD:
                yield "wrong", each
            elif found := _of_name(role, each, line[at:]):
                yield found, _with_verb(each, line[since:at]) if found == "wrong" else each
            continue
        cue = each.lastgroup
        if cue in {"wrong", "about", "none"}:
            role, since, is_named = "" if cue == "none" else str(cue), each.start(), False
        elif cue == "use" and (role != "wrong" or is_named) and plain[at - 3 : at] != "or ":
            role, since = "right", each.end()
        elif cue == "stop" or (cue == "comma" and role in {"about", ""}):
            role, since = usual, each.end()


def _of_name(role: str, name: Name, line: str) -> str:
    """Return the role of a name; git verbs without code marks are only forbidden, or nouns."""
    if re.match(r"\W?[\w-]+\W? only\b", line):
        return "right"
    if name.kind != COMMAND or name.words[0] != "git" or name.is_code:
        return role
    rest = re.sub(
        r"^[\w -]*?(?:commit|push|rebase)\w*?(?=s?\s|\W|$)", "", line, flags=re.IGNORECASE
    )
    if _NOUN.match(rest) or role == "about":
        return "about"
    is_of_file = re.match(r"\W+[`.]?[\w*/-]*[.*/]\w", rest)  # "never commit .env"
    return "wrong" if role == "wrong" and not is_of_file else ""


def _with_verb(name: Name, before: str) -> Name:
    if name.kind != PATH:
        return name
    return replace(name, verb=next((verb for verb, words in _VERBS if words.search(before)), ""))


# ---------------------------------------------------------------- names
def _names(line: str) -> Iterator[tuple[int, Name]]:
    for each in _NAMES.finditer(line):
        kind = each.lastgroup or ""
        name = _name_of(kind, each[kind], line[each.end() :])
        if name is not None and each[0][0] != "@":  # an attached file
            yield each.start(kind) - (kind == "code"), name


def _name_of(kind: str, text: str, rest: str) -> Name | None:
    if kind == "code":
        return _of_code(text.strip())
    if kind == "path":
        return _of_path(text)
    if kind == "git":
        is_forced = text.casefold().startswith("force")
        verb = "push" if is_forced else text.casefold()
        return Name(COMMAND, ("git", verb), frozenset({"--force"} if is_forced else ()))
    if text in PROGRAMS:
        words = rest.split()[: _MOST_WORDS - 1] if rest.startswith(" ") else []
        subs = takewhile(_SUBCOMMANDS.__contains__, (word.rstrip(".,;:!") for word in words))
        return Name(COMMAND, (text, *subs))
    return Name(WORD, (text,)) if kind == "package" else None


def _of_code(code: str) -> Name | None:
    """Return the name of a code span: a command, a path, or a word."""
    words = words_in(code)
    if not words:
        return None
    is_command = canonical(words[0]) in PROGRAMS | EXECUTED
    if is_command and (len(words) > 1 or "." not in words[0]):
        plain = [each for each in words if not each.startswith("-") and each[:1] not in "<$[{."]
        named = tuple(plain[:_MOST_WORDS])
        return Name(COMMAND, named, flags_in(words), is_code=True) if named else None
    if len(words) > 1:
        return None
    if is_path(code) or re.search(rf"[\w*]\.{_EXTENSION}$|^\.{_EXTENSION}$", code):
        return _of_path(code, is_code=True)
    return Name(WORD, (code,), is_code=True)


_FOLDERS = word_set(
    "src source lib libs app apps test tests spec specs doc docs script scripts config configs db "
    "bin build dist public static assets server client web api core internal cmd pkg vendor "
    "packages node_modules migrations e2e examples tools infra deploy terraform charts include "
    "components pages hooks utils backend frontend service services data etc generated legacy"
)


def _of_path(text: str, *, is_code: bool = False) -> Name | None:
    """Return a path; None for two words with a slash between them."""
    bare = text.strip().removeprefix("@").removeprefix("./")
    segments = tuple(part for part in bare.split("/") if part and part != "..")
    is_pair = len(segments) == 2 and not is_code and re.fullmatch(r"[A-Za-z]+/[A-Za-z]+", text)  # noqa: PLR2004
    if is_pair and segments[0].casefold() not in _FOLDERS:  # "version/platform"
        return None
    if len(bare) < 3 or all(part in {"*", "**"} for part in segments):  # noqa: PLR2004 - "w/"
        return None
    if (
        len(segments) == 1
        and re.fullmatch(rf"\.{_EXTENSION}", segments[0])
        and segments[0] != ".env"
    ):
        segments = (f"*{segments[0]}",)
    return Name(PATH, segments, is_code=is_code)


_FIRST_WORDS = 4
"""Words among which the subcommands of a command are: values of flags may precede them."""
_SHAPED = later(r"[a-z][A-Z]|\w[.:(_]\w?|\(\)|^@")
"""The form of a word that can only be code: `console.log`, `useEffect`."""


@dataclass(frozen=True, slots=True)
class DirectiveMatch:
    name: str
    """The name that the tool call uses."""
    breaks: bool
    """Whether the sentence forbids it; False if it is only about it."""


def matches(directive: Directive, action: AgentAction) -> DirectiveMatch | None:
    """Return why a directive is about a tool call; None if it is not, or the call follows it."""
    for name in directive.wrong:
        if _uses(name, action, directive.right):
            return DirectiveMatch(_shown(name), breaks=True)
    for name in directive.about:
        is_followed = name.kind == COMMAND and name.words[0] != "git"  # `make test` follows it
        if not is_followed and _uses(name, action):
            return DirectiveMatch(_shown(name), breaks=False)
    return None


def follows(directive: Directive, action: AgentAction) -> bool:
    return any(_uses(name, action) for name in directive.right)


def _shown(name: Name) -> str:
    return "/".join(name.words) if name.kind == PATH else " ".join(name.words)


# ---------------------------------------------------------------- one name
def _uses(name: Name, action: AgentAction, right: tuple[Name, ...] = ()) -> bool:
    if name.kind == PATH:
        return _changes(name, action)
    if name.kind == COMMAND:
        return any(
            _runs(name, each) and name.flags <= each.flags and not _is_covered(name, each, right)
            for each in action.commands
        )
    return _has_word(name, action)


def _is_covered(name: Name, command: ShellCommand, right: tuple[Name, ...]) -> bool:
    """Whether a sentence allows a command: `python3`, or `uv run pytest`."""
    return any(
        _runs(each, command, exactly=True) and each.flags <= command.flags
        if canonical(each.words[0]) == canonical(name.words[0])
        else bool(command.under) and canonical(each.words[0]) == command.under
        for each in right
        if each.kind == COMMAND and each != name
    )


def _runs(name: Name, command: ShellCommand, *, exactly: bool = False) -> bool:
    program, *subs = name.words
    if exactly or canonical(program) != program.casefold():  # npx in a sentence is not npm
        is_same = program.casefold() == command.program.casefold()
    else:
        is_same = canonical(program) == canonical(command.program)
    if not is_same:
        return False
    rest = iter(command.words[: len(subs) if program == "git" else _FIRST_WORDS])
    return all(any(word == sub for word in rest) for sub in subs)


def _changes(name: Name, action: AgentAction) -> bool:
    if name.verb == "commit":
        git = [each for each in action.commands if each.program == "git" and not each.is_reading]
        return any(_is_in(name, path_segments(path)) for each in git for path in each.words[1:])
    if name.verb == "read":
        words = (word for each in action.commands for word in (each.path, *each.words))
        return any(_is_in(name, segments) for word in words if (segments := path_segments(word)))
    return any(_is_in(name, segments) for segments in action.written)


def _is_in(name: Name, segments: tuple[str, ...]) -> bool:
    """Whether a path matches a name, or is in it: by whole segments, ignoring case."""
    wanted = tuple(part.casefold() for part in name.words)
    given = tuple(part.casefold() for part in segments)
    if len(wanted) == 1 and "*" in wanted[0]:
        return any(fnmatchcase(part, wanted[0]) for part in given[-1:])
    wanted = tuple(part for part in wanted if part != "**")
    while wanted and wanted[-1] == "*":
        wanted = wanted[:-1]
    size = len(wanted)
    return any(
        all(fnmatchcase(part, want) for part, want in zip(given[at:], wanted, strict=False))
        for at in range(len(given) - size + 1)
    ) and bool(size)


def _has_word(name: Name, action: AgentAction) -> bool:
    """Whether a call installs or imports a package, runs a program, or adds a word of code."""
    word, package = name.words[0].casefold(), package_of(name)
    if name.words[0] == action.tool:
        return True
    for each in action.commands:
        installed = {one.casefold() for one in each.packages}
        if package in installed or each.program.casefold() == word:
            return True
    quoted = re.escape(package)
    if re.search(rf"(?<![\w.@-]){quoted}(?![\w-])", action.imports, re.IGNORECASE):
        return True
    code = name.words[0].removesuffix(")")
    is_code = name.is_code and _SHAPED.search(name.words[0]) and len(package) > 3  # noqa: PLR2004
    return bool(is_code) and action.added.count(code) > action.removed.count(code)
