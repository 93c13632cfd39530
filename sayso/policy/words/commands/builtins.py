"""Commands of the shell itself: those whose effect their text shows, and the variables that they set."""

import re

from sayso.policy.words.commands.words import Word, Words, fixed
from sayso.policy.words.faults import Uncomputable

VARIABLES = {
    **dict.fromkeys(("declare", "export", "local", "readonly", "typeset"), ("-g", "-p", "-r", "-x")),
    "read": ("-r", "-s"),
    "unset": ("-v",),
}
"""Commands that set variables named in their arguments, with their options that are read."""

_HARMLESS = frozenset(
    (
        *(":", "break", "cd", "continue", "dirs", "echo", "exit", "false", "kill", "popd", "pushd", "pwd", "return"),
        *("shift", "times", "true", "type", "ulimit", "umask"),
    )
)
BUILTINS = frozenset(
    (
        *_HARMLESS,
        *VARIABLES,
        *(".", "[", "alias", "bg", "bind", "builtin", "caller", "command", "compgen", "complete", "compopt", "coproc"),
        *("disown", "enable", "eval", "exec", "fc", "fg", "getopts", "hash", "help", "history", "jobs", "let"),
        *("logout", "mapfile", "printf", "readarray", "set", "shopt", "source", "suspend", "test", "trap", "unalias"),
        "wait",
    )
)

_SET = re.compile(r"-[eu]+|-[eu]*o|pipefail|errexit|nounset")
_COUNTS = re.compile(r"%[^A-Za-z%]*[hjlLtz]*n")
"""A format that sets a variable to the number of signs."""
_TESTS = frozenset(("-d", "-e", "-f", "-h", "-L", "-n", "-r", "-s", "-w", "-x", "-z"))
_COMPARES = frozenset(("=", "==", "!="))
_LITERAL_TEST = re.compile(r"!|[a-zA-Z0-9_./:@%+=~ -]*")


def check_builtin(name: str, args: Words) -> None:
    """Raise `Uncomputable` unless the text of a command shows what it does."""
    if name in _HARMLESS:
        return
    known = {
        "set": lambda: all(_SET.fullmatch(fixed(name, word)) for word in args) and bool(args),
        "wait": lambda: all(re.fullmatch("%?[0-9]+", fixed(name, word)) for word in args),
        "printf": lambda: bool(args) and not args[0].may_be_option and not _COUNTS.search(fixed(name, args[0])),
        "test": lambda: _is_plain_test(args),
        "[": lambda: bool(args) and args[-1].text == "]" and _is_plain_test(args[:-1]),
    }
    if name not in known or not known[name]():
        raise Uncomputable(f"what {name} does is not shown by its text")


def _is_plain_test(args: Words) -> bool:
    """Whether a test has no computed operator, and none that evaluates a text, such as `-v`."""
    texts = [word.text for word in args]
    if any(word.splits for word in args) or "-v" in texts or "-R" in texts:
        return False
    if None not in texts:
        return all(_LITERAL_TEST.fullmatch(text) for text in texts if text is not None)
    if texts[:1] == ["!"]:
        args, texts = args[1:], texts[1:]
    is_unary = len(args) == 2 and texts[0] in _TESTS
    return is_unary or (len(args) == 3 and texts[1] in _COMPARES)


def list_settings(name: str, args: Words) -> list[tuple[str, Word | None]]:
    """Return the variables that a command sets, with their values; raises `Uncomputable` for unknown options."""
    settings: list[tuple[str, Word | None]] = []
    for word in args:
        variable, sign, value = word.known.partition("=")
        if word.splits or (word.text is None and not sign):
            raise Uncomputable(f"an argument of {name} is computed by the shell")
        if word.known.startswith(("-", "+")):
            if word.known not in VARIABLES[name]:
                raise Uncomputable(f"an option of {name} is not known")
        elif sign:
            settings.append((variable, Word(None, value) if word.text is None else Word(value)))
        else:
            settings.append((variable, None))
    return settings
