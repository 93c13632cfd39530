"""Descriptions of programs: their subcommands, and the arguments that only select, filter or format what they show."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sayso.core.policy.functions.shell.quoting import Word

_NUMBERED = re.compile(r"(-[A-Za-z]?)[0-9]+[%A-Za-z]?")
_BUNDLE = re.compile(r"-([A-Za-z0-9]+)")


@dataclass(frozen=True)
class Harmless:
    """The harmless options of a subcommand, and how many other words it takes.

    An option that ends with `*` may have its value in the same word, one with `#` a number. `refused` is a pattern of
    options and, with `refuses_words`, of words that are not harmless. The next word is the value of a `valued` option.
    With `ends_options`, words behind `--` are no options.
    """

    options: frozenset[str]
    most_words: int = 1_000
    refused: re.Pattern[str] | None = None
    refuses_words: bool = True
    valued: frozenset[str] = frozenset()
    ends_options: bool = True
    words: Callable[[str, int], bool] | None = None
    """Whether a word is harmless at its place, which begins with 1."""
    bundles: bool = True

    def knows(self, option: str) -> bool:
        if self.refused is not None and self.refused.search(option):
            return False
        name = option.partition("=")[0] if option.startswith("--") else option
        if name in self.options:
            return True
        numbered = _NUMBERED.fullmatch(option)
        if numbered is not None and f"{numbered[1]}#" in self.options:
            return True
        if not option.startswith("--") and f"{option[:2]}*" in self.options:
            return True
        bundle = _BUNDLE.fullmatch(option)
        return self.bundles and bundle is not None and all(f"-{letter}" in self.options for letter in bundle[1])

    def takes(self, word: Word, place: int) -> bool:
        if place > self.most_words:
            return False
        refused = self.refused if self.refuses_words else None
        if word.text is None:
            return refused is None and self.words is None
        return (refused is None or not refused.search(word.text)) and (not self.words or self.words(word.text, place))


def harmless(options: str, most_words: int = 1_000, refused: str = "", *, ends_options: bool = True) -> Harmless:
    """Return the harmless arguments whose options stand in a text."""
    pattern = re.compile(refused, re.IGNORECASE) if refused else None
    return Harmless(frozenset(options.split()), most_words, pattern, ends_options=ends_options)


@dataclass(frozen=True)
class Tool:
    """A program with subcommands. Options before them are `flags`, or `valued` with a value; others are refused.

    A `valued` option that is no flag is noted, and one of `settings` has a value that a pattern limits. `groups` are
    the subcommands with a second part, such as `docker compose`; `every` says that all have one.
    """

    flags: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    settings: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    subcommands: frozenset[str] = frozenset()
    groups: Mapping[str, "Tool"] = field(default_factory=dict)
    every: "Tool | None" = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    harmless: Mapping[str, Harmless] = field(default_factory=dict)
    common: Harmless | None = None
    word: re.Pattern[str] = re.compile(r"[a-z][a-z0-9-]*")


def words(*texts: str) -> frozenset[str]:
    """Return the words of texts."""
    return frozenset(word for text in texts for word in text.split())


GROUP = Tool()  # a subcommand with a second part, and no options between them
