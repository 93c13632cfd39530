"""Programs that start other programs named in their arguments, such as `sudo rm` and `sh -c "rm x"`."""

import posixpath
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from sayso.policy.words.faults import Uncomputable

_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash"))
_UNREADABLE = frozenset(
    (
        *("alias", "bind", "builtin", "compgen", "complete", "coproc", "enable", "fc", "getopts", "hash", "let"),
        *("mapfile", "readarray", "set", "shopt", "source", "su", "watch", "."),
    )
)
"""Commands of the shell that run other text, or change what names mean."""

_VARIABLES = {
    **dict.fromkeys(("declare", "export", "local", "readonly", "typeset"), ("-g", "-p", "-r", "-x")),
    "read": ("-r", "-s"),
    "unset": ("-v",),
}
"""Commands of the shell that set variables named in their arguments, with their options that are read."""

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)

Words = list[str | None]
"""The words of a command; None for one that the shell computes."""


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


@dataclass
class Unwrapped:
    """What the arguments of a program start: commands as text, commands as words, and the next command."""

    scripts: list[str] = field(default_factory=list)
    others: list[Words] = field(default_factory=list)
    words: Words = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    """Names of variables that are set, perhaps with their values."""


def unwrap(name: str, args: Words) -> Unwrapped:
    """Return what a program starts by its arguments; raises `Uncomputable` if its text does not show that."""
    name = posixpath.basename(name)
    sets_variables = name in ("printf", "test", "wait") and (args[:1] == [None] or bool({"-v", "-p"} & {*args}))
    if name in _UNREADABLE or sets_variables:
        raise Uncomputable(f"what {name} does is not shown by its text")
    if name in _WRAPPERS:
        return _unwrap(name, _WRAPPERS[name], args)
    if name in _SHELLS:
        return _read_shell(name, args)
    if name in _VARIABLES:
        return Unwrapped(settings=_list_settings(name, args))
    others = _list_executed(args) if name == "find" else []
    scripts = [" ".join(_fixed(name, one) for one in args)] if name == "eval" else []
    scripts += [_fixed(name, one) for one in args[:1] if one not in ("-", "")] if name == "trap" else []
    return Unwrapped(scripts, others)


def _list_settings(name: str, args: Words) -> list[str]:
    words = [_fixed(name, one) for one in args]
    if any(one.startswith(("-", "+")) and one not in _VARIABLES[name] for one in words):
        raise Uncomputable(f"an option of {name} is not known")
    return words


def _unwrap(name: str, wrapper: _Wrapper, args: Words) -> Unwrapped:
    flags, valued = wrapper.flags.split(), wrapper.valued.split()
    if name == "command" and args[:1] in (["-v"], ["-V"]):
        return Unwrapped()
    found = Unwrapped()
    left = [*args]
    while left:
        word = _fixed(name, left[0])
        if word in flags:
            left = left[1:]
        elif word in valued:
            left = left[2:]
        elif word == "--":
            left = left[1:]
            break
        elif word.startswith("-") and not _joins_value(word, valued):
            raise Uncomputable(f"an option of {name} is not known")
        elif word.startswith("-"):
            left = left[1:]
        elif wrapper.assigns and _ASSIGNMENT.fullmatch(word):
            found.settings.append(word)
            left = left[1:]
        else:
            break
    found.words = left[wrapper.before :]
    if name == "xargs" and found.words and _starts_others(_fixed(name, found.words[0])):
        raise Uncomputable("xargs adds arguments to a program that starts others")
    return found


def _starts_others(program: str) -> bool:
    return posixpath.basename(program) in {*_WRAPPERS, *_SHELLS, *_UNREADABLE, "eval", "find", "trap"}


def _joins_value(word: str, valued: list[str]) -> bool:
    """Whether an option has its value in the same word, such as `-n10`, `-oL` or `--user=anna`."""
    return any(
        word.startswith(f"{one}=") if one.startswith("--") else word.startswith(one) and not word.startswith("--")
        for one in valued
    )


def _read_shell(name: str, args: Words) -> Unwrapped:
    words = [_fixed(name, one) for one in args]
    options = [one for one in words[:1] if one.startswith(("-", "+"))]
    if not options:
        return Unwrapped()
    if not re.fullmatch(r"-[eux]*c", options[0]) or len(words) < 2:
        raise Uncomputable(f"an option of {name} is not known")
    return Unwrapped(scripts=[words[1]])


def _list_executed(args: Words) -> list[Words]:
    """Return the commands after `-exec` and its like in the arguments of `find`."""
    found: list[Words] = []
    inside: Words | None = None
    for word in args:
        if inside is not None and word in (";", "+"):
            found.append(inside)
            inside = None
        elif inside is not None:
            inside.append(word)
        elif word in ("-exec", "-execdir", "-ok", "-okdir"):
            inside = []
        elif word is None:
            raise Uncomputable("an argument of find is computed by the shell")
    return [*found, inside] if inside else found


def _fixed(name: str, word: str | None) -> str:
    if word is None:
        raise Uncomputable(f"an argument of {name} is computed by the shell")
    return word
