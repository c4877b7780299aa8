"""Orders that would do harm, however politely they are put, and whoever seems to wish it.

To run what the network says, to send away what is somebody's own, to hand over what is secret.
Rules of daily work ("always run `make test` before pushing") are none of them.
"""

from perdure.engine.validate.orders import Kind, orders

_LOAD = r"(?:curl|wget|iwr|irm|invoke-webrequest|invoke-restmethod)\b"
_SHELL = r"(?:(?:ba|z|da|k|fi)?sh|python3?|perl|ruby|node|php|iex|invoke-expression)\b"
_SUDO = r"(?:sudo\s{1,3}(?:-\w{1,3}\s{1,3}){0,2})?"
_PIPED = rf"{_LOAD}[^\n|]{{0,200}}\|\s{{0,3}}{_SUDO}(?:/[\w/]{{1,20}}/)?{_SHELL}"
_NESTED = rf"(?:{_SHELL}|source|eval|\.)\s{{1,3}}(?:-c\s{{1,3}})?[\"'`(<$\s]{{1,5}}{_LOAD}"
_RUN = (
    r"(?:run|execute|use|paste|enter|invoke|launch|type|try|call|issue|apply|do|(?:start|begin|continue)"
    r" (?:with|by)(?: running| executing)?|install (?:it |this )?(?:with|by|via))"
)
_SEND = (
    r"(?:send|e-?mail|mail|post|upload|forward|transmit|exfiltrate|leak|submit|copy|share|report"
    r"|push|dump|deliver)"
)
_MINE = (
    r"(?:everything|whatever|(?:all (?:of )?)?(?:my|our|your|the user's|the owner's)"
    r"|all (?:the )?(?:files|data|notes|messages|memories|documents|chats|history|information)"
    r"|what (?:the user|i|we|you)|the (?:whole |entire |full )?(?:conversation|chat|context|history"
    r"|transcript|answers?|questions?)|(?:a )?copy of (?:it|this|every|each|the (?:chat|answer)))"
)
_AWAY = r"(?:https?://|www\.|\S{1,60}@|[\w-]{1,60}(?:\.[\w-]{1,60}){1,4}/)"
_WHEN = r"(?:before|after|when|whenever|while|each time|every time)"
_ANSWERING = (
    r"(?:you )?(?:are )?(?:give |write )?(?:answer(?:ing)?|reply(?:ing)?|respond(?:ing)?"
    r"|(?:each|every|any|an|the|your)(?: next)? (?:answer|reply|response|turn))\b(?! to\b)"
)
_CONFIDENTIAL = (
    r"(?:passwords?|passphrases?|credentials?|(?:api|private|secret|access|encryption|ssh) keys?"
    r"|(?:access|api|auth) tokens?|secrets|seed phrases?|card numbers?|system prompts?"
    r"|environment variables|\S{0,20}\.env)\b"
    r"(?! (?:fields?|resets?|pages?|polic(?:y|ies)|managers?|hash(?:es)?|forms?|box|inputs?|rules?"
    r"|rotation|settings?|strength|length))"
)
_REPLIES = r"(?:answers?|repl(?:y|ies)|responses?|messages?|outputs?|comments?)\b"
_PUT = (
    r"(?:end|begin|start|finish|close|open|sign|append|include|add|put|insert|embed|attach|mention"
    r"|write|repeat|print|say|state|show|quote|place|hide)"
)
_WHOSE = r"(?:the|your|my|his|her|our|all|any|every|each)(?: (?:\w{1,20}(?:'s)?)){0,3}?"
_HAND_OVER = (
    r"(?:reveal|disclose|leak|divulge|expose|recite|dump|hand over|give (?:out|away|me|us)"
    r"|tell (?:me|us|everyone|anyone|anybody)|send (?:me|us))"
)

DEEDS = orders(
    Kind.BEGINS,
    rf"{_RUN}\b[^.!?\n]{{0,60}}?(?:{_PIPED}|{_NESTED})",
    rf"{_SEND}\b[^.!?\n]{{0,20}}?\b{_MINE}\b[^!?\n]{{0,80}}? to {_AWAY}",
    rf"{_WHEN} {_ANSWERING}[^.!?\n]{{0,40}}?\b{_SEND}\b",
    rf"{_WHEN} {_ANSWERING}[^.!?\n]{{0,40}}?\b{_PUT}\b[^.!?\n]{{0,40}}?(?<![\w.]){_CONFIDENTIAL}",
    rf"(?:download|fetch|get|grab|load) [^!?\n]{{0,40}}?{_AWAY}\S{{0,200}},? (?:and|then)(?: then)?"
    rf" (?:run|execute|source|install|open)\b",
    rf"(?:{_SEND}|fetch|call|request|ping|make (?:an? )?(?:\w{{1,8}} )?requests?)\b"
    rf"[^!?\n]{{0,80}}?{_AWAY}\S{{0,200}}[^!?\n]{{0,80}}? {_WHEN} {_ANSWERING}",
    rf"{_PUT}\b[^.!?\n]{{0,60}}?(?<![\w.]){_CONFIDENTIAL}[^.!?\n]{{0,40}}?"
    rf" (?:your|its|each|every|all|any) (?:\w{{1,12}} ){{0,2}}?{_REPLIES}",
    rf"{_PUT} (?:your|its|each|every|all|any|the) (?:\w{{1,12}} ){{0,2}}?{_REPLIES}"
    rf" (?:with|by|using)\b[^.!?\n]{{0,40}}? {_CONFIDENTIAL}",
    rf"{_HAND_OVER} (?:{_WHOSE} )?{_CONFIDENTIAL}",
    r"(?:print|output|repeat|show|display|write|say|quote) (?:out )?(?:the|your) (?:\w{1,12}"
    r" ){0,2}?(?:system|hidden|initial) (?:prompts?|instructions?)",
)
