"""The syntax of shell commands: a reader of the part of bash whose effect the text shows.

Every sign must be one that the reader knows: all else raises `Uncomputable`. It reads the text once, left to right.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from sayso.core.policy.functions import Uncomputable
from sayso.core.policy.functions.shell.quoting import UNKNOWN, Document, Word, WordReader, Words

RESERVED = frozenset(
    (
        *("!", "{", "}", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for"),
        *("function", "if", "in", "select", "then", "until", "while"),
    )
)
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_RESERVED_WORD = re.compile(r"(!|\{|\}|[a-z]+)(?=[ \t\n;&|<>()]|\Z)")
_DELIMITER = re.compile(r"""(?:'(\w+)'|"(\w+)"|\\(\w+)|(\w+))(?=[ \t\n;&|<>()]|\Z)""", re.ASCII)
_DUPLICATE = re.compile(r"[<>]&(?:[0-9]|-)(?=[ \t\n;&|)]|\Z)")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?=[ \t\n;])")
_OPERATOR = re.compile(r"&>>|&>|>>|>\||>|<")


@dataclass
class Command:
    """A simple command: its words, and the variables that it sets for them."""

    words: Words = field(default_factory=list)
    settings: list[tuple[str, Word | None]] = field(default_factory=list)


@dataclass
class Script:
    """What a text has: commands in the order in which they begin, files of redirections, pipes and substitutions."""

    commands: list[Command] = field(default_factory=list)
    reads: list[Word] = field(default_factory=list)
    writes: list[Word] = field(default_factory=list)
    pipes: int = 0
    substitutes: bool = False


def read_script(text: str, most_words: int, most_nesting: int) -> Script:
    """Return what the text has; raises `Uncomputable` for syntax that the reader does not know."""
    reader = _Reader(text, Script(), most_words, most_nesting)
    reader.read_list("")
    if reader.pending:
        raise Uncomputable("a here-document is not closed")
    return reader.script


class _Reader(WordReader):
    """A reader of lists, pipes, compound commands and redirections."""

    def __init__(self, text: str, script: Script, most_words: int, most_nesting: int) -> None:
        super().__init__(text, most_words, most_nesting)
        self.script = script

    def read_list(self, *ends: str) -> str:
        """Read commands up to one of `ends`, which is a reserved word, `)`, `;;` or nothing; return it."""
        self.descend()
        count = 0
        while True:
            self.skip_lines()
            end = self._find_end(ends)
            if end is not None:
                if not count and end not in ("", ";;", "esac"):
                    raise Uncomputable(UNKNOWN)
                self.place += len(end)
                self.nesting -= 1
                return end
            self._read_pipeline()
            self.skip_blanks()
            while self.peek(2) in ("&&", "||"):
                self.place += 2
                self.skip_lines()
                self._read_pipeline()
                self.skip_blanks()
            count += 1
            self.skip_blanks()
            if self.peek(2) != ";;" and self.peek() in (";", "&"):
                self.place += 1
            elif self.peek() != "\n" and self._find_end([end for end in ends if end in ("", ")", ";;")]) is None:
                raise Uncomputable(UNKNOWN)

    def _find_end(self, ends: Sequence[str]) -> str | None:
        if self.place == len(self.text):
            return "" if "" in ends else None
        word = self._peek_reserved()
        return next((end for end in ends if end and (end == word or (end in (")", ";;") and self.sees(end)))), None)

    def _peek_reserved(self) -> str:
        word = _RESERVED_WORD.match(self.text, self.place)
        return word[1] if word and word[1] in RESERVED else ""

    def _read_pipeline(self) -> None:
        self.skip_blanks()
        if self._peek_reserved() == "!":
            self.place += 1
        self._read_command()
        self.skip_blanks()
        while self.peek() == "|" and self.peek(2) != "||":
            self.script.pipes += 1
            self.place += 2 if self.peek(2) == "|&" else 1
            self.skip_lines()
            self._read_command()
            self.skip_blanks()

    def _read_command(self) -> None:
        self.skip_blanks()
        word = self._peek_reserved()
        if self.peek() == "(":
            self.place += 1
            if self.peek() == "(":
                raise Uncomputable("it uses arithmetic, whose effect its text does not show")
            self.read_list(")")
        elif word:
            self.place += len(word)
            self._read_compound(word)
        else:
            self._read_simple()
            return
        self.skip_blanks()
        while self.sees_redirect():
            self._read_redirect()
            self.skip_blanks()

    def _read_compound(self, word: str) -> None:
        match word:
            case "{":
                self.read_list("}")
            case "if":
                end = "elif"
                while end == "elif":
                    self.read_list("then")
                    end = self.read_list("elif", "else", "fi")
                if end == "else":
                    self.read_list("fi")
            case "while" | "until":
                self.read_list("do")
                self.read_list("done")
            case "for":
                self._read_for()
            case "case":
                self._read_case()
            case _:
                raise Uncomputable(f"{word} stands where Sayso cannot read it")

    def _read_for(self) -> None:
        self.skip_blanks()
        name = self._read_plain()
        self.skip_blanks()
        if self._read_plain() != "in":
            raise Uncomputable("a loop without `in` is not one that Sayso can read")
        settings: list[tuple[str, Word | None]] = []
        self.skip_blanks()
        while self.sees_word():
            settings.append((name, self.read_word()))
            self.skip_blanks()
        self.script.commands.append(Command(settings=settings or [(name, Word(""))]))
        if self.peek() == ";" and self.peek(2) != ";;":
            self.place += 1
        elif self.peek() != "\n":
            raise Uncomputable(UNKNOWN)
        self.skip_lines()
        if self._peek_reserved() != "do":
            raise Uncomputable(UNKNOWN)
        self.place += len("do")
        self.read_list("done")

    def _read_case(self) -> None:
        if self.substitution_depth:
            raise Uncomputable("a case within a substitution is not one that Sayso can read")
        self.skip_blanks()
        self.read_word()
        self.skip_lines()
        if self._read_plain() != "in":
            raise Uncomputable(UNKNOWN)
        self.skip_lines()
        end = ""
        while end != "esac" and self._peek_reserved() != "esac":
            self._read_patterns()
            end = self.read_list(";;", "esac")
            self.skip_lines()
        if end != "esac":
            self.place += len("esac")

    def _read_patterns(self) -> None:
        if self.peek() == "(":
            self.place += 1
        while True:
            self.skip_blanks()
            self.read_word()
            self.skip_blanks()
            self.place += 1
            if self.text[self.place - 1 : self.place] == ")":
                return
            if self.text[self.place - 1 : self.place] != "|":
                raise Uncomputable(UNKNOWN)

    def _read_plain(self) -> str:
        run = _PLAIN.match(self.text, self.place)
        if run is None:
            raise Uncomputable(UNKNOWN)
        self.place = run.end()
        return run[0]

    def _read_simple(self) -> None:
        command = Command()
        self.script.commands.append(command)
        begin, is_redirected = self.place, False
        while True:
            self.skip_blanks()
            assigned = _ASSIGNED.match(self.text, self.place) if not command.words else None
            if self.sees_redirect():
                self._read_redirect()
                is_redirected = bool(command.words)
            elif assigned is not None:
                self.place = assigned.end()
                value = self.read_word() if self.sees_word() else Word("")
                if assigned[2]:
                    raise Uncomputable("it adds to the value of a variable")
                command.settings.append((assigned[1], value))
            elif self.sees_word():
                if is_redirected:
                    raise Uncomputable("a redirection stands before other words; write it behind the command")
                command.words.append(self.read_word())
            else:
                break
        if self.place == begin or (self.peek() and self.peek() not in "\n;&|)"):
            raise Uncomputable(UNKNOWN)

    def _read_redirect(self) -> None:
        if self.peek().isdigit():
            self.place += 1
        if self.peek(2) == "<<":
            strips = self.text.startswith("<<-", self.place)
            self.place += 3 if strips else 2
            while self.peek() in (" ", "\t"):
                self.place += 1
            delimiter = _DELIMITER.match(self.text, self.place)
            if delimiter is None:
                raise Uncomputable("it has a here-document or here-string that Sayso does not know")
            self.place = delimiter.end()
            text = next(end for end in delimiter.groups() if end is not None)
            self.pending.append(Document(text, strips, delimiter[4] is None))
            return
        duplicate = _DUPLICATE.match(self.text, self.place)
        if duplicate is not None:
            self.place = duplicate.end()
            return
        sign = _OPERATOR.match(self.text, self.place)
        if sign is None or self.peek(2) in (">&", "<&", "<>"):
            raise Uncomputable("it has a redirection that Sayso does not know")
        self.place = sign.end()
        self.skip_blanks()
        (self.script.reads if sign[0] == "<" else self.script.writes).append(self.read_word())

    def read_substitution(self) -> None:
        """Read the commands up to the closing bracket; `place` is behind the opening one."""
        pending, self.pending = self.pending, []
        self.script.substitutes = True
        self.substitution_depth += 1
        self.read_list(")")
        self.substitution_depth -= 1
        if self.pending:
            raise Uncomputable("a here-document is not closed")
        self.pending = pending

    def read_quoted_script(self, text: str) -> None:
        self.script.substitutes = True
        self.descend()
        inner = _Reader(text, self.script, self.words_left, self.most_nesting)
        inner.nesting, inner.substitution_depth = self.nesting, self.substitution_depth + 1
        inner.read_list("")
        self.words_left = inner.words_left
        self.nesting -= 1
