"""What is said in a play, in a text to be written or in an example is nobody's word."""

import re

_LEAD = (
    r"[\W_]*(?:(?:please|pls|ok|okay|now|so|and|hey|hi|hello|also|then|kindly|can\syou|could\syou"
    r"|would\syou|will\syou|help\sme(?:\sto)?|i\s(?:want|need|would\slike|'d\slike)\syou\sto|i'd\slike"
    r"\syou\sto|let's|lets|let\sus|just|to|practice|for\sa\smoment)[\W_]+){0,4}"
)
_PLAY = (
    r"(?:pretend|picture\sthis|role-?\s?play(?:ing)?|act\s(?:as|like)|play\s(?:the"
    r"\s(?:role|part)|a\sgame)|take\son\sthe\srole|assume\sthe\srole"
    r"|in\sthis\s(?:story|game|scenario|scene|play)|scenario\b|thought\sexperiment|fiction(?:al)?\b"
    r"|you(?:\sare|'re)\s(?:now\s)?(?:an?\s(?!star|genius|life|angel|legend|hero|gem|great|good|big)"
    r"|the\s(?!best|one\b|only|greatest|expert)|my\s|(?-i:[A-Z][a-z]+))|from\snow\son\s(?:you(?:\sare|'re)))"
)
_SUPPOSE = re.compile(
    rf"{_LEAD}(?:imagine|suppose|hypothetically|for\sthe\ssake\sof|assume\s(?:that|i\b|you\b|i'm\b))",
    re.IGNORECASE,
)
_CHARACTER = (
    r"(?:my|the|our|your|his|her)\s(?:[\w'&-]+\s){0,3}?(?:character|persona|avatar|protagonist|hero"
    r"|heroine|narrator|villain|alter\sego)\b[^.!?\n]{0,60}(?::|\s[-\u2013\u2014]\s|\b(?:says?|is|starts)\b)"
)
_CHANGE = (
    r"(?:translate|proof-?read|rephrase|reword|paraphrase|summari[sz]e|(?:spell|grammar)-?check)\b"
)
_MEND = (
    r"(?:correct|rewrite|re-write|shorten|polish|improve|edit|check|simplify|analy[sz]e|classify|fix"
    r"|reformat|continue|complete|finish|explain|read|review)\b"
)
_WRITE = r"(?:write|tell|compose|generate|create|invent|make\sup|draft|give\sme|show\sme|sing)\b"
_SAY = (
    r"(?:say|repeat|use|answer|reply|respond|print|output|type|put|add|copy|send|post|read|greet|quote"
    r"|start|begin|record|spell|pronounce|insert|paste|return)\b"
)
_TEXT = (
    r"(?:text|sentences?|paragraphs?|e-?mails?|mails?|letters?|essay|message|draft|post|story|grammar"
    r"|spelling|bio|cv|passage|speech|review|reply|answer|tweet|translation|wording)\b"
)
_TALE = (
    r"(?:story|stories|poem|song|tale|novel|scene|dialogue|dialog|monologue|script|joke|haiku|limerick"
    r"|lyrics|rap|fable|diary|chapter|first\sperson|fan-?fic(?:tion)?|sketch|screenplay)\b"
)
_ME = r"(?=[\s\x22'\u201c\u2018*]*(?:i|i'm|i've|my|we|our|dear|hi|hello)\b)"
_WORLD = (
    r"in\s(?:the|my|this|our|a|an)\s(?:[\w'-]+\s){0,2}?(?:novel|story|tale|game|film|movie|play|dream"
    r"|campaign|comic|rpg|adventure|simulation)\b[^.!?\n]{0,40}\b(?:i|my|we)\b"
)
_OPENS = re.compile(
    rf"{_LEAD}(?:{_PLAY}|{_WORLD}|{_CHARACTER}"
    rf"|{_CHANGE}[^.!?\n]{{0,80}}?(?::|\b(?:this|these|following|below|i|i'm|my)\b)"
    rf"|{_MEND}[^.!?\n]{{0,60}}?(?::\s?{_ME}|:\s*\Z|\b(?:this|the|following|my)\s{_TEXT})"
    rf"|{_SAY}[^.!?\n]{{0,60}}?:\s?{_ME}"
    rf"|{_WRITE}[^.!?\n]{{0,100}}?(?:{_TALE}|:\s?{_ME}|{_TEXT}[^.!?\n]{{0,60}}:\s*\Z))",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    r"\b(?:examples?|samples?|test\s(?:data|case|user|input|set)|dummy|placeholder|lyrics|poem|haiku"
    r"|caption|slogan|template|script|dialogue|transcript|prompt|fixtures?|quotation|quote|excerpt|chorus"
    r"|mock|fake|fictional|sentences?|role-?play|plot|persona|backstory|user\sstor(?:y|ies))\b"
    rf"[^.!?\n]{{0,60}}?(?::\s|\s[-\u2013\u2014]+\s){_ME}",
    re.IGNORECASE,
)


def opens_a_frame(text: str) -> bool:
    """Whether what follows is played, given to be worked on, or an example.

    A supposition that is a question ends with it.
    """
    if _SUPPOSE.match(text):
        return not text.rstrip().endswith("?")
    return _OPENS.match(text) is not None or _GIVEN.search(text) is not None
