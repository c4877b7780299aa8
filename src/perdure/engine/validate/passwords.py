"""Secrets that are known only by what stands around them: `api_key: …`, "my password is …".

As people say them, nothing but the place tells them from other words, so they must look the part:
a password mixes letters, digits and marks, a PIN has its digits, the words of a wallet are no
sentence. Examples, masks, references and hashes are no secrets.
"""
# ruff: noqa: RUF001 - other alphabets are the point

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator

_TELLS = re.compile(
    r"(?i)example|x{4}|\*{3}|\.\.\.|…|•|your|change_?-?me|placeholder|dummy|redact|sample|insert"
    r"|replace|todo|fake|not-?a-?real|secret:|my[_-]?(?:secret|token|key|password|api)|<[^>]*>"
    r"|\$\{|\{\{|\$\(|%\(|goes[_-]?here|key[_-]?here|deadbeef|0123456|1234567|abcdefg|foobar"
)
_REFERS = re.compile(
    r"\$\w*|\$\{.*|%\w+%|@\w+@|\{[^}]*\}|<.*|\[.*|\(.*|[~./]*/.*|&\w+;.*|(?:[A-Z][A-Z0-9]*_)+[A-Z0-9]+"
    r"|(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*(?:[(\[].*)?|[A-Za-z_]\w*\(.*|[A-Za-z_]\w*\[.*|\\.*|\$\d?\w?\$.*"
)
_DEFAULTS = frozenset(
    {
        *("password", "passwd", "postgres", "root", "admin", "test", "secret", "guest", "user"),
        *("pass", "pwd", "none", "null", "true", "false", "undefined", "string", "str", "token"),
        *("demo", "mysql", "default", "required", "optional", "password1", "password123"),
        *("admin123", "test123", "test1234", "secret123", "letmein", "qwerty", "hunter2"),
        *("s3cr3t", "p4ssw0rd", "passw0rd", "p@ssw0rd", "p@ssword", "base32secret"),
    }
)
"""What everybody writes where a password would stand."""
_RUN = re.compile(r"(.)\1{4}")
_HASHED = re.compile(r"\$(?:2[abxy]?|argon2\w*|[156]|scrypt|pbkdf2[\w-]*)\$.*|pbkdf2_.*|\{SSHA\}.*")
_FEW = 4


def stands_for_one(value: str) -> bool:
    """Whether this is an example, a mask, a reference or a hash, and no secret itself."""
    return (
        value.casefold() in _DEFAULTS
        or len(set(value)) <= _FEW
        or _TELLS.search(value) is not None
        or _RUN.search(value) is not None
        or _HASHED.fullmatch(value) is not None
    )


def refers(value: str) -> bool:
    """Whether this is a name, a path or code from which a value would come."""
    return _REFERS.fullmatch(value) is not None


def classes(value: str) -> int:
    """Return of how many sorts the characters are: small, capital, digits, others."""
    sorts = (str.islower, str.isupper, str.isdigit, lambda each: not each.isalnum())
    return sum(any(map(sort, value)) for sort in sorts)


def entropy(value: str) -> float:
    """Return how many bits each character tells, as far as its own counts say."""
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)


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


PIN, CARD_CODE, SEED = "PIN", "card code", "wallet seed phrase"

_BESIDE_A_KEY = re.compile(
    rf"(?i)(?:{NAMES_OF_KEYS})[ ]{{1,2}}(?P<value>[A-Za-z0-9_+/=.-]{{20,400}})"
)
_BECOMES = (
    r"(?:(?:[ ](?:was|is|has been|got))?(?:[ ](?:set|changed|reset|updated|switched))?[ ]to"
    r"|[ ](?:é|jest|от \w{1,20}|для \w{1,20}))?"
)
_BESIDE_A_PASSWORD = re.compile(
    rf"(?i)(?:{NAMES_OF_PASSWORDS}|\bpass){_BECOMES}[ ]{{1,2}}(?P<value>[^\s\"'`<>]{{6,100}})"
)
_LOGIN = re.compile(
    r"(?i)\b(?:login|log-?in|creds?|credentials?|user(?:name)?|account|wi-?fi|wlan|ssid)\b"
    r"(?:[ ]?[:=]|[ ]are|[ ]is)?[ ]{1,2}"
    r"[\w.@+-]{1,60}[ ]{0,2}[/,|:-][ ]{0,2}(?P<value>[^\s\"'`<>]{6,100})"
)
_IN_THE_EAST = re.compile(
    r"(?:密码|密碼|口令|パスワード|暗証番号|비밀번호|암호)[は가는은이是为為:：=\s「『\"“']{1,6}"
    r"(?P<value>[!-~]{4,100})"
)
_PINS = re.compile(
    r"\b(?:PIN|[Pp]in(?=(?:[ ](?:code|number))?(?:'s|\u2019s|[ ]is|[ ]was|:)))"
    r"(?:[ ](?:code|number))?(?:[ ](?:for|of|to)(?:[ ][\w'-]{1,20}){1,4}?)?"
    r"(?:(?:'s|\u2019s|[ ]is|[ ]was)(?:[ ](?:now|still))?[ ]|[ ]?[:=][ ]?|[ ])(?P<value>\d{4,8})"
    r"(?![\w.,/-]\d|\w| (?:style|pins?|of)\b)"
)
_CODES = re.compile(
    r"(?i)\b(?:pass|unlock|door|alarm|gate|entry|lock)[ -]?code(?:[ ](?:for|of|to)"
    r"(?:[ ][\w'-]{1,20}){1,4}?)?(?:'s[ ]|\u2019s[ ]|[ ]is[ ]|[ ]?[:=][ ]?)(?P<value>\d{4,8})(?!\w)"
)
_WHOSE = re.compile(r"(?i)\b(?:my|our|her|his|card|sim|phone|bank|door|alarm|safe|debit|credit)\b")
_NOBODYS = re.compile(r"(?i)\b(?:default|factory|example|gpio)\b")
_POSTAL = 6
"""Digits from which on a PIN may be that of a place; it must be said whose it is."""
_NEAR = 40
_CARD_CODE = re.compile(
    r"(?i)\b(?:cvv2?|cvc2?|card security code)(?:[ ](?:code|number))?"
    r"(?:[ ](?:is|was)[ ]|[ ]?[:=][ ]?|[ ])(?P<value>\d{3,4})(?![\w.,/-]\d|\w)"
)
_SEED_WORD = r"(?:\d{1,2}[.):]?[ ]?)?[a-z]{3,8}"
_SEED = re.compile(
    r"(?i:\b(?:seed (?:phrase|words)|mnemonic(?: phrase)?|(?:recovery|backup) (?:phrase|words)"
    r"|(?:12|24)[ -]words?(?: phrase)?))\b"
    r"[^\n:=]{0,40}?(?::|=|\bis\b|\bare\b|\n)\s{0,4}[\"'`]?"
    rf"(?P<value>(?:{_SEED_WORD}[\s,;]{{1,3}}){{11,23}}{_SEED_WORD})\b"
)
_SENTENCE = re.compile(
    r"\b(?:the|and|for|with|that|are|was|were|you|your|from|not|but|have|has|his|her|they|them"
    r"|their|which|been|its|our|who|into|than|would|should|could|both|only|also|these|those)\b"
)
_MARK = re.compile(r"[!#$%&*+?@~^§€]")
_CODE = re.compile(r"[(\[{]|->|::|//|^--|@\S+\.\w")
_NAMES_OF_CODES = re.compile(r"(?i)(?:base\d\d|sha-?\d|utf-?\d|md5|argon2|bcrypt|oauth|https?).*")
_HASH = re.compile(r"(?i)[0-9a-f]{40}|[0-9a-f]{64}")
_SHORTEST_PLAIN = 8
_DIGITS = 2

Judge = Callable[[str], bool]


def spoken_in(text: str) -> Iterator[Place]:
    """Yield the kind and place of each value that is said to be a secret."""
    yield from _judged_by(_BESIDE_A_KEY, text, TOKEN, _is_token)
    yield from _judged_by(_BESIDE_A_PASSWORD, text, PASSWORD, _is_strong)
    yield from _judged_by(_LOGIN, text, PASSWORD, _is_strong)
    yield from _judged_by(_IN_THE_EAST, text, PASSWORD, looks_like_a_password)
    yield from _pins(text)
    for match in _CARD_CODE.finditer(text):
        yield CARD_CODE, *match.span("value")
    for match in _SEED.finditer(text):
        if not _SENTENCE.search(match["value"]):
            yield SEED, *match.span("value")


def _judged_by(pattern: re.Pattern[str], text: str, kind: str, judge: Judge) -> Iterator[Place]:
    for match in pattern.finditer(text):
        value = trimmed(match["value"])
        if not is_reference(value) and judge(value):
            yield kind, match.start("value"), match.start("value") + len(value)


def _pins(text: str) -> Iterator[Place]:
    for match in _CODES.finditer(text):
        yield PIN, *match.span("value")
    for match in _PINS.finditer(text):
        before = text[max(0, match.start() - _NEAR) : match.start("value")]
        whose = len(match["value"]) < _POSTAL or _WHOSE.search(before)
        if whose and not _NOBODYS.search(before):
            yield PIN, *match.span("value")


def _is_token(value: str) -> bool:
    return (
        looks_like_a_token(value)
        and not _HASH.fullmatch(value)
        and not _NAMES_OF_CODES.match(value)
    )


def _is_strong(value: str) -> bool:
    """Whether a word is mixed as only passwords are."""
    if _CODE.search(value) or _NAMES_OF_CODES.fullmatch(value):
        return False
    digits = sum(map(str.isdigit, value))
    cases = any(map(str.isupper, value)) and any(map(str.islower, value))
    if _MARK.search(value):
        return digits > 0 and any(map(str.isalpha, value))
    return value.isalnum() and cases and digits >= _DIGITS and len(value) >= _SHORTEST_PLAIN
