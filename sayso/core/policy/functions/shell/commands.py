"""What a shell command runs: its programs and their subcommands, pipes and redirections.

The text is read as bash, and only syntax whose effect its text shows. Each call has an entry, such as `git log`,
and one more for each option or word that is not known as harmless, such as `git log --output`. So a rule that
allows `git log` alone does not allow that, and one that denies `git push` finds it.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.functions import Uncomputable, read_text
from sayso.core.policy.functions.shell.git import PLAIN, TOOLS
from sayso.core.policy.functions.shell.harmless import Harmless, Tool
from sayso.core.policy.functions.shell.programs import Unwrapped, unwrap
from sayso.core.policy.functions.shell.quoting import Word, Words, check_variable, split_executed
from sayso.core.policy.functions.shell.syntax import RESERVED, read_script

COMPUTED = "$"  # stands for a word that the shell computes and that may be an option


def name_calls(name: str, args: Words) -> list[str]:
    """Return the calls of a program; raises `Uncomputable` if its subcommand is not known."""
    bare = name.rpartition("/")[2]
    known = bare.lower().removesuffix(".exe")
    if known not in TOOLS and known not in PLAIN:
        return [name]
    if known != bare:
        raise Uncomputable(f"{name} may be another spelling of {known}")
    calls = [name] if name != bare else []
    if bare in TOOLS:
        return calls + _Finder(bare, TOOLS[bare], args).find()
    shown = split_executed(args)[0] if bare == "find" else args
    return [*calls, bare, *_list_doubtful(bare, PLAIN[bare], shown)]


class _Finder:
    """The reading of one call of a program with subcommands."""

    def __init__(self, name: str, tool: Tool, args: Words) -> None:
        self.name, self.tool, self.rest = name, tool, [*args]
        self.extra: list[str] = []

    def find(self) -> list[str]:
        texts = [word.text for word in self.rest]
        if not texts or (len(texts) == 1 and texts[0] in ("--version", "-v", "--help", "-h", "-version", "-help")):
            return [f"{self.name} version"]
        self._skip_options(self.name, self.tool)
        first = self._next(self.name)
        first = self.tool.aliases.get(first, first)
        call = f"{self.name} {first}"
        if self.tool.subcommands and first not in self.tool.subcommands:
            raise Uncomputable(f"{call} is not a subcommand that Sayso knows")
        call = self._find_second(call, first)
        harmless = self.tool.harmless.get(call.partition(" ")[2], self.tool.common)
        return [call, *self.extra, *_list_doubtful(call, harmless, self.rest)]

    def _find_second(self, call: str, first: str) -> str:
        """Return the call with its second part, such as `docker compose ps`, in the form without aliases."""
        options = self.tool.groups.get(first, self.tool.every)
        if options is None:
            return call
        self._skip_options(call, options)
        if not self.rest or self.rest[0].text == "--":
            return call
        both = f"{first} {self._next(call)}"
        return f"{self.name} {self.tool.aliases.get(both, both)}"

    def _skip_options(self, call: str, tool: Tool) -> None:
        """Skip the options before a subcommand, and note those that may do more."""
        while self.rest and (self.rest[0].text or "").startswith("-"):
            option, sign, _ = (self.rest[0].text or "").partition("=")
            is_valued = option in tool.valued
            if option in tool.settings:
                value = self.rest[1].text if len(self.rest) > 1 else None
                # None for -c=x, which has no value in the next word.
                pattern = tool.settings.get(self.rest[0].text or "")
                if value is None or pattern is None or not pattern.fullmatch(value):
                    raise Uncomputable(f"{call} sets an option that may run other programs")
            elif not is_valued and (option not in tool.flags or sign):
                raise Uncomputable(f"{call} has an option before its subcommand that Sayso does not know")
            if is_valued and not sign and (len(self.rest) < 2 or self.rest[1].splits):
                raise Uncomputable(f"the value of an option of {call} is computed by the shell")
            if is_valued and option not in tool.flags:
                self.extra.append(f"{call} {option}")
            self.rest = self.rest[2 if is_valued and not sign else 1 :]

    def _next(self, call: str) -> str:
        text = self.rest[0].text if self.rest else None
        if text is None or not self.tool.word.fullmatch(text):
            raise Uncomputable(f"the subcommand of {call} is not one that Sayso knows")
        self.rest = self.rest[1:]
        return text


def _list_doubtful(call: str, harmless: Harmless | None, args: Words) -> Iterator[str]:
    """Yield an entry for each option and word that is not known as harmless."""
    is_behind = is_value = False
    positions = 0
    for word in args:
        if is_value and not word.splits:
            is_value = False
            continue
        is_value = harmless is not None and not is_behind and word.text in harmless.valued
        if word.text == "--" and not is_behind:
            is_behind = True
            if harmless is not None and not harmless.ends_options:
                yield f"{call} --"
            continue
        if word.may_be_option and not (is_behind and (harmless is None or harmless.ends_options)):
            if word.text is None:
                yield f"{call} {COMPUTED}"
            elif harmless is None or not harmless.knows(word.text):
                yield f"{call} {word.text.partition('=')[0]}"
            continue
        positions += 1
        if harmless is not None and not harmless.takes(word, positions):
            yield f"{call} {word.text if word.text is not None else COMPUTED}"


MOST_CHARS = 4_000
MOST_ENTRIES = 1_000  # the limit of words, of a list or of a text
MOST_NESTING = 16  # the limit of subshells, substitutions and loops within each other
MOST_DEPTH = 3  # the limit of commands in the text of commands, such as `sh -c "sh -c ls"`
_BIN = re.compile(r"/(?:usr/(?:local/)?)?s?bin/([^/]+)")
_NAME = re.compile(r"[A-Za-z0-9_./+@%:,~^-]+|\[")
_SOCKET = re.compile(r"/dev/(?:tcp|udp)/")


@dataclass
class Findings:
    """What runs: programs and their subcommands, each command with its words, and the files of redirections."""

    programs: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    commands: list[tuple[str, Words]] = field(default_factory=list)
    pipes: int = 0
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    substitutes: bool = False
    started: int = 0


def read_shell(value: JsonValue) -> JsonObject:
    """Return what a command runs: a text for bash, or a list of the program and its arguments, without a shell."""
    findings = find_commands(value)
    return {
        "programs": [*dict.fromkeys(findings.programs)],
        "calls": [*dict.fromkeys(findings.calls)],
        "lines": [*dict.fromkeys(" ".join((name, *map(_show, args))) for name, args in findings.commands)],
        "commands": findings.started,
        "pipes": findings.pipes,
        "reads_files": [*dict.fromkeys(findings.reads)],
        "writes_files": [*dict.fromkeys(findings.writes)],
        "substitutes": findings.substitutes,
    }


def _show(word: Word) -> str:
    """Return the text of a word; a computed one has what is known of it, and a sign."""
    return word.text if word.text is not None else f"{word.known}{COMPUTED}"


def find_commands(value: JsonValue) -> Findings:
    """Return what a command runs, with the words of each command; raises `Uncomputable`."""
    findings = Findings()
    if isinstance(value, list):
        words = [Word(read_text(text, MOST_CHARS)) for text in value[: MOST_ENTRIES + 1]]
        if not 0 < len(words) <= MOST_ENTRIES:
            raise Uncomputable(f"a list of words has at least one and at most {MOST_ENTRIES}")
        _add_program(words, findings, 0)
    else:
        _read(read_text(value, MOST_CHARS), findings, 0)
    if not findings.programs:
        raise Uncomputable("it has no command")
    return findings


def _read(text: str, findings: Findings, depth: int) -> None:
    if depth > MOST_DEPTH:
        raise Uncomputable("it has commands within commands within commands")
    script = read_script(text, MOST_ENTRIES, MOST_NESTING)
    for command in script.commands:
        for name, value in command.settings:
            check_variable(name, value)
        if command.words:
            _add_program(command.words, findings, depth)
    for words, files in ((script.reads, findings.reads), (script.writes, findings.writes)):
        for word in words:
            if not word.text:
                raise Uncomputable("the name of a file is computed by the shell, or the redirection is unusual")
            if _SOCKET.match(word.text):
                raise Uncomputable("the shell opens a network connection for the redirection")
            if word.text != "/dev/null":
                files.append(word.text)
                findings.calls += [f"> {word.text}"] if files is findings.writes else []
    findings.pipes += script.pipes
    findings.substitutes = findings.substitutes or script.substitutes


def _add_program(words: Words, findings: Findings, depth: int) -> None:
    findings.started += 1
    while words:
        name, args = _name_program(words[0]), words[1:]
        findings.programs.append(name)
        findings.calls += name_calls(name, args)
        findings.commands.append((name, args))
        unwrapped: Unwrapped = unwrap(name, args)
        for text in unwrapped.scripts:
            _read(text, findings, depth + 1)
        for inner in unwrapped.others:
            _add_program(inner, findings, depth)
        for variable, value in unwrapped.settings:
            check_variable(variable, value)
        words = unwrapped.words


def _name_program(word: Word) -> str:
    """Return the name of a program in a usual folder, or the whole path of another one."""
    text = word.text
    if not text or text.startswith("-") or text in RESERVED or not _NAME.fullmatch(text):
        raise Uncomputable("the name of a program is computed by the shell")
    if "/" not in text:
        return text
    path = posixpath.normpath(text) if text.startswith("/") else text
    usual = _BIN.fullmatch(path)
    return usual[1] if usual else path
