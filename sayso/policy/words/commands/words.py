"""The words of a command, as far as its text shows them."""

import re
from typing import NamedTuple

from sayso.policy.words.faults import Uncomputable


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


ANYTHING = Word(None, splits=True)
"""Words that the text does not show, such as those that `xargs` adds."""

Words = list[Word]


def fixed(name: str, word: Word) -> str:
    """Return the text of a word; raises `Uncomputable` if the shell computes it."""
    if word.text is None:
        raise Uncomputable(f"an argument of {name} is computed by the shell")
    return word.text


_EXECUTES = ("-exec", "-execdir", "-ok", "-okdir")


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
            is_inside = word.text in _EXECUTES
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

_DELAYED = frozenset("$`[]")
"""Signs of a text that bash may evaluate later, such as `a[$(ls)]`."""


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
