"""What a shell command runs: its programs and their subcommands, pipes and redirections.

The text is read as bash. Only syntax whose effect its text shows is read: functions, arithmetic, names of programs and
files that the shell computes, and variables that may change what a program does are refused.
"""

import posixpath
import re
from dataclasses import dataclass, field

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.policy.words.commands.calls import name_calls
from sayso.policy.words.commands.syntax import RESERVED, Command, Script, read_script
from sayso.policy.words.commands.words import Word, Words, check_variable
from sayso.policy.words.faults import Uncomputable, read_text
from sayso.policy.words.programs import Unwrapped, unwrap

MOST_CHARS = 4_000
MOST_ENTRIES = 1_000
"""The limit of words, of a list or of a text."""
MOST_NESTING = 16
"""The limit of subshells, substitutions and loops within each other."""
MOST_DEPTH = 3
"""The limit of commands in the text of commands, such as `sh -c "sh -c ls"`."""

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
        "commands": findings.started,
        "pipes": findings.pipes,
        "reads_files": [*dict.fromkeys(findings.reads)],
        "writes_files": [*dict.fromkeys(findings.writes)],
        "substitutes": findings.substitutes,
    }


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
        _add_command(command, findings, depth)
    _add_files(script, findings)
    findings.pipes += script.pipes
    findings.substitutes = findings.substitutes or script.substitutes


def _add_command(command: Command, findings: Findings, depth: int) -> None:
    for name, value in command.settings:
        check_variable(name, value)
    if command.words:
        _add_program(command.words, findings, depth)


def _add_program(words: Words, findings: Findings, depth: int) -> None:
    """Add the program of a command, and those that it starts by its arguments."""
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


def _add_files(script: Script, findings: Findings) -> None:
    for words, files in ((script.reads, findings.reads), (script.writes, findings.writes)):
        for word in words:
            if not word.text:
                raise Uncomputable("the name of a file is computed by the shell, or the redirection is unusual")
            if _SOCKET.match(word.text):
                raise Uncomputable("the shell opens a network connection for the redirection")
            if word.text != "/dev/null":
                files.append(word.text)
                findings.calls += [f"> {word.text}"] if files is findings.writes else []
