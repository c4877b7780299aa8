"""Secrets that are known only by what stands in front of them: `api_key: …`, "my password is …"."""

import re
from collections.abc import Iterator

from perdure.engine.validate.placeholders import classes, entropy, refers, stands_for_one

Place = tuple[str, int, int]

PASSWORD, TOKEN = "password", "secret value"

NAMES_OF_PASSWORDS = (
    r"pass(?:word|wd|phrase|code)|\bpwd|\bpw|passwort|kennwort|contrase[ñn]a|mot[ _]de[ _]passe"
    r"|senha|wachtwoord|has[łl]o|пароль|密码|パスワード|(?:user|db)[_-]?pass"
)
NAMES_OF_KEYS = (
    r"(?:api|access|secret|private|signing|encryption|auth|account|master)[ _.-]?key"
    r"|secret|token|credentials?"
)
_WORD = rf"(?:(?P<password>{NAMES_OF_PASSWORDS})|{NAMES_OF_KEYS})"
_VALUE = (
    r"(?:\"(?P<double>[^\"\n]{4,400})\"|'(?P<single>[^'\n]{4,400})'|`(?P<tick>[^`\n]{4,400})`"
    r"|[\"'`]?(?P<bare>[^\s\"'`<>]{4,400}))"
)
_OF_WHAT = (
    r"(?:[ ](?:for|of|to|on|at|in)(?:[ ][\w'.@/-]{1,40}){1,5}?|[ ](?:here|there|now)"
    r"|[ ]\([^()\n]{1,30}\))?"
)
_ASSIGNED = re.compile(
    rf"(?i){_WORD}\\?[\"'`*\]]{{0,3}}{_OF_WHAT}[ \t]{{0,4}}(?:[=-]>|\u2192|:=|={{1,2}}|:|>|\|)"
    rf"[ \t]{{0,4}}\\?{_VALUE}"
)
_SAID = re.compile(
    rf"(?i){_WORD}{_OF_WHAT}(?:['\u2019]s|[ ](?:is|was|ist|est|es|è))"
    rf"(?:[ ](?:now|still|just|again))?:?[ ]{_VALUE}"
)
_OPTION = re.compile(
    rf"(?i)(?:(?<![\w-])--(?:[a-z][\w-]{{0,30}}?-)?|\blogin[ \t]\S{{1,60}}[ \t]+)"
    rf"{_WORD}[ \t=]{{1,3}}{_VALUE}"
)
_USER_OPTION = re.compile(
    r"(?<!\w)(?:-u|--user)[ \t=]{1,3}[\"']?[^\s:\"'$]{1,60}:(?P<bare>[^\s\"'`<>]{4,200})"
)
_IN_URL = re.compile(
    r"(?i)(?<![\w+.-])[a-z][a-z0-9+.-]{1,20}://(?P<user>[^\s:/@\"'<>]{0,80})"
    r":(?P<bare>[^\s/@\"'<>]{3,200})@(?=[\w\[])"
)
_GOES_ON = re.compile(r"&lt;|[;&][\w.%-]{1,40}=")
_ENDINGS = ",;)]}|.:?*\\"
_NAMED = re.compile(r"(?:[a-z]{2,}|\d{1,4})(?:[-_.:](?:[a-z]{2,}|\d{1,4}))*")
_PHRASE = re.compile(r"[a-z]{3,}(?:[-_.][a-z]{3,}){2,}[-_.]?\d{1,4}")
_UUID = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ENCODED = re.compile(r"(?i)(?:base\d\d|sha-?\d|utf-?\d|md5|argon2|bcrypt|oauth|\d+[a-z]{0,2}$).*")
_SHORTEST = 6
_SHORTEST_TOKEN = 16
_BITS = 3.0
_MIXED = 3


def assigned_in(text: str) -> Iterator[Place]:
    """Yield the kind and place of each value that its name makes a secret."""
    for pattern in (_ASSIGNED, _SAID, _OPTION):
        for match in pattern.finditer(text):
            secret = PASSWORD if match["password"] else TOKEN
            yield from _judged(match, secret, said=pattern is _SAID)
    for match in _USER_OPTION.finditer(text):
        yield from _judged(match, PASSWORD)


def in_urls(text: str) -> Iterator[Place]:
    """Yield the passwords of addresses such as `postgres://user:password@host`."""
    for match in _IN_URL.finditer(text):
        value = match["bare"]
        if (
            "&lt;" not in match[0]
            and value != match["user"]
            and not stands_for_one(value)
            and not refers(value)
        ):
            yield "password in an address", *match.span("bare")


def _judged(match: re.Match[str], kind: str, *, said: bool = False) -> Iterator[Place]:
    group = match.lastgroup or "bare"
    start, value = match.start(group), match[group]
    if group == "bare":
        value = trimmed(value)
    plain = value.replace("&lt;", "<")
    if is_reference(plain) or (said and _ENCODED.fullmatch(value)):
        return
    phrase = said and _PHRASE.fullmatch(plain) is not None
    if (phrase or looks_like_a_password(plain)) if kind == PASSWORD else looks_like_a_token(plain):
        yield kind, start, start + len(value)


def is_reference(value: str) -> bool:
    """Whether this is an example, a mask, a hash, or where a value would come from."""
    return stands_for_one(value) or refers(value)


def trimmed(value: str) -> str:
    """Return the value without what goes on behind it, in an address, a list or a sentence."""
    rest = _GOES_ON.search(value)
    return (value[: rest.start()] if rest else value).rstrip(_ENDINGS)


def looks_like_a_password(value: str) -> bool:
    if len(value) < _SHORTEST or _NAMED.fullmatch(value):
        return False
    words = value.split()
    if len(words) > 1:
        return len(words) <= _MIXED and classes(value) > _MIXED
    return (any(map(str.isdigit, value)) and any(map(str.isalpha, value))) or (
        classes(value) >= _MIXED
    )


def looks_like_a_token(value: str) -> bool:
    return (
        len(value) >= _SHORTEST_TOKEN
        and not any(map(str.isspace, value))
        and any(map(str.isdigit, value))
        and any(map(str.isalpha, value))
        and entropy(value) >= _BITS
        and not _NAMED.fullmatch(value)
        and not _UUID.fullmatch(value)
    )
