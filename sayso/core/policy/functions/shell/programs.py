"""Commands of the shell itself, and programs that start others named in their arguments, such as `sudo rm`."""

import posixpath
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from sayso.core.policy.functions import Uncomputable
from sayso.core.policy.functions.shell.quoting import ANYTHING, Word, Words, fixed, split_executed

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
_COUNTS = re.compile(r"%[^A-Za-z%]*[hjlLtz]*n")  # a format that sets a variable to the number of signs
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


_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash"))
_UNREADABLE = frozenset(("su", "watch"))  # programs that run a text that Sayso does not read
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=", re.ASCII)


class _Wrapper(NamedTuple):
    """The options of a program that starts another: flags, options with a value, and how many words come before it."""

    flags: str = ""
    valued: str = ""
    before: int = 0
    assigns: bool = False


_WRAPPERS = {
    "sudo": _Wrapper("-n -E -H -k -S -b --non-interactive", "-u -g -p -C --user --group", assigns=True),
    "doas": _Wrapper("-n", "-u"),
    "env": _Wrapper("-i - --ignore-environment", "-u --unset", assigns=True),
    "nohup": _Wrapper(),
    "setsid": _Wrapper("-f -w -c --fork --wait --ctty"),
    "time": _Wrapper("-p -v"),
    "nice": _Wrapper("", "-n --adjustment"),
    "ionice": _Wrapper("-t", "-c -n"),
    "timeout": _Wrapper("--foreground --preserve-status -v", "-k -s --kill-after --signal", before=1),
    "stdbuf": _Wrapper("", "-i -o -e"),
    "command": _Wrapper("-p"),
    "exec": _Wrapper("-c -l", "-a"),
    "xargs": _Wrapper("-0 -r -t -p -x --null --no-run-if-empty", "-n -I -P -L -d -a -s -E --max-args --max-procs"),
    "chroot": _Wrapper(before=1),
    "busybox": _Wrapper(),
    "toybox": _Wrapper(),
    "flock": _Wrapper("-n -x -s -u", "-w -E", before=1),
}

_STARTERS = frozenset((*_WRAPPERS, *_SHELLS, *_UNREADABLE, *VARIABLES, "eval", "find", "trap"))


@dataclass
class Unwrapped:
    """What the arguments of a program start: commands as text, commands as words, and the next command."""

    scripts: list[str] = field(default_factory=list)
    others: list[Words] = field(default_factory=list)
    words: Words = field(default_factory=list)
    settings: list[tuple[str, Word | None]] = field(default_factory=list)
    """Variables that are set, with their values."""


def unwrap(name: str, args: Words) -> Unwrapped:
    """Return what a program starts by its arguments; raises `Uncomputable` if its text does not show that."""
    name = posixpath.basename(name)
    if name in _UNREADABLE:
        raise Uncomputable(f"what {name} does is not shown by its text")
    if name in _WRAPPERS:
        return _unwrap(name, _WRAPPERS[name], args)
    if name in _SHELLS:
        words = [fixed(name, word) for word in args]
        options = [word for word in words[:1] if word.startswith(("-", "+"))]
        if not options:
            return Unwrapped()
        if not re.fullmatch(r"-[eu]*c", options[0]) or len(words) < 2:
            raise Uncomputable(f"an option of {name} is not known")
        return Unwrapped(scripts=[words[1]])
    if name == "find":
        others, executed = split_executed(args)
        for word in others:
            if word.text is None and not re.match("[A-Za-z0-9./_~]", "" if word.splits else word.lead):
                raise Uncomputable("an argument of find is computed by the shell")
        return Unwrapped(others=[[_replace(word, "{}") for word in words] for words in executed])
    return _read_builtin(name, args) if name in BUILTINS else Unwrapped()


def _read_builtin(name: str, args: Words) -> Unwrapped:
    if name in VARIABLES:
        return Unwrapped(settings=list_settings(name, args))
    if name == "eval":
        return Unwrapped([" ".join(fixed(name, word) for word in args)])
    if name == "trap":
        return Unwrapped([fixed(name, word) for word in args[:1] if word.text not in ("-", "")])
    check_builtin(name, args)
    return Unwrapped()


def _unwrap(name: str, wrapper: _Wrapper, args: Words) -> Unwrapped:
    flags, valued = wrapper.flags.split(), wrapper.valued.split()
    if name == "command" and args and args[0].text in ("-v", "-V"):
        return Unwrapped()
    unwrapped, replaced = Unwrapped(), ""
    rest = [*args]
    while rest:
        setting = _ASSIGNMENT.match(rest[0].known)
        if wrapper.assigns and setting is not None and not rest[0].splits:
            text, end = rest[0].text, setting.end()
            assigned = Word(text[end:]) if text is not None else Word(None, rest[0].lead[end:])
            unwrapped.settings.append((setting[1], assigned))
            rest = rest[1:]
            continue
        word = fixed(name, rest[0])
        if word == "--":
            rest = rest[1:]
            break
        if not word.startswith("-"):
            break
        option, value, rest = _read_option(name, flags, valued, rest)
        if option in ("-u", "--unset") and name == "env":
            unwrapped.settings.append((value, None))
        replaced = value if option == "-I" else replaced
    unwrapped.words = rest[wrapper.before :]
    for argument in rest[: wrapper.before]:
        fixed(name, argument)
    if name == "xargs" and unwrapped.words:  # adds the words that it reads in place of a text, or at the end
        if posixpath.basename(fixed("xargs", unwrapped.words[0])) in _STARTERS:
            raise Uncomputable("xargs adds arguments to a program that starts others")
        words = unwrapped.words
        unwrapped.words = [_replace(word, replaced) for word in words] if replaced else [*words, ANYTHING]
    return unwrapped


def _read_option(name: str, flags: list[str], valued: list[str], rest: Words) -> tuple[str, str, Words]:
    """Return an option, its value and the words behind it: `-n 10`, `-n10` and `--max-args=10` are alike."""
    word = fixed(name, rest[0])
    if word in flags:
        return word, "", rest[1:]
    if word in valued:
        if len(rest) == 1:
            raise Uncomputable(f"an option of {name} has no value")
        return word, fixed(name, rest[1]), rest[2:]
    long, sign, value = word.partition("=")
    if long.startswith("--") and sign and long in valued:
        return long, value, rest[1:]
    if not word.startswith("--") and word[:2] in valued:
        return word[:2], word[2:], rest[1:]
    raise Uncomputable(f"an option of {name} is not known")


def _replace(word: Word, replaced: str) -> Word:
    return Word(None, word.known.partition(replaced)[0], word.splits) if replaced in word.known else word
