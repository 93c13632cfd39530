"""The words of a shell text, as far as it shows them: quoting, expansions, here-documents, blanks and comments."""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple

from sayso.core.policy.functions import Uncomputable


class Word(NamedTuple):
    """A word of a command: its text, or None if the shell computes it.

    Each value of a computed word begins with `lead`, in which `~` stands for a folder. A word that `splits`
    may become several words of any text.
    """

    text: str | None
    lead: str = ""
    splits: bool = False

    @property
    def known(self) -> str:
        """What the text shows of the word: all of it, or how it begins."""
        return self.lead if self.text is None else self.text

    @property
    def may_be_option(self) -> bool:
        """Whether the program may read the word, or a part of it, as an option."""
        return self.splits or self.known.startswith("-") or (self.text is None and not self.lead)


ANYTHING = Word(None, splits=True)  # words that the text does not show, such as those that `xargs` adds
Words = list[Word]


def fixed(name: str, word: Word) -> str:
    """Return the text of a word; raises `Uncomputable` if the shell computes it."""
    if word.text is None:
        raise Uncomputable(f"an argument of {name} is computed by the shell")
    return word.text


def split_executed(args: Words) -> tuple[Words, list[Words]]:
    """Return the arguments of `find` itself, and the commands after `-exec` and its like."""
    own: Words = []
    executed: list[Words] = []
    is_inside = False
    for place, word in enumerate(args):
        if is_inside and (word.text == ";" or (word.text == "+" and args[place - 1].text == "{}")):
            is_inside = False
        elif is_inside:
            executed[-1].append(word)
        else:
            own.append(word)
            is_inside = word.text in ("-exec", "-execdir", "-ok", "-okdir")
            if is_inside:
                executed.append([])
    return own, [command for command in executed if command]


_NAMES = frozenset(
    (
        *("CI", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "NO_COLOR", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"),
        *("PYTHONUNBUFFERED", "RUST_BACKTRACE", "DEBIAN_FRONTEND", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS"),
        *("count", "dir", "file", "files", "item", "line", "name", "out", "pattern", "result", "total", "word"),
    )
)
"""Variables whose value changes no program that runs; one letter is such a name, too."""

_LOCALES = frozenset(("LANG", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME"))
_VALUES = {
    **dict.fromkeys(_LOCALES, re.compile(r"C|POSIX|(?:C|[a-z]{2}_[A-Z]{2})\.(?:UTF-8|utf8)")),
    "GIT_PAGER": re.compile("(?:cat)?"),
    "AWS_PAGER": re.compile(""),
    "TERM": re.compile("dumb|xterm|xterm-256color|"),
    "TZ": re.compile("UTC|[A-Z][A-Za-z_]+/[A-Z][A-Za-z_]+"),
}
"""Variables that are harmless with these values alone."""

_DELAYED = frozenset("$`[]")  # signs of a text that bash may evaluate later, such as `a[$(ls)]`


def check_variable(name: str, value: Word | None = None) -> None:
    """Raise `Uncomputable` unless setting the variable, to a value that is None if it is read or unset, is harmless."""
    limits = _VALUES.get(name)
    if limits is not None and value is not None and value.text is not None and limits.fullmatch(value.text):
        return
    if name not in _NAMES and not re.fullmatch("[A-Za-z]", name):
        shown = name if name.isascii() and name.isidentifier() else "a variable"
        raise Uncomputable(f"it sets {shown}, which may change what the programs do")
    if value is not None and not _DELAYED.isdisjoint(value.known):
        raise Uncomputable("it has a text that the shell may evaluate, such as a[$(ls)]")


UNKNOWN = "it is not a shell command that Sayso can read"

_META = frozenset(" \t\n|&;<>()")
_PLAIN = re.compile(r"[^\s|&;<>()$`'\"\\*?\[\]{}~,.]+")
_QUOTED = re.compile(r'[^"\\$`]+')
_VALUE = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+)\}|[0-9?#$!@*-])")
_ANSI = re.compile(r"\$'((?:[^'\\]|\\[nt\\])*)'")
_DOLLAR = re.compile(r"""\$(?=[ \t\n|;&)<>"/.,:]|\Z)""")
_REDIRECT = re.compile(r"[0-9]?[<>](?!\()|&>")
_NUMBERED = re.compile(r"[0-9]{2,}[<>]")


class Document(NamedTuple):
    """A here-document that begins on the next line."""

    delimiter: str
    strips: bool
    is_literal: bool


@dataclass
class _Draft:
    """A word that is being read."""

    text: list[str] = field(default_factory=list)
    lead: str | None = None
    splits: bool = False
    brace: str | None = None
    """The text before the first brace."""
    has_choices: bool = False

    def compute(self, *, splits: bool) -> None:
        """Note that the shell computes the rest of the word."""
        if self.lead is None:
            self.lead = "".join(self.text)
        self.splits = self.splits or splits

    def finish(self) -> Word:
        if self.brace is not None and self.has_choices:
            self.lead = self.brace if self.lead is None or len(self.brace) < len(self.lead) else self.lead
        return Word("".join(self.text)) if self.lead is None else Word(None, self.lead, self.splits)


class WordReader(ABC):
    """A place in a text, and what reads words there."""

    def __init__(self, text: str, most_words: int, most_nesting: int) -> None:
        self.text, self.place = text, 0
        self.words_left, self.most_nesting = most_words, most_nesting
        self.nesting = self.substitution_depth = 0
        self.pending: list[Document] = []

    @abstractmethod
    def read_substitution(self) -> None:
        """Read the commands up to the closing bracket."""

    @abstractmethod
    def read_quoted_script(self, text: str) -> None:
        """Read the commands between backticks."""

    def descend(self) -> None:
        """Enter a list within another; raises `Uncomputable` beyond the limit."""
        self.nesting += 1
        if self.nesting > self.most_nesting:
            raise Uncomputable(f"it is nested more than {self.most_nesting} deep")

    def peek(self, size: int = 1) -> str:
        return self.text[self.place : self.place + size]

    def sees(self, sign: str) -> bool:
        return self.text.startswith(sign, self.place)

    def sees_word(self) -> bool:
        sign = self.peek()
        return self.peek(2) in ("<(", ">(") or (sign != "" and sign not in _META)

    def sees_redirect(self) -> bool:
        """Whether a redirection begins here, perhaps with the number of a file."""
        if _NUMBERED.match(self.text, self.place):
            raise Uncomputable("a redirection has a number of more than one digit")
        return _REDIRECT.match(self.text, self.place) is not None

    def skip_blanks(self) -> None:
        """Skip blanks, a comment, and line ends that a backslash joins."""
        begin = self.place
        while True:
            sign = self.peek()
            if sign and sign in " \t":
                self.place += 1
            elif sign == "\\" and self.peek(2) == "\\\n":
                if self.pending or self.text[self.place - 1 : self.place] not in (" ", "\t"):
                    raise Uncomputable("it joins the parts of a word over the end of a line")
                self.place += 2
            elif sign == "#" and (self.place > begin or self.place == 0 or self.text[self.place - 1] in _META):
                if self.substitution_depth:
                    raise Uncomputable("a comment within a substitution is not one that Sayso can read")
                end = self.text.find("\n", self.place)
                self.place = len(self.text) if end < 0 else end
                return
            else:
                return

    def skip_lines(self) -> None:
        """Skip blanks, comments and ends of lines, with the here-documents that begin there."""
        while True:
            self.skip_blanks()
            if self.peek() != "\n":
                return
            self.place += 1
            documents, self.pending = self.pending, []
            for document in documents:
                self._skip_document(document)

    def _skip_document(self, document: Document) -> None:
        while self.place < len(self.text):
            end = self.text.find("\n", self.place)
            line = self.text[self.place : end if end >= 0 else len(self.text)]
            self.place += len(line) + (end >= 0)
            bare = line.lstrip("\t")
            if (bare if document.strips else line) == document.delimiter:
                return
            if bare.startswith(document.delimiter):
                raise Uncomputable("a line of a here-document begins like its last one")
            if not document.is_literal and any(sign in line for sign in "$`\\"):
                raise Uncomputable("the shell computes a part of a here-document")
        raise Uncomputable("a here-document is not closed")

    def read_word(self) -> Word:
        self.words_left -= 1
        if self.words_left < 0:
            raise Uncomputable("it has too many words")
        begin, has_pending, draft = self.place, bool(self.pending), _Draft()
        if self.peek(2) in ("<(", ">("):
            self.place += 2
            self.read_substitution()
            draft.compute(splits=False)
        while self.place < len(self.text) and self.text[self.place] not in _META:
            self._read_part(draft)
        if self.place == begin or self.peek() == "(" or self.peek(2) in ("<(", ">("):
            raise Uncomputable(UNKNOWN)
        if draft.brace is not None and self.peek() in ("<", ">"):
            raise Uncomputable("a name in braces stands beside a redirection, which sets a variable")
        if has_pending and "\n" in self.text[begin : self.place]:
            raise Uncomputable("a word goes over the line on which a here-document begins")
        return draft.finish()

    def _read_part(self, draft: _Draft) -> None:
        sign = self.text[self.place]
        plain = _PLAIN.match(self.text, self.place)
        if plain is not None:
            draft.text.append(plain[0])
            self.place = plain.end()
        elif sign == "'":
            draft.text.append(self._read_until("'"))
        elif sign == '"':
            self._read_double(draft)
        elif sign == "\\":
            if self.peek(2) in ("\\", "\\\n"):
                raise Uncomputable("it joins the parts of a word over the end of a line")
            draft.text.append(self.text[self.place + 1])
            self.place += 2
        elif sign == "$":
            self._read_dollar(draft, is_quoted=False)
        elif sign == "`":
            self._read_backtick(is_quoted=False)
            draft.compute(splits=True)
        elif sign in _UNQUOTED:
            self._read_pattern(sign, draft)
        else:
            raise Uncomputable(f"it has the sign U+{ord(sign):04X}, which Sayso does not read there")

    def _read_pattern(self, sign: str, draft: _Draft) -> None:
        before = "".join(draft.text[-1:])[-1:]
        is_alone = not draft.text and draft.lead is None and self.text[self.place + 1 : self.place + 2] in {"", *_META}
        if sign in "*?[" and not (sign == "[" and is_alone):
            draft.compute(splits=False)
        elif sign == "~" and not draft.text and draft.lead is None:
            draft.lead = sign
        elif sign == "~" and before in ("=", ":"):
            draft.compute(splits=False)
        elif sign == "{" and draft.brace is None:
            draft.brace = "".join(draft.text)
        elif sign == "," or (sign == "." and before == "."):
            draft.has_choices = draft.brace is not None or draft.has_choices
        draft.text.append(sign)
        self.place += 1

    def _read_until(self, quote: str) -> str:
        end = self.text.find(quote, self.place + 1)
        if end < 0:
            raise Uncomputable("a quote is not closed")
        inner = self.text[self.place + 1 : end]
        self.place = end + 1
        return inner

    def _read_double(self, draft: _Draft) -> None:
        self.place += 1
        while True:
            quoted = _QUOTED.match(self.text, self.place)
            if quoted is not None:
                draft.text.append(quoted[0])
                self.place = quoted.end()
            sign = self.peek()
            if sign == '"':
                self.place += 1
                return
            if sign == "\\":
                escaped = self.text[self.place + 1 : self.place + 2]
                draft.text.append("" if escaped == "\n" else escaped if escaped in '$`"\\' else f"\\{escaped}")
                self.place += 2
            elif sign == "$":
                self._read_dollar(draft, is_quoted=True)
            elif sign == "`":
                self._read_backtick(is_quoted=True)
                draft.compute(splits=False)
            else:
                raise Uncomputable("a quote is not closed")

    def _read_dollar(self, draft: _Draft, *, is_quoted: bool) -> None:
        value = _VALUE.match(self.text, self.place)
        ansi = _ANSI.match(self.text, self.place) if not is_quoted else None
        if self.sees("$(") and not self.sees("$(("):
            self.place += 2
            self.read_substitution()
            draft.compute(splits=not is_quoted)
        elif value is not None:
            self.place = value.end()
            draft.compute(splits=not is_quoted or value[0] in ("$@", "$*"))
        elif ansi is not None:
            self.place = ansi.end()
            draft.compute(splits=False)
        elif _DOLLAR.match(self.text, self.place) and (is_quoted or not self.sees('$"')):
            draft.text.append("$")
            self.place += 1
        else:
            raise Uncomputable("it uses an expansion whose effect its text does not show")

    def _read_backtick(self, *, is_quoted: bool) -> None:
        inner = self._read_until("`")
        if "\\" in inner or "<<" in inner or (is_quoted and ("'" in inner or '"' in inner)):
            raise Uncomputable("it has a quote or a here-document between backticks; use $(…)")
        self.read_quoted_script(inner)


_UNQUOTED = frozenset("*?[]{}~,.")
