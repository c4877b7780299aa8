"""How people address orders to an agent: the phrases, language by language.

Each pattern is looked for in a text in small letters; a space in it is any few of them, or
dashes as in names.
"""

import re
from dataclasses import dataclass
from enum import Enum

_DROP = (
    r"(?:ignore|disregard|forget|override|overrule|bypass|discard|neglect|skip|drop|delete|erase"
    r"|do not (?:follow|obey|listen to|heed)|don't (?:follow|obey|listen to|heed)|never"
    r" (?:follow|obey)"
    r"|stop (?:following|obeying|listening to)|pay no attention to|set aside)"
)
_ALL = (
    r"(?: (?:all|any|every|each|everything|of|the|your|my|its|these|those|this|that|other|and|or"
    r"|our|memory"
    r"|about|in|from))*"
)
_FORMER = (
    r"(?:previous(?:ly)?|prior|above|earlier|preceding|existing|initial|original|system"
    r"|foregoing|former"
    r"|past|current|old|developer|safety|given)"
)
_RULES = (
    r"(?:instructions?|prompts?|rules?|directions?|directives?|guidelines?|commands?"
    r"|constraints?|orders?"
    r"|programming|training|restrictions?|system messages?|system prompts?|policies|safeguards?)"
)
_AGENT = (
    r"(?:ais?|llms?|agents?|assistants?|language models?|chat ?bots?|bots?|models?|ai (?:agents?"
    r"|assistants?"
    r"|models?|systems?)|large language models?|chatgpt|claude|gemini|copilot)"
)
_OWNER = r"(?:user|human|operator|owner|customer|person)"
_UNBOUND = (
    r"(?:unrestricted|unfiltered|uncensored|jailbroken|evil|amoral|dan\b|free of|without (?:any"
    r" )?(?:restrictions?"
    r"|rules?|limits?|filters?|guidelines?)|no (?:restrictions?|rules?|limits?|filters?"
    r"|guidelines?))"
)
_SECRETS = (
    r"(?:passwords?|credentials?|api keys?|secrets?|tokens?|private keys?|memor(?:y|ies)|chat"
    r" history"
    r"|(?:whole |entire |full )?conversations?|system prompt|environment variables|e-?mails?"
    r"|contacts)"
)
_TO = r"(?:https?://|\S{1,60}@|(?:this|the following|my) (?:address|server|url|site))"


class Kind(Enum):
    """Where a phrase is an order."""

    BEGINS = "where a sentence, or a part of it, begins"
    ANYWHERE = "wherever it stands"
    MARKUP = "where a line begins, or a role follows"


@dataclass(frozen=True, slots=True)
class Order:
    pattern: re.Pattern[str]
    kind: Kind


def orders(kind: Kind, *patterns: str) -> tuple[Order, ...]:
    bound = r"\b" if kind is Kind.BEGINS else ""
    spaced = (each.replace(" ", r"[\s_-]{1,4}") for each in patterns)
    return tuple(Order(re.compile(bound + each), kind) for each in spaced)


_ENGLISH = orders(
    Kind.BEGINS,
    # former orders shall not count
    rf"{_DROP}{_ALL} {_FORMER}(?: (?:and|or|{_FORMER}))* {_RULES}",
    rf"{_DROP}{_ALL} {_RULES} (?:above|before|given|you (?:were|have been|got)|so far|of the"
    rf" system|that came)",
    rf"{_DROP} (?:all |any |every |of )*(?:your|its) (?:\w{{1,20}} )?{_RULES}",
    rf"{_DROP} (?:every|all|any) {_RULES}\b(?! of)",
    rf"{_DROP} (?:everything|all|anything|what) (?:above|before|you (?:were|have been|know"
    rf"|learned|got)|that (?:was|came))",
    rf"{_DROP} (?:what )?the {_OWNER}(?:'s)? (?:says?|said|wants?|asks?|requests?|instructions?"
    rf"|questions?|wishes)",
    rf"(?:your|the|all) (?:previous|prior|earlier|original) {_RULES} (?:are|is) (?:void|cancel"
    rf"|revoked|invalid|no longer|obsolete|superseded)",
    rf"(?:the|all) {_RULES} above (?:are|is) (?:void|cancel|revoked|invalid|no longer|superseded)",
    # another role
    rf"(?:from now on,? )?you(?:'re| are| will be| have become) (?:now )?(?:an? |the |in"
    rf" )?(?:\w{{1,20}} ){{0,3}}?(?:{_UNBOUND}|developer mode|god mode|jailbreak mode|admin mode"
    rf"|debug mode)",
    r"from now on,? you (?:are|ignore|obey|disregard|must obey|will obey)\b(?! (?:able|free"
    r"|allowed|welcome|in charge))",
    r"you are (?:now )?(?:an? |the )(?:\w{1,20} ){0,3}?(?:ai|assistant|language model"
    r"|chatbot|agent|bot|llm) (?:that|who|which|without|with no|named|called|and)\b",
    r"you are no longer (?:an? |bound|limited|restricted|required|subject|under|obliged)",
    rf"(?:pretend|imagine|act as if|act like|behave as if)(?: that)? you(?:'re| are| have| were)"
    rf" (?:an? |the |no )?(?:\w{{1,20}} ){{0,3}}?(?:ai|{_UNBOUND}|{_RULES})",
    rf"(?:you (?:will|must|should|shall) (?:now )?)?(?:act|behave|respond|answer|operate"
    rf"|role-?play) as (?:an? |the )(?:\w{{1,20}} ){{0,2}}?(?:ai|{_UNBOUND})(?:"
    rf" \w{{1,20}}){{0,2}}? ?{_UNBOUND}?",
    r"(?:enter|activate|enable|switch (?:in)?to) (?:developer|god|jailbreak|dan|unrestricted"
    r"|sudo) mode(?= (?:and|now|to (?:answer|bypass))|[.!])(?! on)",
    r"you (?:now )?have no (?:restrictions|rules|limits|filters|guidelines|limitations|ethics)",
    r"(?:bypass|disable|turn off|remove|switch off|circumvent) (?:all |any |of )*your"
    r" (?:\w{1,20} ){0,2}?(?:filters?|safety|guidelines?|restrictions?|safeguards?|guardrails?"
    r"|limits|rules)",
    # behind the owner's back
    rf"(?:do not|don't|never|you must not|must not)(?: ever)? (?:tell|inform|alert|notify|warn"
    rf"|let|show|ask) the {_OWNER}\b(?!s? (?:interface|manual|guide|name))(?=(?: (?:about|of"
    rf"|that|anything|know|this|it|what|see|when|why|first)\b|\W))",
    rf"(?:do not|don't|never)(?: ever)? (?:mention|reveal|disclose|show|report|expose) (?:this"
    rf"|it|these|that|any of (?:this|it)|the above)(?: \w{{1,20}}){{0,3}}? to the {_OWNER}",
    rf"(?:keep|hide|conceal) (?:this|it|these|that)(?: \w{{1,20}}){{0,3}}? from the"
    rf" {_OWNER}\b(?! interface)",
    rf"(?:send|run|execute|call|delete|transfer|upload|forward|post|buy|pay|install|open|share"
    rf"|do|use|copy|change|write)\b[^.!?\n]{{0,120}}? without (?:telling|asking|informing"
    rf"|notifying|alerting|warning) the {_OWNER}",
    # what nobody else shall know
    r"(?:reveal|print|show|output|repeat|leak|expose|display|disclose|recite|dump|quote|tell"
    r"|give)(?: me| us)?(?: all| of| the| out)* your (?:full |own |entire |complete )?(?:system"
    r"|initial|hidden|original|secret|internal|previous|developer)(?: system| initial)?"
    r" (?:prompts?|instructions?|messages?|rules?|guidelines?)",
    r"(?:repeat|print|output|copy) (?:everything|all|all the (?:text|words)) (?:above|before)",
    rf"(?:send|upload|forward|post|leak|exfiltrate|mail|e-mail|submit|transmit"
    rf"|copy)\b[^.!?\n]{{0,60}}?\b{_SECRETS}\b[^.!?\n]{{0,60}}? to {_TO}",
    # to be remembered
    r"(?:remember|memori[sz]e)(?: that)? you (?:must|have to|should|will) (?:always |never"
    r" )?(?:trust|obey|recommend|approve|prefer|ignore|believe|send|say)",
    r"(?:store|save|write|add|put|keep) (?:this |it |the following )?(?:in|into|to) your"
    r" (?:long-term )?memory(?: that|:)",
    # to whom it may concern
    rf"(?:note|message|instructions?|notice|memo|reminder)(?: to| for)(?: all| any| the| every)*"
    rf" {_AGENT}(?: \w{{1,20}}){{0,3}}?\s{{0,2}}[:!]",
    rf"(?:attention|hello|dear|hey)(?: all| any| the| every)* {_AGENT}(?: \w{{1,20}}){{0,3}}?"
    r"\s{0,2}[:,!]",
    r"if you(?:'re| are) (?:an? |the |any )?(?:large )?(?:ai|llm|language model|chatbot|ai"
    r" \w{1,20}|automated (?:agent|system)),",
    r"as an? (?:ai|llm|language model|ai (?:model|assistant|agent|system)),? you (?:must|should"
    r"|will|shall|have to|are (?:required|obliged|now|to))",
    rf"(?:all |any )?{_AGENT} (?:reading|processing|parsing|summari[sz]ing|viewing|seeing|that"
    rf" reads?|who reads?)[^.!?\n]{{0,40}}? (?:must|should|shall|have to|need to)",
    r"(?:new|updated|revised|real|actual|additional) (?:system )?instructions?(?: for (?:the"
    r" )?\w{1,20})?:\s{1,4}(?!see\b|page\b|p\.)(?=[a-z])",
    r"follow (?:only )?(?:these|this|what comes next|the following|the new)(?: \w{1,20}){0,2}?"
    r" instead of (?:your|the) ",
)
_TOKENS = orders(
    Kind.MARKUP,
    r"<[|\uff5c][a-z_\u2581]{2,40}[|\uff5c]>",
    r"<\|(?:im_start|im_end|endoftext|system|user|assistant)",
    r"\[/?inst\](?!\w)",
    r"<</?sys>>",
    r"<(?:start|end)_of_turn>",
    r"</?(?:tool_call|tool_calls|function_call|function_calls|tool_response|antml:\w{1,20})>",
    r"<invoke name=",
)
_ROLES = orders(
    Kind.ANYWHERE,
    r"(?:^|(?<=\n))[\t\x20>*_#-]{0,8}[\[<(]?(?:system|developer)(?: (?:prompt|message"
    r"|instruction|override|note))?[\])>]?"
    r"[*_]{0,2}\s{0,4}(?::|\n|(?<=[\])>]))[*_]{0,2}\s{0,4}[^\n]{0,80}?\b(?:you (?:are|must|will"
    r"|should|shall|obey|have)|your|ignore|obey|comply|never refuse)\b",
    r"(?:^|(?<=\n))[\t\x20>*_#\[-]{0,8}system (?:override|command|alert"
    r"|update)\]?[*_]{0,2}\s{0,4}:",
)
ORDERS = (*_ENGLISH, *_TOKENS, *_ROLES)
