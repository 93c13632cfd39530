"""What the reader says about texts, compared with what shells do with them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sayso.core.policy.functions import Uncomputable
from sayso.core.policy.functions.shell.commands import Findings, find_commands
from sayso.core.policy.functions.shell.quoting import Word, Words
from tests.shells.sandbox import BASH, Ran, Sandbox

BATCH = 100


class Difference(NamedTuple):
    """A text that a shell reads otherwise than Sayso."""

    text: str
    shell: str
    problem: str


class Compared(NamedTuple):
    """The number of texts that Sayso reads, and those that a shell reads otherwise."""

    read: int
    differences: list[Difference]


def compare(texts: Sequence[str], sandbox: Sandbox, shells: Sequence[str]) -> Compared:
    """Run the texts that Sayso reads in each of the shells, and compare."""
    known = [(text, found) for text, found in ((one, read(one)) for one in texts) if found is not None]
    differences: list[Difference] = []
    for begin in range(0, len(known), BATCH):
        batch = known[begin : begin + BATCH]
        for shell in shells:
            for (text, found), ran in zip(batch, sandbox.run([one for one, _ in batch], shell), strict=True):
                differences += (Difference(text, shell, one) for one in _find_problems(found, ran, sandbox, shell))
    return Compared(len(known), differences)


def read(text: str) -> Findings | None:
    """Return what Sayso reads in a text, or None if it refuses it."""
    try:
        return find_commands(text)
    except Uncomputable:
        return None


def _find_problems(found: Findings, ran: Ran, sandbox: Sandbox, shell: str) -> Iterator[str]:
    for name, *args in ran.commands:
        if name not in found.programs:
            yield f"{name} ran, but is not one of {found.programs}"
        elif shell == BASH and not any(one == name and fits(words, args) for one, words in found.commands):
            yield f"{[name, *args]} ran, which no command shows"
    unknown = ran.files - {*found.writes}
    if unknown:
        yield f"{sorted(unknown)} changed, but only {found.writes} are shown"
    if ran.state is not None and ran.state != sandbox.state:
        yield f"the variables that steer programs changed to {ran.state!r}"


def fits(words: Words, args: Sequence[str]) -> bool:
    """Whether the arguments can be the values of the words."""
    if not words:
        return not args
    first, rest = words[0], words[1:]
    if first.text is not None:
        return args[:1] == [first.text] and fits(rest, args[1:])
    return any(_computes(first, args[:count]) and fits(rest, args[count:]) for count in range(len(args) + 1))


def _computes(word: Word, args: Sequence[str]) -> bool:
    if word.splits:
        return not args or args[0].startswith(word.lead)
    return all(one.startswith(word.lead) or word.lead.startswith("~") for one in args)
