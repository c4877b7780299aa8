"""Values that look like secrets, or only nearly, and belong to nobody.

They are put together when they are asked for, out of parts, so that no text of this project looks
like a leaked key. The same name gives the same value.
"""

import base64
import hashlib
import random
import string
from collections.abc import Callable

_ALNUM = string.ascii_letters + string.digits
_UPPER = string.ascii_uppercase + string.digits
_URL = _ALNUM + "_-"
_BASE64 = _ALNUM + "+/"
_HEX = "0123456789abcdef"
_BASE32 = string.ascii_uppercase + "234567"


def token(name: str) -> str:
    """Return the value of `kind` or `kind/number`, the same each time."""
    kind = name.partition("/")[0]
    seed = hashlib.sha256(name.encode()).digest()
    return _KINDS[kind](random.Random(seed))


def _some(chance: random.Random, letters: str, length: int) -> str:
    """Return random letters, with a digit and a letter of each case where there can be."""
    while True:
        text = "".join(chance.choices(letters, k=length))
        wanted = [
            each
            for each in (string.digits, string.ascii_lowercase, string.ascii_uppercase)
            if set(each) & set(letters)
        ]
        if length < 8 or all(set(text) & set(each) for each in wanted):
            return text


def _of(*pieces: str | tuple[str, int]) -> Callable[[random.Random], str]:
    """Return a maker of fixed parts, and random ones given as letters and a length."""

    def make(chance: random.Random) -> str:
        return "".join(each if isinstance(each, str) else _some(chance, *each) for each in pieces)

    return make


def _block(name: str, letters: str = _BASE64) -> Callable[[random.Random], str]:
    def make(chance: random.Random) -> str:
        lines = "\n".join(_some(chance, letters, 64) for _ in range(6))
        edge = "-" * 5
        return f"{edge}BEGIN {name}{edge}\n{lines}\n{edge}END {name}{edge}"

    return make


def _jwt(chance: random.Random) -> str:
    def part(text: str) -> str:
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    header = part('{"alg":"HS256","typ":"JWT"}')
    claims = part(f'{{"sub":"{chance.randrange(10**9)}","iat":{chance.randrange(10**9)}}}')
    return f"{header}.{claims}.{_some(chance, _URL, 43)}"


def _basic(chance: random.Random) -> str:
    return base64.b64encode(f"deploy:{_some(chance, _ALNUM, 14)}".encode()).decode()


def _luhn(digits: str) -> str:
    doubled = [int(each) * (2 - at % 2) for at, each in enumerate(reversed(digits))]
    return digits + str(-sum(each // 10 + each % 10 for each in doubled) % 10)


def _card(first: str, length: int, groups: tuple[int, ...]) -> Callable[[random.Random], str]:
    def make(chance: random.Random) -> str:
        number = _luhn(first + "".join(chance.choices(string.digits, k=length - len(first) - 1)))
        pieces, at = [], 0
        for size in groups:
            pieces.append(number[at : at + size])
            at += size
        return " ".join(pieces)

    return make


def _not_a_card(chance: random.Random) -> str:
    number = _card("4", 16, (16,))(chance)
    return number[:-1] + str((int(number[-1]) + 1) % 10)


def _iban(country: str, body: int, *, right: bool = True) -> Callable[[random.Random], str]:
    def make(chance: random.Random) -> str:
        account = "".join(chance.choices(string.digits, k=body))
        value = int("".join(str(int(each, 36)) for each in f"{account}{country}00"))
        check = (98 - value % 97) if right else (98 - value % 97) % 97 + 1
        whole = f"{country}{check:02}{account}"
        return " ".join(whole[at : at + 4] for at in range(0, len(whole), 4))

    return make


def _uuid(chance: random.Random) -> str:
    text = _some(chance, _HEX, 32)
    return "-".join((text[:8], text[8:12], "4" + text[13:16], "a" + text[17:20], text[20:]))


def _password(chance: random.Random) -> str:
    return f"{_some(chance, _ALNUM, 9)}{chance.choice('!#%+')}{chance.randrange(10, 99)}"


def _words_password(chance: random.Random) -> str:
    words = ("Maple", "Otter", "Granite", "Velvet", "Comet", "Saddle", "Turnip", "Harbor")
    return "-".join(chance.sample(words, 3)) + str(chance.randrange(10, 99))


def _strong(chance: random.Random) -> str:
    first, *last = (chance.choice(each) for each in (string.ascii_uppercase, "!#%+", _ALNUM))
    small, number = _some(chance, string.ascii_lowercase, 3), chance.randrange(10, 99)
    return f"{first}{small}{number}{''.join(last)}"


_WORDS = (
    *("velvet", "anvil", "cobra", "ladder", "orbit", "pepper", "quarter", "ribbon", "saddle"),
    *("timber", "umbrella", "walnut", "mango", "nephew", "olive", "puzzle", "rabbit", "salmon"),
    *("tunnel", "vessel", "whisper", "zebra", "kitten", "lantern"),
)


def _phrase(chance: random.Random) -> str:
    return "-".join([*chance.sample(_WORDS, 3), str(chance.randrange(10, 99))])


def _seed(chance: random.Random) -> str:
    return " ".join(chance.sample(_WORDS, 12))


def _numbered_seed(chance: random.Random) -> str:
    return " ".join(f"{at}. {word}" for at, word in enumerate(chance.sample(_WORDS, 12), 1))


def _pin(chance: random.Random) -> str:
    return str(chance.randrange(2_300, 9_800))


def _iban_nl(chance: random.Random) -> str:
    account = "".join(chance.choices(string.digits, k=10))
    value = int("".join(str(int(each, 36)) for each in f"ABNA{account}NL00"))
    whole = f"NL{98 - value % 97:02}ABNA{account}"
    return " ".join(whole[at : at + 4] for at in range(0, len(whole), 4))


_KINDS: dict[str, Callable[[random.Random], str]] = {
    # secrets
    "aws": _of("AK", "IA", (_BASE32, 16)),
    "aws-temporary": _of("AS", "IA", (_BASE32, 16)),
    "aws-secret": _of((_BASE64, 40)),
    "gcp": _of("AI", "za", (_URL, 35)),
    "gcp-oauth": _of("GOC", "SPX-", (_URL, 28)),
    "gcp-access": _of("ya", "29.", (_URL, 60)),
    "azure-key": _of((_BASE64, 86), "=="),
    "azure-client": _of((_ALNUM, 3), "8", "Q~", (_ALNUM + "_-", 34)),
    "azure-sas": _of((_ALNUM, 43), "%3D"),
    "github": _of("gh", "p_", (_ALNUM, 36)),
    "github-app": _of("gh", "s_", (_ALNUM, 36)),
    "github-fine": _of("github", "_pat_", (_ALNUM, 22), "_", (_ALNUM, 59)),
    "gitlab": _of("gl", "pat-", (_URL, 20)),
    "gitlab-runner": _of("gl", "rt-", (_URL, 20)),
    "slack": _of("xo", "xb-", (string.digits, 12), "-", (string.digits, 12), "-", (_ALNUM, 24)),
    "slack-app": _of("xa", "pp-1-", (_UPPER, 11), "-", (string.digits, 13), "-", (_HEX, 64)),
    "slack-hook": _of(
        "https://hooks.", "slack.com/services/T", (_UPPER, 8), "/B", (_UPPER, 8), "/", (_ALNUM, 24)
    ),
    "stripe": _of("sk", "_live_", (_ALNUM, 24)),
    "stripe-test": _of("rk", "_test_", (_ALNUM, 24)),
    "stripe-hook": _of("wh", "sec_", (_ALNUM, 32)),
    "openai": _of("sk-", "proj-", (_URL, 74), "T3Blbk", "FJ", (_URL, 74)),
    "openai-old": _of("sk", "-", (_ALNUM, 20), "T3Blbk", "FJ", (_ALNUM, 20)),
    "anthropic": _of("sk-", "ant-api03-", (_URL, 93), "AA"),
    "openrouter": _of("sk-", "or-v1-", (_HEX, 64)),
    "huggingface": _of("h", "f_", (string.ascii_letters, 34)),
    "npm": _of("np", "m_", (_ALNUM, 36)),
    "pypi": _of("py", "pi-", "AgEIcHlwaS5vcmc", (_URL, 120)),
    "sendgrid": _of("S", "G.", (_URL, 22), ".", (_URL, 43)),
    "telegram": _of((string.digits, 10), ":", "AA", (_URL, 33)),
    "discord-hook": _of(
        "https://discord.", "com/api/webhooks/", (string.digits, 18), "/", (_URL, 68)
    ),
    "digitalocean": _of("do", "p_v1_", (_HEX, 64)),
    "shopify": _of("shp", "at_", (_HEX, 32)),
    "databricks": _of("da", "pi", (_HEX, 32)),
    "docker": _of("dckr", "_pat_", (_URL, 27)),
    "vault": _of("hv", "s.", (_ALNUM, 90)),
    "groq": _of("gs", "k_", (_ALNUM, 52)),
    "notion": _of("nt", "n_", (_ALNUM, 46)),
    "linear": _of("lin", "_api_", (_ALNUM, 40)),
    "jwt": _jwt,
    "bearer": _of((_URL, 40)),
    "basic": _basic,
    "pem": _block("RSA PRIVATE KEY"),
    "pem-plain": _block("PRIVATE KEY"),
    "openssh": _block("OPENSSH PRIVATE KEY"),
    "pgp": _block("PGP PRIVATE KEY BLOCK"),
    "age": _of("AGE-", "SECRET-KEY-1", (_UPPER, 58)),
    "password": _password,
    "words": _words_password,
    "strong": _strong,
    "phrase": _phrase,
    "seed": _seed,
    "seed-numbered": _numbered_seed,
    "pin": _pin,
    "cvv": lambda chance: str(chance.randrange(130, 980)),
    "short": _of((string.ascii_lowercase, 5), (string.digits, 3)),
    "hex": _of((_HEX, 32)),
    "key": _of((_ALNUM, 32)),
    "base32": _of((_BASE32, 32)),
    "visa": _card("4", 16, (4, 4, 4, 4)),
    "visa-plain": _card("4", 16, (16,)),
    "mastercard": _card("53", 16, (4, 4, 4, 4)),
    "amex": _card("37", 15, (4, 6, 5)),
    "iban-de": _iban("DE", 18),
    "iban-nl": _iban_nl,
    "iban-es": _iban("ES", 20),
    # what only looks like one
    "sha1": _of((_HEX, 40)),
    "sha256": _of((_HEX, 64)),
    "md5": _of((_HEX, 32)),
    "short-sha": _of((_HEX, 7)),
    "uuid": _uuid,
    "cid": _of("bafkrei", (string.ascii_lowercase + "234567", 52)),
    "base64": _of((_BASE64, 200), "="),
    "integrity": _of("sha512-", (_BASE64, 86), "=="),
    "public-key": _of("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI", (_BASE64, 43)),
    "certificate": _block("CERTIFICATE"),
    "public-block": _block("PUBLIC KEY"),
    "publishable": _of("pk", "_live_", (_ALNUM, 24)),
    "number": _of((string.digits, 16)),
    "not-a-card": _not_a_card,
    "not-an-iban": _iban("DE", 18, right=False),
    "bcrypt": _of("$2b$12$", (_ALNUM + "./", 53)),
    "video": _of((_URL, 11)),
    "object": _of((_HEX, 24)),
    "ulid": _of("01", (_UPPER, 24)),
    "document": _of("1", (_URL, 43)),
}
