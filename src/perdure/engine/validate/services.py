"""What the keys and tokens of services look like.

Each has its kind, words of which one is in every text that holds it, and a pattern. The group
`value` is what must not be stored; without one, it is all that matches.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


def _shape(kind: str, hints: str, pattern: str) -> Shape:
    return Shape(kind, tuple(hints.split()), re.compile(pattern))


_START, _END = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9_])"
_ENDS = r"(?![A-Za-z0-9])"


def _token(kind: str, hints: str, pattern: str) -> Shape:
    """Return a token that stands alone, whose value begins after its known beginning."""
    return _shape(kind, hints, f"{_START}(?:{pattern}){_END}")


AWS_SECRET = "AWS secret key"  # noqa: S105 - a kind, and no secret
"""The other half of an access key; only its neighbour tells it from a hash."""

SHAPES = (
    _shape(
        "private key",
        "PRIVATE",
        r"-{4,5} ?BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
        r"(?P<body>(?:(?!-{4})[^\0]){40,20000}?)"
        r"(?:-{4,5} ?END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}|\Z|(?=\n[ \t]*\n))",
    ),
    _token("private key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[A-Z0-9]{50,60}"),
    _shape(
        "private key", "Private-Lines", r"Private-Lines: \d{1,3}\s+(?P<value>[A-Za-z0-9+/=\s]{40,})"
    ),
    _token("AWS access key", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
    _shape(
        AWS_SECRET,
        "AKIA ASIA",
        r"(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Za-z0-9])(?s:.){1,120}?"
        r"(?<![A-Za-z0-9+/])(?P<value>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])",
    ),
    _token("Google API key", "AIza", r"AIza[\w-]{35}"),
    _token("Google client secret", "GOCSPX-", r"GOCSPX-[\w-]{24,40}"),
    _token("Google access token", "ya29.", r"ya29\.[\w-]{20,}"),
    _shape(
        "Azure key",
        "AccountKey= SharedAccessKey=",
        r"(?:AccountKey|SharedAccessKey)=(?P<value>[A-Za-z0-9+/]{40,100}={0,2})",
    ),
    _token("Azure client secret", "Q~", r"[A-Za-z0-9_~.]{3}\dQ~[\w~.-]{31,40}"),
    _shape("signed URL", "sig=", r"[?&]sig=(?P<value>[A-Za-z0-9%+/]{30,}(?:=|%3D){0,2})"),
    _token("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,255}"),
    _token("GitHub token", "github_pat_", r"github_pat_\w{40,255}"),
    _token(
        "GitLab token",
        "glpat- glptt- gldt- glrt- glcbt- glft- glsoat- glagent-",
        r"gl(?:pat|ptt|dt|rt|cbt|ft|soat|agent)-[\w.-]{20,80}",
    ),
    _token("Slack token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{20,250}"),
    _token("Slack token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{20,250}"),
    _shape(
        "Slack webhook",
        "hooks.slack.com",
        r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{20,200}",
    ),
    _shape(
        "Discord webhook",
        "/api/webhooks/",
        r"https://(?:\w{1,10}\.)?discord(?:app)?\.com/api/webhooks/\d{15,21}/[\w-]{40,100}",
    ),
    _token("Stripe key", "sk_ rk_", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,250}"),
    _token("webhook secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,100}"),
    _token("Anthropic key", "sk-ant-", r"sk-ant-[a-z]{3,8}\d\d-[\w-]{20,200}"),
    _token("OpenRouter key", "sk-or-", r"sk-or-v\d-[0-9a-f]{40,80}"),
    _token("OpenAI key", "sk-", r"sk-(?:proj|svcacct|admin|None)-[\w-]{20,250}"),
    _token("OpenAI key", "sk-", r"sk-[A-Za-z0-9]{32,64}"),
    _token("Hugging Face token", "hf_", r"hf_[A-Za-z0-9]{30,40}"),
    _token("npm token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _token("PyPI token", "pypi-", r"pypi-[\w-]{50,300}"),
    _token("SendGrid key", "SG.", r"SG\.[\w-]{16,32}\.[\w-]{16,64}"),
    _token("Telegram token", ":AA", r"\d{8,10}:AA[\w-]{32,35}"),
    _token("DigitalOcean token", "_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
    _token("Shopify token", "shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _token("Databricks token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    _token("Docker token", "dckr_", r"dckr_(?:pat|oat)_[\w-]{20,60}"),
    _token("Vault token", "hvs. hvb.", r"hv[sb]\.[\w-]{20,300}"),
    _token("Groq key", "gsk_", r"gsk_[A-Za-z0-9]{40,60}"),
    _token("xAI key", "xai-", r"xai-[A-Za-z0-9]{60,100}"),
    _token("Replicate token", "r8_", r"r8_[A-Za-z0-9]{37,40}"),
    _token("Perplexity key", "pplx-", r"pplx-[A-Za-z0-9]{40,60}"),
    _token("Notion token", "ntn_ secret_", r"(?:ntn_[A-Za-z0-9]{40,50}|secret_[A-Za-z0-9]{43})"),
    _token("Linear key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,64}"),
    _token("Figma token", "figd_", r"figd_[\w-]{38,44}"),
    _token("Postman key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _token(
        "Grafana token", "glsa_ glc_", r"(?:glsa_\w{32}_[0-9a-f]{8}|glc_[A-Za-z0-9+/=]{32,200})"
    ),
    _token("Sentry token", "sntrys_ sntryu_", r"sntry[su]_[\w+/=.-]{40,300}"),
    _token("New Relic key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    _token("Atlassian token", "ATATT3", r"ATATT3[\w=-]{60,250}"),
    _token("RubyGems key", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    _token("Doppler token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9.]{40,60}"),
    _token("Square token", "sq0", r"sq0(?:atp|csp)-[\w-]{22,43}"),
    _token("Mailgun key", "key-", r"key-[0-9a-f]{32}"),
    _token("JSON web token", "eyJ", r"eyJ[\w-]{10,2000}\.eyJ[\w-]{6,8000}\.[\w-]{16,2000}"),
    _shape(
        "authorization header",
        "earer",
        rf"(?i:\bbearer)[ \t]+(?P<value>[A-Za-z0-9._~+/-]{{16,4000}}={{0,2}}){_ENDS}",
    ),
    _shape(
        "authorization header",
        "asic",
        r"(?i:\bauthorization)[\"']?[ \t]*[:=][ \t]*[\"']?(?i:basic)[ \t]+"
        rf"(?P<value>[A-Za-z0-9+/]{{8,400}}={{0,2}}){_ENDS}",
    ),
    _shape(
        "one-time password seed",
        "otpauth://",
        r"otpauth://[^\s\"'<>]{0,200}?[?&]secret=(?P<value>[A-Z2-7]{16,128})",
    ),
)
"""The order matters: of two that begin at the same place, the first gives its kind."""
