"""Whether a value could be somebody's, or only stands where one would be."""

import math
import re
from collections import Counter

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
