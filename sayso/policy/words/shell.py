"""What a shell command runs: its programs, pipes and redirections.

The parser is tree-sitter with its grammar of bash. Only syntax whose effect its text shows is read: functions,
arithmetic, here-documents, and names of programs and files that the shell computes are refused.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.policy.words.faults import Uncomputable, read_text
from sayso.policy.words.programs import Unwrapped, unwrap

MOST_CHARS = 4_000
MOST_ENTRIES = 1_000
MOST_DEPTH = 3
"""The limit of commands in the text of commands, such as `sh -c "sh -c ls"`."""

_KNOWN = frozenset(
    (
        *("program", "command", "command_name", "word", "number", "string", "string_content", "raw_string"),
        *("concatenation", "simple_expansion", "expansion", "variable_name", "special_variable_name"),
        *("command_substitution", "process_substitution", "pipeline", "list", "redirected_statement"),
        *("file_redirect", "file_descriptor", "subshell", "compound_statement", "negated_command", "comment"),
        *("variable_assignment", "variable_assignments", "declaration_command", "unset_command"),
        *("if_statement", "elif_clause", "else_clause", "for_statement", "while_statement", "do_group"),
        *("case_statement", "case_item"),
    )
)
_BIN = re.compile(r"/(?:usr/(?:local/)?)?s?bin/([^/]+)")
_SOCKET = re.compile(r"/dev/(?:tcp|udp)/")
_REDIRECTS = {">": "writes", ">>": "writes", "&>": "writes", "&>>": "writes", ">|": "writes", "<": "reads"}
_STEERING = re.compile(
    r"(?:PATH|IFS|ENV|CDPATH|GLOBIGNORE|SHELLOPTS|PS4|PROMPT_COMMAND|EXECIGNORE|HISTFILE"
    r"|BASH_\w+|BASHOPTS|LD_\w+|DYLD_\w+)(?:\[.*|\+?=.*)?",
    re.DOTALL,
)
"""Variables that change which programs run, alone or with a value."""
_EVALUATED = re.compile(r"\[.*(?:\$\(|`)", re.DOTALL)
"""An index that bash would evaluate, and with it a command, if the text reaches arithmetic."""
_UNKNOWN = "it is not a shell command that the parser knows"
_BLANKS = b" \t\n"
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_SEPARATORS = re.compile(r"[\s;&|<>()`'\"]|\\")
_RESERVED = frozenset(
    (
        *("!", "{", "}", "[", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for"),
        *("function", "if", "in", "select", "then", "until", "while"),
    )
)
_JOINED = re.compile(r"(?<![ \t])\\\n")
_GLOB = frozenset("*?[]{}")


@dataclass
class _Findings:
    programs: list[str] = field(default_factory=list)
    commands: int = 0
    pipes: int = 0
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    substitutes: bool = False


def read_shell(value: JsonValue) -> JsonObject:
    """Return what a command runs: a text for bash, or a list of the program and its arguments, without a shell."""
    found = _Findings()
    if isinstance(value, list):
        words = [read_text(one, MOST_CHARS) for one in value[: MOST_ENTRIES + 1]]
        if not 0 < len(words) <= MOST_ENTRIES:
            raise Uncomputable(f"a list of words has at least one and at most {MOST_ENTRIES}")
        _add_program([*words], found, 0)
    else:
        _read(read_text(value, MOST_CHARS), found, 0)
    if not found.programs:
        raise Uncomputable("it has no command")
    return {
        "programs": [*dict.fromkeys(found.programs)],
        "commands": found.commands,
        "pipes": found.pipes,
        "reads_files": [*dict.fromkeys(found.reads)],
        "writes_files": [*dict.fromkeys(found.writes)],
        "substitutes": found.substitutes,
    }


def _read(text: str, found: _Findings, depth: int) -> None:
    if depth > MOST_DEPTH:
        raise Uncomputable("it has commands within commands within commands")
    if _JOINED.search(text):
        raise Uncomputable("it joins the parts of a word over the end of a line")
    raw = text.encode()
    root = _parser().parse(raw).root_node
    if root.has_error or (raw[: root.start_byte] + raw[root.end_byte :]).strip(_BLANKS):
        raise Uncomputable(_UNKNOWN)
    for node in _walk(root):
        if node.is_named and node.type not in _KNOWN:
            raise Uncomputable(f"it uses {node.type.replace('_', ' ')}, whose effect its text does not show")
        if node.is_missing or _is_misread(node):
            raise Uncomputable(_UNKNOWN)
        _note(node, found, depth)


def _note(node: Any, found: _Findings, depth: int) -> None:
    kind = node.type
    if kind in ("command", "declaration_command", "unset_command"):
        _add_program(_read_words(node), found, depth)
    elif kind == "file_redirect":
        _add_redirect(node, found)
    elif kind in ("command_substitution", "process_substitution"):
        found.substitutes = True
    elif kind in ("|", "|&"):
        found.pipes += node.parent.type == "pipeline"
    elif kind == "variable_name" and node.parent.type not in ("simple_expansion", "expansion"):
        _check_variable(node.text.decode())
    elif kind == "expansion" and node.child_count != 3:
        raise Uncomputable("it changes a variable's value as it reads it")
    elif kind in ("raw_string", "string", "word", "concatenation") and _EVALUATED.search(_unquote(node) or ""):
        raise Uncomputable("it has a text that the shell may evaluate, such as a[$(ls)]")


def _is_misread(node: Any) -> bool:
    """Whether the parser read a text otherwise than bash does: it loses some escapes and splits some words."""
    kind, text = node.type, node.text.decode()
    if kind == "word":
        return _SEPARATORS.search(_ESCAPED.sub("", text)) is not None
    if kind == "variable_name":
        return not text.isidentifier() or not text.isascii()
    gaps, place = [], node.start_byte
    for child in node.children:
        gaps.append(node.text[place - node.start_byte : child.start_byte - node.start_byte])
        place = child.end_byte
    if any(gap.replace(b"\\\n", b"").strip(_BLANKS) for gap in gaps):
        return True
    if kind in ("concatenation", "command_name"):
        return any(gaps) or place != node.end_byte
    if kind in ("command", "declaration_command", "unset_command"):
        loose = (child.type == "file_redirect" for child in node.children[1:])
        unnamed = not all(child.is_named for child in node.children[kind != "command" :])
        return unnamed or any(not gap and not free for gap, free in zip(gaps[1:], loose, strict=True))
    return False


def _check_variable(name: str) -> None:
    if _STEERING.fullmatch(name):
        raise Uncomputable("it sets a variable that changes the programs that run, such as PATH")


def _walk(root: Any) -> Iterator[Any]:
    left = [root]
    while left:
        node = left.pop()
        yield node
        left += reversed(node.children)


def _read_words(command: Any) -> list[str | None]:
    """Return the words of a simple command; None for one that the shell computes."""
    words: list[str | None] = []
    skipped = ("file_redirect", "comment", *(("variable_assignment",) if command.type == "command" else ()))
    for child in command.children:
        if child.type == "command_name":
            words.append(_unquote(child.children[0]))
        elif child.type not in skipped:
            words.append(_unquote(child))
    return words


def _unquote(node: Any) -> str | None:
    """Return the text that a word stands for, or None if the shell computes it."""
    text: str = node.text.decode()
    if node.type in ("word", "number", "variable_name") or not node.is_named:
        return None if _is_computed(text) else re.sub(r"\\(.)", r"\1", text.replace("\\\n", ""), flags=re.DOTALL)
    if node.type == "raw_string":
        return text[1:-1]
    if node.type == "string":
        if any(child.is_named and child.type != "string_content" for child in node.children):
            return None
        return re.sub(r'\\([$`"\\\n])', lambda sign: sign[1].strip("\n"), text[1:-1])
    if node.type == "concatenation":
        parts = [_unquote(child) for child in node.children]
        return None if None in parts else "".join(part for part in parts if part is not None)
    # The value of a variable changes no program; its name is checked where it stands.
    return f"{node.children[0].text.decode()}=" if node.type == "variable_assignment" else None


def _is_computed(text: str) -> bool:
    bare = re.sub(r"\\.", "", text, flags=re.DOTALL)
    return any(sign in _GLOB for sign in bare) or bare.startswith("~") or "$" in bare or "`" in bare


def _add_program(words: list[str | None], found: _Findings, depth: int) -> None:
    """Add the program of a command, and those that it starts by its arguments."""
    found.commands += 1
    while words:
        name = _name_program(words[0])
        found.programs.append(name)
        unwrapped: Unwrapped = unwrap(name, words[1:])
        for text in unwrapped.scripts:
            _read(text, found, depth + 1)
        for inner in unwrapped.others:
            _add_program(inner, found, depth)
        for word in unwrapped.settings:
            _check_variable(word)
        words = unwrapped.words


def _name_program(word: str | None) -> str:
    """Return the name of a program in a usual folder, or the whole path of another one."""
    if not word or word.startswith("-") or not word.isprintable() or "=" in word or word in _RESERVED:
        raise Uncomputable("the name of a program is computed by the shell")
    if "/" not in word:
        return word
    path = posixpath.normpath(word) if word.startswith("/") else word
    usual = _BIN.fullmatch(path)
    return usual[1] if usual else path


def _add_redirect(node: Any, found: _Findings) -> None:
    sign = next(child.type for child in node.children if not child.is_named)
    named = [child for child in node.children if child.is_named and child.type != "file_descriptor"]
    if len(named) > 1:
        raise Uncomputable("a redirection stands before other words; write it behind the command")
    destination = node.children[-1]
    if sign in (">&", "<&", ">&-", "<&-") and (destination.type == "number" or not destination.is_named):
        return
    file = _unquote(destination)
    if not file or sign not in _REDIRECTS:
        raise Uncomputable("the name of a file is computed by the shell, or the redirection is unusual")
    if _SOCKET.match(file):
        raise Uncomputable("the shell opens a network connection for the redirection")
    if file != "/dev/null":
        (found.writes if _REDIRECTS[sign] == "writes" else found.reads).append(file)


@lru_cache(maxsize=1)
def _parser() -> Any:
    sitter, grammar = import_module("tree_sitter"), import_module("tree_sitter_bash")
    return sitter.Parser(sitter.Language(grammar.language()))
