"""Shell commands: one a line, with what deletes, writes, or gains rights marked and flagged.

Words are unquoted by `shlex`. What cannot be read, and what a command computes, is flagged rather than guessed.
"""

import re
import shlex
from dataclasses import dataclass, field

from sayso.core.rendering.http import mark_hosts
from sayso.core.rendering.views import MAX_PARSED_CHARS, SEVERE, Call, Flag, Mark, Place, Sketch, read_text, shorten
from sayso.core.text.language import _

_NAMES = ("command", "cmd", "commandline", "shellcommand", "bashcommand", "commands")
_SCRIPTS = ("script", "code", "input")
_WHERE = ("host", "hostname", "server", "user", "cwd", "workdir", "workingdirectory", "directory")
_SHELL_WORDS = frozenset(("shell", "bash", "sh", "zsh", "terminal", "powershell", "console"))

_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+|\\\n)
    |(?P<comment>\#[^\n]*)
    |(?P<redirect>[0-9]*(?:<<<|<<-?|<>|<&|<|>>|>\||>&|>)|&>>?)
    |(?P<operator>&&|\|\||\|&|;;|[;|&\n()])
    |(?P<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\\(?:.|\Z)|[^\s'"\\;&|<>()])+)
    |(?P<unread>.)""",
    re.VERBOSE | re.DOTALL,
)
_INNER = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "fish", "python", "python3", "perl", "ruby", "node", "php"))
_RUNNERS = frozenset(("env", "xargs", "nohup", "time", "exec", "command", "eval", "ssh", "find", "timeout", "nice"))
_RIGHTS = frozenset(("sudo", "doas", "su", "pkexec", "runas"))
_DELETES = frozenset(("rm", "rmdir", "shred", "dd", "mkfs", "wipefs", "unlink", "del", "remove-item", "-delete"))
_DEEPEST = 4


@dataclass
class _Reading:
    """What was found in a command."""

    marks: list[Mark] = field(default_factory=list)
    breaks: list[int] = field(default_factory=list)
    flags: dict[Flag, None] = field(default_factory=dict)

    def flag(self, sentence: str, label: str = "") -> None:
        self.flags[Flag(sentence, SEVERE, label or _("command unclear"))] = None


def render(call: Call) -> Sketch | None:
    """Return a command, or several; a list of words under one name is one command."""
    commands = call.find_texts(*_NAMES) or (call.find_texts(*_SCRIPTS) if call.tool_words & _SHELL_WORDS else [])
    if not commands:
        return None
    flags: dict[Flag, None] = {}
    body = []
    for leaf in commands:
        reading = read_command(read_text(leaf))
        flags |= reading.flags
        body.append(Place(leaf.path, "code", reading.marks, reading.breaks))
    texts = [read_text(leaf) for leaf in commands]
    listed = any(isinstance(value, list) for value in call.args.values()) and len(texts) > 1
    joined = shlex.join(texts) if listed else "; ".join(texts)
    if listed:
        flags |= read_command(joined).flags
    notable = [Place(leaf.path) for leaf in call.find_texts(*_WHERE)]
    return Sketch(_("Run %(command)s", command=shorten(joined, 100)), notable, body, tuple(flags))


def read_command(text: str, depth: int = 0) -> _Reading:
    """Return the marks, line breaks and flags of a command."""
    reading = _Reading()
    if len(text) > MAX_PARSED_CHARS or depth > _DEEPEST:
        reading.flag(_("The command is too long or too deeply nested to be checked. Read it in full."))
        return reading
    if depth == 0:
        reading.marks += mark_hosts(text)
    _Reader(reading, depth).read(text)
    return reading


class _Reader:
    """Reads one command after the other; `wrapped` is set after a command that runs its own arguments."""

    def __init__(self, reading: _Reading, depth: int) -> None:
        self.reading, self.depth = reading, depth
        self.at_start, self.wrapped, self.piped, self.target = True, False, False, ""

    def read(self, text: str) -> None:
        for token in _TOKEN.finditer(text):
            kind, value = token.lastgroup, token.group()
            if kind == "operator":
                self.reading.marks.append(Mark(*token.span(), "operator"))
                place = token.end()
                while place < len(text) and text[place] in " \t":
                    place += 1
                self.reading.breaks.append(place)
                self.at_start, self.wrapped, self.piped, self.target = True, False, value in ("|", "|&"), ""
            elif kind == "redirect":
                self.target = value
            elif kind == "word" and self.target:
                self._redirect(token)
            elif kind == "word":
                self._word(token)
            elif kind == "unread":
                self.reading.flag(_("The command has an open quote or escape, so it cannot be read for certain."))

    def _redirect(self, token: re.Match[str]) -> None:
        redirect, self.target = self.target, ""
        to = token.group()
        if ">" not in redirect or to == "/dev/null" or (redirect.endswith("&") and to in ("1", "2")):
            return
        self.reading.marks.append(Mark(*token.span(), "danger"))
        self.reading.flags[Flag(_("Writes to %(file)s.", file=shorten(to)))] = None

    def _word(self, token: re.Match[str]) -> None:
        value = token.group()
        if '"' in value:
            for inner in (match[1] or match[2] or "" for match in _INNER.finditer(value)):
                self.reading.flags |= read_command(inner, self.depth + 1).flags
        if self.at_start and _ASSIGNMENT.match(value):
            return
        bare = _unquote(value)
        if not (self.at_start or self.wrapped or value.startswith("`")):
            self.wrapped = bare in ("-exec", "-execdir", "-ok")
            return
        if self.wrapped and re.search(r"\s", bare):
            self.reading.flags |= read_command(bare, self.depth + 1).flags
        name = bare.rpartition("/")[2].strip("`").lower()
        if self._check(name) or self._is_computed(bare):
            self.reading.marks.append(Mark(*token.span(), "danger"))
        self.at_start = name in _RUNNERS | _RIGHTS

    def _check(self, name: str) -> bool:
        """Flag a command by its name; return whether it is dangerous."""
        self.wrapped |= name in _SHELLS | _RUNNERS | _RIGHTS
        if name in _RIGHTS:
            self.reading.flag(_("Runs with the rights of another user: %(command)s.", command=name), name)
        elif name in _DELETES or name.startswith("mkfs."):
            self.reading.flag(_("Deletes or overwrites data: %(command)s.", command=name), _("deletes data"))
        elif name in _SHELLS and self.piped:
            sentence = _("Pipes into %(command)s, which runs what it reads.", command=name)
            self.reading.flag(sentence, _("pipes into a shell"))
        else:
            return False
        return True

    def _is_computed(self, bare: str) -> bool:
        if not self.at_start or not bare.startswith("$") or bare == "$":
            return False
        self.reading.flag(_("Runs a command whose name is computed: %(command)s.", command=shorten(bare)))
        return True


def _unquote(word: str) -> str:
    try:
        return "".join(shlex.split(word))
    except ValueError:
        return word
