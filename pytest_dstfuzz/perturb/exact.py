"""Spans of a text whose exact letters matter: addresses, code, placeholders and quotations.

Patterns find the spans by their form alone. In doubt, a pattern matches: an unnecessary span only
prevents an edit, but a missing span may cause a false positive.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

#: The lock on text with an exact form, and the lock on quoted text, which may be a name.
EXACT: Final = "exact"
QUOTED: Final = "name"
#: Longest quotation, in characters.
_LONGEST: Final = 80
#: Words after an apostrophe that does not open a quotation.
_ELIDED: Final = r"(?:s|m|d|re|ve|ll|t|cause|cos|til|em|bout|tis|twas|n|ll)\b"
_QUOTATIONS: Final = (
    rf"'(?!{_ELIDED})(?=[^\s'])(?:[^'\n]|'(?=\w)){{1,{_LONGEST}}}?(?<=\S)'(?!\w)",
    rf"‘(?=\S)(?:[^‘’\n]|’(?=\w)){{1,{_LONGEST}}}?’(?!\w)",
    *(
        # A quotation may contain a line break, but no paragraph break.
        rf"{left}(?:[^{left}{right}\n]|\n(?!\n)){{1,{_LONGEST}}}{right}"
        for left, right in (
            *('""', "“”", "„“", "‚‘", "„”", "«»", "»«", "‹›", "「」", "『』", "《》"),
            *("＂＂", "＇＇", "””", "〝〞"),
        )
    ),
    rf"''[^'\n]{{1,{_LONGEST}}}''",
    rf"``[^`\n]{{1,{_LONGEST}}}?''",
)
_QUOTED: Final = re.compile("|".join(rf"(?<![\w'’]){one}" for one in _QUOTATIONS), re.IGNORECASE)
_QUOTE_MARKS: Final = frozenset("\"'‘“”„«»‹「『《`＂＇〝")

#: The arguments of a call. They may contain brackets, two levels deep.
_ROUND: Final = r"\((?:[^()\n]|\([^()\n]*\))*\)"
_CURLY: Final = r"\{(?:[^{}\n]|\{[^{}\n]*\})*\}"
_SQUARE: Final = r"\[(?:[^\[\]\n]|\[[^\[\]\n]*\])*\]"
_ITEM: Final = r"[\w.*]+(?:\([\w.*]*\))?"
_ITEMS: Final = rf"{_ITEM}(?:\s*,\s*{_ITEM})*"
_LITERAL: Final = r"""(?:'[^'\n]*'|"[^"\n]*"|\([^()\n]*\)|[^\s,;?!]+)"""
_TEST: Final = rf"[\w.]+\s*(?:=|<>|!=|<=|>=|<|>|\blike\b|\bin\b|\bis\b)\s*{_LITERAL}"
_CLAUSES: Final = (
    rf"(?:\s+(?:inner\s+|left\s+)?join\s+\w+(?:\s+on\s+{_TEST})?)*"
    rf"(?:\s+where\s+{_TEST}(?:\s+(?:and|or)\s+{_TEST})*)?"
    r"(?:\s+(?:group|order)\s+by\s+[\w.]+(?:\s*,\s*[\w.]+)*(?:\s+(?:asc|desc)\b)?)*"
    r"(?:\s+limit\s+\d+)?;?"
)
#: Operators that never occur between blanks in ordinary sentences.
_OPERATOR: Final = r"(?:===?|!==?|[-+*/:<>]?=|=>|->|<-|&&|\|\|?|<|>|::|>>|<<|\+|\*|\^)"
#: Shell commands whose names do not occur as words in requests.
_COMMANDS: Final = (
    "git|npm|npx|yarn|pnpm|pip3?|conda|docker|kubectl|sudo|apt-get|apt|brew|cargo|curl|wget|ssh|"
    "scp|chmod|chown|mkdir|rmdir|grep|sed|awk|python3?|pytest|javac|mvn|gradle|dotnet|terraform|"
    "helm|systemctl|ls|cd|rm|cp|mv"
)
#: Shell commands that are exact even without an argument.
_BARE_COMMANDS: Final = (
    "npm|npx|pnpm|kubectl|sudo|apt-get|wget|ssh|scp|chmod|chown|mkdir|rmdir|grep|awk|pytest|javac|"
    "mvn|systemctl|ls"
)
_ARGUMENT: Final = (
    r"(?!(?:and|or|to|in|on|for|with|please|then|but|is|was|does|do|did|it|that|which|so|from|"
    r"now|again|gives?|fails?|returns?|keeps?|works?|players?|cds?)\b)[^\s,;!?()]+"
)
#: Matches the start of a sentence after a full stop without a blank: a capital, or one of these
#: words.
_NEXT: Final = (
    r"(?!(?<=[a-z]\.)[A-Z][a-z'’ ]|(?:i|and|the|we|yes|thanks|thank|please|can|could|what|do|does|"
    r"also|that|this|my|you|how|where|when|ok|okay|but|or|for|a|an|just|i'm|there|are)\b)"
)
_SUFFIXES: Final = (
    "txt|md|pdf|docx?|xlsx?|csv|pptx?|png|jpe?g|gif|svg|mp[34]|wav|zip|gz|tar|py|js|ts|"
    "html?|css|json|xml|ya?ml|toml|ini|cfg|log|sh|exe|bat|sql|java|cpp|rs|go|rb|php|ipynb|"
    "rtf|odt|epub|mov|avi|key|pages|env|lock|conf"
)
_EXACT: Final = tuple(
    re.compile(pattern, flags)
    for pattern, flags in (
        # Code between backticks, and markdown.
        (r"```.*?(?:```|\Z)", re.DOTALL),
        (r"~~~.*?(?:~~~|\Z)", re.DOTALL),
        (r"``[^`\n]+``|`[^`\n]+`", 0),
        (r"(?<![\w*])(\*{1,3})(?=[^\s*])[^*\n]{1,200}?(?<=[^\s*])\1(?![\w*])", 0),
        (r"(?<!\w)(_{1,3})(?=[^\s_])[^\n]{1,200}?(?<=[^\s_])\1(?!\w)", 0),
        (r"~~(?=\S)[^~\n]{1,200}?~~|==(?=\S)[^=\n]{1,200}?(?<=\S)==", 0),
        (r"!?\[[^\[\]\n]*\]\([^()\n]*\)|!?\[[^\[\]\n]*\]\[[^\[\]\n]*\]", 0),
        (r"^[ \t]{0,3}(?:#{1,6}[ \t]|>|\||[-*+] \[[ xX]\]).*$", re.MULTILINE),
        # Placeholders and bracketed code.
        (r"\{\{.{0,200}?\}\}|\{%.{0,200}?%\}|<%.{0,200}?%>", 0),
        (rf"\$?{_CURLY}|\$\([^()\n]*\)", 0),
        (rf"[\w.]{{0,80}}{_SQUARE}", 0),
        (r"\(\([^()\n]{1,80}\)\)", 0),
        (r"</?[^\W\d][^<>\n]{0,80}>|<!--.*?-->|<\|[^|\n]*\|>", 0),
        (r"%(?:\w+%|\(\w+\)[a-z]|[sdifr]\b)", 0),
        (r"(?<![\w$])\$[^\W\d]\w*(?:[.:]\w+)*", 0),
        (r"(?<![\w:]):[a-z][\w+-]*:(?!\w)", re.IGNORECASE),
        # Addresses, account names and tags.
        (r"[a-z][a-z0-9+.-]{0,20}://\S*[^\s.,;:!?)\]}>'\"”’»]", re.IGNORECASE),
        (r"\bmailto:\S*\w|\bwww\.\S*[\w/]", re.IGNORECASE),
        (r"[\w.+%'’-]{1,80}@[\w.-]*\w", 0),
        (r"(?<![\w@])@\w[\w.-]*\w|(?<![\w@])@\w", 0),
        (
            r"(?<![\w.+-])[\w.+-]++ at [\w-]+(?: dot \w+)+\b",
            re.IGNORECASE,
        ),
        (
            r"(?<![\w-])[\w-]++(?: dot \w+)+(?: (?:slash|dash|hyphen|underscore) \w+)*\b",
            re.IGNORECASE,
        ),
        (r"(?<![\w#])#\w[\w-]*", 0),
        (r"\b[ru]/\w[\w-]*", 0),
        # Paths and file names.
        (r"(?<![\w/])(?:~|\.{1,2})?/(?=[\w.])[^\s,;!?\"'”)]*[\w/]", 0),
        (
            r"\b[a-z]:[\\/]\S*[^\s.,;!?]|(?<!\w)\\\\\S*\w|\S{0,80}\w\\\w\S*\w|\.\.?\\\S*\w",
            re.IGNORECASE,
        ),
        (r"(?<![\w./-])[\w.-]++/[\w.-]++(?:/[\w.-]++)+", 0),
        # A file name may contain a blank.
        (rf"(?<![\w./-])(?:\w+ )?(?:[\w-]+[./])*[\w-]+\.(?:{_SUFFIXES})\b", re.IGNORECASE),
        (r"(?<!\S)\.[a-z][\w.-]*\w", 0),
        # Media types, headers and TeX commands.
        (
            (
                r"\b(?:text|image|audio|video|application|multipart|font)/(?:html|plain|css|csv|json|"
                r"xml|javascript|png|jpe?g|gif|svg|webp|mp[34]|mpeg|wav|ogg|pdf|zip|form-data|"
                r"octet-stream|x-[\w-]+|vnd\.[\w.+-]+)\b(?:\+\w+)?|"
                r"\b[A-Z][a-z]+(?:-[A-Z][a-z]+)+: ?\S*\w"
            ),
            0,
        ),
        (r"(?<![\w\\])\\[a-z]+(?:\{[^{}\n]*\})*", re.IGNORECASE),
        # Names and statements in code.
        (r"\b(?=[^\W_])\w{1,80}_\w+\b|\b_+[^\W_]\w*\b", 0),
        (r"\b(?:[a-z]+[A-Z]|[A-Z][a-z0-9]+[A-Z])\w*\b", 0),
        (rf"(?<![\w.-])[^\W\d][\w-]*+(?:\.{_NEXT}[^\W\d]\w*+)++(?::\d+)?(?:/\S*[\w/])?", 0),
        (r"\b(?:localhost|\d+\.\d+\.\d+\.\d+)(?::\d+)?(?:/\S*[\w/])?", re.IGNORECASE),
        (
            (
                r"\b[A-Z]\w*(?:Error|Exception|Warning): [^.!?\n]{0,60}?"
                r"(?=[.!?\n]| every| when| at |$)"
            ),
            0,
        ),
        (rf"(?<![\w.])[^\W\d][\w.]*+{_ROUND}(?<!\(s\))", 0),
        (rf"\b(?:if|while|for|switch|catch|elif|until)\s*{_ROUND}\s*(?:{_CURLY})?", 0),
        (r"\bfor \w+(?:, ?\w+)? in [\w.]+(?:\([^()\n]*\))?\s*[:{]", re.IGNORECASE),
        (
            (
                rf"\b(?:if|while|elif|until|assert|return)\s[^\n:?.,;]{{0,60}}?\s?{_OPERATOR}\s?"
                r"[^\n:?,;]{1,60}[:{;]"
            ),
            0,
        ),
        (r"\b(?<![a-z]-)[a-z]+(?:-[a-z]+)*: ?[^;:.?!\n]{1,40};", 0),
        (r"\blambda\b[\w, ]{0,40}:\s*\S+(?:\s*[-+*/%]\s*\S+)*", 0),
        (r"\b(?:undefined|null|nullptr|NaN|NoneType|segfault)\b(?: \w+){0,4}", 0),
        (r"\b(?:def|class|function|func|fn)\s+\w+\s*(?:\([^()\n]*\))?\s*[:{]", 0),
        (rf"\b(?:import\s+[\w.]+\s+as\s+\w+|from\s+[\w.]+\s+import\s+{_ITEMS})", 0),
        (
            (
                r"\b(?:const|let|var|int|float|string|bool|public|private|static|void)\s+\w+\s*"
                r"[=;(][^\n?!]{0,80}?(?:;|$)"
            ),
            re.MULTILINE,
        ),
        (rf"[\w.\"'\])}}]{{1,80}}(?:\s*{_OPERATOR}\s*[\w.\"'\[({{-]+[\w.\"'\])}}]*)+", 0),
        (rf"(?<![\w-])(?:{_COMMANDS})(?:\s+{_ARGUMENT}){{1,6}}", 0),
        (rf"(?<![\w-])(?:{_BARE_COMMANDS})(?![\w-])", 0),
        (
            (
                r"(?:(?<![\w-])\w+\s+)?(?<!\S)(?:--[a-z][\w-]*|-[a-z]{1,3}(?![\w-]))"
                r"(?:=\S*[^\s.,;!?])?"
            ),
            re.IGNORECASE,
        ),
        (rf"\bselect\s+(?:distinct\s+)?(?:\*|{_ITEMS})\s+from\s+\w[\w.]*{_CLAUSES}", re.IGNORECASE),
        (rf"\bdelete\s+from\s+\w+{_CLAUSES}", re.IGNORECASE),
        (rf"\bupdate\s+\w+\s+set\s+{_TEST}(?:\s*,\s*{_TEST})*{_CLAUSES}", re.IGNORECASE),
        (r"\binsert\s+into\s+\w+\s*(?:\([^()\n]*\))?\s*(?:values\s*\([^()\n]*\))?", re.IGNORECASE),
        (
            r"\b(?:create|drop|alter|truncate)\s+(?:table|index|view|database)\s+[^\n.?!]{1,80}",
            re.IGNORECASE,
        ),
        # Names of programming languages: single letters with a sign.
        (r"(?<!\w)[a-z](?:\+\+|\+|#)(?!\w)", re.IGNORECASE),
    )
)
#: A text without any of these signs may contain only quotations, shell commands, SQL and spelled
#: addresses as exact spans.
_SIGNS: Final = re.compile(r"[^\s\w.,!?'’\"-]|_|\.\w|[a-z][A-Z]|\w\(|(?<!\S)-|\\")
_SPELLED: Final = re.compile(
    rf"\b(?:{_COMMANDS}|select|delete|update|insert|create|drop|alter|truncate|import|dot|lambda|undefined|null|nan|segfault)\b",
    re.IGNORECASE,
)


class ExactSpan(NamedTuple):
    """A span ``text[start:end]``. No edit may change or insert a character in it."""

    start: int
    end: int
    #: The lock, `EXACT` or `QUOTED`.
    reason: str


def exact_spans(text: str) -> list[ExactSpan]:
    """Return the spans of a text that are exact by their form. Overlapping spans are merged.

    >>> [(one.reason, "see a_b and x.txt now"[one.start : one.end])
    ...  for one in exact_spans("see a_b and x.txt now")]
    [('exact', 'a_b'), ('exact', 'x.txt')]
    """
    found: list[ExactSpan] = []
    if not _QUOTE_MARKS.isdisjoint(text):
        found += [ExactSpan(*match.span(), QUOTED) for match in _QUOTED.finditer(text)]
    if _SIGNS.search(text) or _SPELLED.search(text):
        for pattern in _EXACT:
            found += [ExactSpan(*match.span(), EXACT) for match in pattern.finditer(text)]
    merged: list[ExactSpan] = []
    for one in sorted(found):
        last = merged[-1] if merged else None
        if last is None or one.start >= last.end:
            merged.append(one)
        elif one.end > last.end or one.reason != last.reason:
            reason = last.reason if last.reason == one.reason else EXACT
            merged[-1] = ExactSpan(last.start, max(last.end, one.end), reason)
    return merged


class TextRange(Protocol):
    """A part of a text with a start and an end, such as a word, a hunk or a replacement."""

    @property
    def start(self) -> int:
        """Offset of the first character."""
        ...

    @property
    def end(self) -> int:
        """Offset after the last character."""
        ...


def breaks_exact(exact: Sequence[tuple[int, int]], changed: Sequence[TextRange]) -> bool:
    """Return whether an edit changed or inserted characters in one of the spans."""
    return any(hunk.start < end and start < hunk.end for hunk in changed for start, end in exact)
