"""The folders and file names of layout `notes`, as a person would choose them.

A place is the key of a node's logical folder, or of any other logical text. The folders of a path
decide the owner of a note; the id in its frontmatter names the node, wherever the note was moved.
"""

import re
import unicodedata
from datetime import date
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from perdure.context.node_files import ARCHIVED, FILES, LEARNED, OWNER
from perdure.dataclass import dataclass
from perdure.errors import InvalidValueError
from perdure.model.uri import FIRST_NODE, KINDS, PROFILE, SLUG, Uri, name_of, segment_of, slug_of
from perdure.patterns import later
from perdure.storage.locator import is_key_segment

MARKDOWN = ".md"
SYSTEM = "System"
SESSIONS = "Sessions"
RESOURCES = "Resources"
_ACCOUNTS, _USERS, _AGENTS, _SKILLS, _PROFILE = (
    "Other accounts",
    "Users",
    "Agents",
    "Skills",
    "Profile",
)
_LOOSE = "note"
"""The category of a file outside of the folders of categories."""
_CATEGORIES = {
    "preference": "Preferences",
    "pattern": "Rules",
    "rule": "Rules",
    "entity": "Facts",
    "fact": "Facts",
    "case": "Cases",
    "skill": "Skills",
    "event": "Events",
    "note": "Notes",
    "decision": "Decisions",
    "task": "Tasks",
}
"""The folders of the categories that Perdure knows; others have the name of the category."""
_CATEGORY_OF = {folder: category for category, folder in reversed(_CATEGORIES.items())}
_OF_KINDS = {"decision": "Decisions", "task": "Tasks", "rejected": "Rejected"}
"""The folders of kinds that do not share the one of their category."""
_TAKEN = frozenset((SYSTEM, SESSIONS, RESOURCES, _ACCOUNTS, _USERS, _AGENTS, _PROFILE))
_NOT_OF_CATEGORIES = frozenset(map(str.casefold, ("", SESSIONS, RESOURCES, _SKILLS)))
_OWNERS = {_USERS.casefold(): "users", _AGENTS.casefold(): "agents"}
_OF_SESSIONS = frozenset({OWNER, LEARNED})
_WORDS = later(r"[a-z0-9_]+(?:-[a-z0-9_]+)*")
"""A slug that can be derived from its words."""
_IN_BRACKETS = later(r".* \(([a-z0-9_-]{1,100})\)")
_HASHED = later(r"(?:.*-)?[0-9a-f]{8}")
"""A slug with the hash of a name in other letters; people know it by its title."""
_DEVICE = later(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.IGNORECASE)
_UNUSABLE = later(r'[\x00-\x1f\x7f-\x9f/\\:*?"<>|#^\[\]\u2028\u2029]+')
_DAY = later(r"\d{4}-\d\d-\d\d", re.ASCII)
_MAX_STEM, _MAX_STEM_BYTES = 80, 180
_FEW_WORDS = 3
"""A slug of fewer words is a name that a person chose."""
_SHORT_END = 30
"""The rest of a title after the words of its slug is omitted if it is longer."""


def is_markdown(name: str) -> bool:
    return name[-len(MARKDOWN) :].lower() == MARKDOWN


def is_state(path: str) -> bool:
    """Whether a file is a project's state, which other programs read at this path."""
    match path.split("/"):
        case ["projects", _, "_harness", _]:
            return True
    return False


class LogicalText(NamedTuple):
    """The place that has a logical text, and its name there."""

    place: str
    name: str
    """The name of a file of a node, or of one beside it; "" if the place itself is the text."""


@lru_cache(maxsize=4096)
def logical_text(key: str) -> LogicalText:
    """Return the text that has a key; one note holds all texts of a place."""
    above, _, name = key.rpartition("/")
    if name in FILES:
        return LogicalText(above, name) if _is_node(above) else LogicalText(key, "")
    if above.endswith(f"/{ARCHIVED}"):
        node = f"{above.removesuffix(ARCHIVED)}{name}"
        return LogicalText(node, ARCHIVED) if _is_node(node) else LogicalText(key, "")
    if name in _OF_SESSIONS:
        first = f"{above}/{FIRST_NODE}"
        session = Uri.of_key(first)
        if session is not None and session.session and len(session.path) == 3:  # noqa: PLR2004 - sessions, its id, the node
            return LogicalText(first, name)
    return LogicalText(key, "")


def key_of(text: LogicalText) -> str:
    above, _, last = text.place.rpartition("/")
    if not text.name:
        return text.place
    if text.name == ARCHIVED:
        return f"{above}/{ARCHIVED}/{last}"
    return f"{above if text.name in _OF_SESSIONS else text.place}/{text.name}"


@lru_cache(maxsize=4096)
def node_at(place: str) -> Uri | None:
    """Return the node of a place; None if the place is another text."""
    found = Uri.of_key(place)
    return found if found is not None and found.is_node else None


def _is_node(place: str) -> bool:
    return node_at(place) is not None


def id_of(place: str) -> str:
    """Return the id in the frontmatter of a note; its folders imply the rest of the place."""
    node = node_at(place)
    match node.path if node else ():
        case (_, _, "memories", *names):
            return "/".join(names)
        case ("agents", _, "skills", name):
            return f"skill/{name}"
        case ():
            return place
    assert node is not None  # noqa: S101 - an empty path was the case before
    return str(node).removeprefix(f"{Uri(node.account)}/")


@dataclass(frozen=True, slots=True)
class NoteNames:
    """The names in one store, with the memories of its owner at the top."""

    account: str = "local"
    user: str = ""

    # ------------------------------------------------------------ from places to paths
    def folder(self, place: str, kind: str = "") -> tuple[str, ...]:
        """Return the folder of a note below the memory folder; some kinds have their own."""
        node = node_at(place)
        if node is None:
            return (SYSTEM,)
        above = () if node.account == self.account else (_ACCOUNTS, segment_of(node.account))
        match node.path:
            case ("users" | "agents" as owners, owner, "memories", *names):
                above = (*above, *self._owner(node.account, owners, owner))
                return above if names == [PROFILE] else (*above, _folder_of(owners, names[0], kind))
            case ("agents", agent, "skills", _):
                return (*above, _AGENTS, segment_of(agent), _SKILLS)
            case ("resources", *names):
                return (*above, RESOURCES, *map(usable, names[:-1]))
        return (*above, SESSIONS)

    def _owner(self, account: str, kind: str, owner: str) -> tuple[str, ...]:
        if kind == "users" and (account, owner) == (self.account, self.user):
            return ()
        return (_USERS if kind == "users" else _AGENTS, segment_of(owner))

    def stem(self, place: str, title: str, day: str) -> str:
        """Return the name of a new note without its ending; two places may share one."""
        node = node_at(place)
        match node.path if node else ():
            case ("users" | "agents", _, "memories", name):
                return _PROFILE if name == PROFILE else name
            case ("users" | "agents", _, _, *_):
                assert node is not None  # noqa: S101 - it has a path
                return _spoken(node.name, title) or stem(node.name)
            case ("resources", *names):
                return usable(names[-1])
            case ("sessions", session, *_):
                name = usable(title or session)
                return name if not day or _DAY.search(name) else usable(f"{day} {name}")
        *_, above, last = ("", *place.split("/"))
        words = usable(last.lstrip(".").removesuffix(".json").replace("_", " "))
        return usable(f"{words[:1].upper()}{words[1:]} ({above})" if above else words)

    # ------------------------------------------------------------ from paths to places
    def place(self, path: str, id_: str | None) -> str | None:
        """Return the place of a note by its path below the memory folder, and by its id.

        None if no node can be there. An invalid id is ignored.
        """
        *folders, file = path.split("/")
        if not is_markdown(file):
            return None
        name = file[: -len(MARKDOWN)]
        account, kind, owner = self.account, "users", self.user
        if len(folders) > 1 and folders[0].casefold() == _ACCOUNTS.casefold():
            account, folders, owner = name_of(folders[1]) or "", folders[2:], ""
        first = folders[0].casefold() if folders else ""
        if first in _OWNERS and len(folders) > 1:
            kind, owner, folders = _OWNERS[first], name_of(folders[1]) or "", folders[2:]
            first = folders[0].casefold() if folders else ""
        try:
            if first == SYSTEM.casefold():
                is_text = id_ and not _is_node(id_) and logical_text(id_) == LogicalText(id_, "")
                return id_ if is_text else None
            if named := _named(account, (kind, owner), folders, id_ or ""):
                return named
            shared = {
                SESSIONS.casefold(): ("sessions", name, FIRST_NODE),
                RESOURCES.casefold(): ("resources", *folders[1:], name),
            }
            if first in shared:
                return _key(account, *shared[first])
            return _owned(Uri(account, (kind, owner)), folders, name, id_ or "").key
        except InvalidValueError:
            return None


def _named(account: str, owner: tuple[str, str], folders: list[str], id_: str) -> str | None:
    """Return the place that an id names, whatever the folder; None if the id is invalid."""
    kind, _, name = id_.rpartition("/")
    folder = folders[0] if folders else ""
    is_own = folder.casefold() not in _NOT_OF_CATEGORIES and category_in(folder) == kind
    try:
        if id_ == PROFILE:
            return _key(account, *owner, "memories", PROFILE)
        if kind.partition("/")[0] in {"sessions", "resources"} and not is_own:
            found = Uri.parse(f"{Uri(account)}/{id_}")
            return found.key if found.is_node else None
        if not SLUG.fullmatch(kind) or not SLUG.fullmatch(name):
            return None
        if (owner[0], kind) == ("agents", "skill") and not is_own:
            return _key(account, *owner, "skills", name)
        return _key(account, *owner, "memories", kind, name)
    except InvalidValueError:
        return None


def _key(account: str, *path: str) -> str:
    return Uri(account, path).key


def _owned(owner: Uri, folders: list[str], name: str, id_: str) -> Uri:
    slug = id_.rpartition("/")[2]
    if not folders and name.casefold() == PROFILE:
        return owner.child("memories", PROFILE)
    slug = slug if SLUG.fullmatch(slug) else slug_in(name)
    if not folders:
        return owner.child("memories", _LOOSE, slug)
    if owner.path[0] == "agents" and folders[0].casefold() == _SKILLS.casefold():
        return owner.child("skills", slug)
    return owner.child("memories", category_in(folders[0]), slug)


# ---------------------------------------------------------------- names
def stem(slug: str) -> str:
    """Return the file name for a slug, as people write it; `slug_in` is the inverse."""
    words = slug.replace("-", " ")
    name = words[:1].upper() + words[1:]
    if _WORDS.fullmatch(slug) and not _DEVICE.match(name):
        return name
    return f"{' '.join(name.split())[:_MAX_STEM] or 'Memory'} ({slug})"


def slug_in(name: str) -> str:
    """Return the slug for the name of a file, even for one that a person chose."""
    if (found := _IN_BRACKETS.fullmatch(name)) and stem(found[1]) == name:
        return found[1]
    slug = name.lower().replace(" ", "-")
    return slug if SLUG.fullmatch(slug) and stem(slug) == name else slug_of(name)


def _spoken(slug: str, title: str) -> str:
    """Return the words of a title from which a slug was derived, as written; "" if it was not."""
    whole = title.strip("… ")
    if whole and _HASHED.fullmatch(slug):
        return usable(whole)
    wanted, spans = slug.split("-"), list[re.Match[str]]()
    for each in re.finditer(r"[\w']+", whole):
        if len(spans) < len(wanted) and _plain(each[0]).startswith(wanted[len(spans)]):
            spans.append(each)
    if not _FEW_WORDS <= len(wanted) == len(spans):
        return ""
    start, end = spans[0].start(), spans[-1].end()
    end = len(whole) if len(whole) - end < _SHORT_END else end
    return usable(whole[start].upper() + whole[start + 1 : end].rstrip(".,;:!?"))


def _plain(word: str) -> str:
    letters = unicodedata.normalize("NFKD", word.casefold().replace("'", ""))
    return "".join(each for each in letters if not unicodedata.combining(each))


def _folder_of(owners: str, category: str, kind: str = "") -> str:
    """Return the folder of a category; one whose name has another use gets a suffix."""
    if kind in _OF_KINDS and KINDS[kind] == category:
        return _OF_KINDS[kind]
    folder = _CATEGORIES.get(category) or stem(category)
    taken = folder in _TAKEN or (owners, folder) == ("agents", _SKILLS)
    return f"{folder} ({category})" if taken else folder


def category_in(folder: str) -> str:
    """Return the category of a new note in a folder."""
    capitalized = folder[:1].upper() + folder[1:].lower()
    if capitalized in _CATEGORY_OF:
        return _CATEGORY_OF[capitalized]
    if (found := _IN_BRACKETS.fullmatch(folder)) and folder.endswith(f" ({found[1]})"):
        return found[1]
    category = slug_in(folder)
    return f"{category}-" if category == PROFILE else category


def usable(text: str) -> str:
    """Return a text as a name, without its ending, that every system accepts."""
    name = unicodedata.normalize("NFC", text)
    name = " ".join(_UNUSABLE.sub(" ", name).split())
    if len(name) > _MAX_STEM:
        name = name[: max(name.rfind(" ", 0, _MAX_STEM), 0) or _MAX_STEM]
    if not is_key_segment(f"{name}{MARKDOWN}") or len(name.encode()) > _MAX_STEM_BYTES:
        name = "".join(each for each in name if each.isalnum() or each in " -_.,()'")
        name = name.encode()[:_MAX_STEM_BYTES].decode(errors="ignore")
    name = name.strip(" .") or "Untitled"
    name = f"{name}_" if _DEVICE.match(name) else name
    return name if is_key_segment(f"{name}{MARKDOWN}") else "Untitled"


def in_place(account: str, path: str) -> str | None:
    """Return the place of a user's own note, by its path in the vault."""
    names = path[: -len(MARKDOWN)].split("/")
    digest = sha256(path.encode()).hexdigest()
    shorter = [*(name if len(name) <= 12 else name[:12] for name in names[-3:]), digest[:16]]  # noqa: PLR2004 - at most 12 times 12 bytes
    for fitting in (names, shorter, [digest[:16]]):
        try:
            return Uri(account, ("resources", *fitting)).key
        except InvalidValueError:  # too long for a key
            continue
    return None


# ---------------------------------------------------------------- days
_DAY_IN_PATH = re.compile(
    r"(?:.*/)?(?P<y>\d{4})(?:-(?P<m>\d\d)-(?P<d>\d\d)(?!\d)[^/]*"
    r"|(?P<m2>\d\d)(?P<d2>\d\d)(?:\d{4}(?:\d\d)?)?(?!\d)[^/]*|/(?P<m3>\d\d)/(?P<d3>\d\d))"
)
"""Paths that end with a day: `2026-03-04 …`, `20260304…` with or without a time, `2026/03/04`."""
_TOKEN = re.compile(r"\[([^\]]*)\]|YYYY|MMMM|MMM|MM?|DD?|d{3,4}|[A-Za-z]+|.", re.DOTALL)
_FIELDS = {"YYYY": r"(?P<y>\d{4})", "MM": r"(?P<m>\d\d)", "M": r"(?P<m>\d\d?+)"}
_FIELDS |= {"DD": r"(?P<d>\d\d)", "D": r"(?P<d>\d\d?+)"}
_LETTERS = dict.fromkeys(("MMMM", "MMM", "dddd", "ddd"), r"[^\W\d_]++\.?")


def days_of(folder: str, form: str) -> "re.Pattern[str] | None":
    """Return the pattern of daily notes in a folder, by their format in Obsidian.

    None for a format without the year, month and day as numbers.
    """
    pattern, seen = "", set[str]()
    for found in _TOKEN.finditer(form):
        token = found[0]
        if token in _FIELDS:
            pattern += r"\d++" if token[0] in seen else _FIELDS[token]
            seen.add(token[0])
        else:
            pattern += _LETTERS.get(token) or re.escape(found[1] if found[1] is not None else token)
    above = re.escape(f"{folder.strip('/')}/") if folder.strip("/") else "(?:.*/)?"
    return re.compile(above + pattern) if seen == set("YMD") else None


def day_in(path: str, days: "re.Pattern[str] | None") -> str | None:
    """Return the day in the name of a note, in ISO 8601; None if there is none."""
    name = path[: -len(MARKDOWN)]
    found = (days.fullmatch(name) if days else None) or _DAY_IN_PATH.fullmatch(name)
    if found is None:
        return None
    numbers = {key[0]: int(value) for key, value in found.groupdict().items() if value}
    try:
        return date(numbers["y"], numbers["m"], numbers["d"]).isoformat()
    except ValueError:  # such as the 30th of February
        return None


def distinct_name(name: str, place: str) -> str:
    """Return a name for a place whose usual name another place already has."""
    return f"{name} ({sha256(place.encode()).hexdigest()[:6]})"


def folded(path: str) -> str:
    """Return a path in the form that case-insensitive and normalizing systems compare."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())
