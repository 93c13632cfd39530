"""Random shell texts: sentences of a grammar, the same with a piece changed, and rows of pieces."""

import random
from collections.abc import Callable

PIECES = (
    *("git", "ls", "rm", "cat", " ", " ", " ", ";", "|", "||", "&&", " & ", "\n", "'", '"', "\\", "#", "$("),
    *(")", "`", "(", "{ ", "; }", "! ", "<", ">", "f1", "$X", "X=1 ", "x=1 ", "if ", "; then ", "; fi", "echo "),
    *("2>&1", ">&2", "eval ", "command ", "case f1 in f1) ", ";; esac", "for x in f1; do ", "; done", "<<<"),
    *("<<", "=", "$'", '$"', "\\\n", "-", "{f1,f2}", "[", "]", "time ", "trap ", "EXIT", "<(", ">(", "\t"),
    *("&>", "$", "a", "${", "}", "''", '""', "unset ", "export ", "exec ", "{PATH}<", "{x}>f3", "RANDOM="),
    *("PATH=/x ", "IFS=x ", "$x", "$@", "${x}", "${X}", "$?", "$((1))", "<<'E'\nls $(rm f1)\nE\n"),
    *("<<E\nb\nE\n", "\nE\n", "<<-\\E", "[[ ", " ]]", "((", "))", "let ", "read ", "printf ", "%n", "-v"),
    *("declare ", "-i ", "test ", "~", "*", "?", "?(", "@(", "!(", "+=", "[1]=", "(f1)", "coproc ", "function "),
    *("()", "set -e", "alias ", "in", "do", "then", "done", "fi", "esac", "}", "|&", ">|", "<>", "&>>", ">&"),
    *("<&", "2>", "1", "\u00e9", "!", "^", "%", "@", "+", ":", ",", "..", "{", "sh -c ", "xargs ", "env "),
    *("log", "push", "--output=f9", "-c"),
)

_WORDS = (
    *("log", "status", "f1", "f2", "-n", "-la", "--", "a b", "--output=f9", "push", "-p", "x=1", "--oneline"),
    *("HEAD~1", "", "it's", "#", "a#b", "*", "f*", "$X", "{}", "%n", "[a]", "!", "~", "a=b", "-C", "-c", "a:b"),
    "\u00e4",
)
_BARE = (
    *("log", "push", "f1", "f*", "*", "-n3", "$X", "${X}", "$x", "\\$X", "a\\ b", "{f1,f2}", "{1..3}", "~"),
    *("a~b", "HEAD~1", "-", "--", "'a'\"b\"", "x$X", '"$X"', "'$X'", '"a\\"b"', '"\\$X"', "?1", "[f]1"),
    *("@{0}", "{}", "a=b", "$?", "$@", '"$@"', "a,b", "..", "x=~", "HEAD:f1", "$'a\\n'", "\\;", "'('"),
    *('"`ls`"', '"$(ls)"', "%s", "{a,$X}", "a{,b}c", "+", "^x", "!"),
)
_NAMES = (
    *("x", "x", "x", "y", "y", "A", "A", "file", "file", "TZ", "LC_ALL", "CI", "X", "PATH", "IFS", "RANDOM"),
    *("SECONDS", "HISTCMD", "LD_PRELOAD"),
)
_PROGRAMS = (*("ls", "cat", "rm", "sort", "grep", "head", "wc", "tee", "sed", "find"),)
_STARTERS = ("env", "env x=1", "env -u x", "nohup", "timeout 5", "nice", "time", "command", "exec")
_JOINS = (";", "; ", "\n", " && ", " || ", " & ", "&&", "\n\n", " ;\n", " ; ")
_SIGNS = (*("=",) * 9, "+=", "[0]=")
_TOOLS = (
    *("git log", "git push", "git -C f1 log", "kubectl get", "kubectl -n x get", "docker ps", "npm test"),
    "aws s3 ls",
)


class Grammar:
    """A source of texts that a seed determines."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - texts, not secrets
        self._depth = 0

    def make(self) -> str:
        """Return the next text."""
        kind = self._random.random()
        if kind < 0.2:
            return "".join(self._pick(PIECES) for _ in range(self._random.randint(2, 9)))
        text = self._list()
        return self._change(text) if kind < 0.6 else text

    def _pick(self, choices: tuple[str, ...]) -> str:
        return self._random.choice(choices)

    def _chance(self, part: float) -> bool:
        return self._random.random() < part

    def _change(self, text: str) -> str:
        for _ in range(self._random.choice((1, 1, 1, 2))):
            begin = self._random.randint(0, len(text))
            end = begin + self._random.choice((0, 0, 1, 1, 2, 5))
            text = text[:begin] + (self._pick(PIECES) if self._chance(0.7) else "") + text[end:]
        return text

    def _list(self) -> str:
        self._depth += 1
        count = self._random.choice((1, 1, 2, 3)) if self._depth < 2 else 1
        parts = [self._pipeline()]
        for _ in range(count - 1):
            parts += [
                self._pick(_JOINS),
                self._pipeline(),
            ]
        self._depth -= 1
        return "".join(parts)

    def _pipeline(self) -> str:
        parts = [self._command() for _ in range(self._random.choice((1, 1, 1, 1, 2)))]
        return ("! " if self._chance(0.05) else "") + self._pick((" | ", "|", " |& ", " |\n")).join(parts)

    def _command(self) -> str:
        if self._depth >= 3 or self._chance(0.75):
            return self._simple()
        kinds: tuple[Callable[[], str], ...] = (
            lambda: f"({self._list()})",
            lambda: f"{{ {self._list()}; }}",
            lambda: f"if {self._list()}; then {self._list()}; else {self._list()}; fi",
            lambda: f"for x in {self._word()} {self._word()}; do {self._list()}; done",
            lambda: f"while rm f1; do {self._list()}; done",
            lambda: f"until ls; do {self._list()}\ndone",
            lambda: f"case {self._word()} in f*) {self._list()};; (a | b) {self._list()} ;; esac",
            self._started,
            self._started,
            self._started,
        )
        after = self._redirect() if self._chance(0.2) else ""
        return self._random.choice(kinds)() + after

    def _started(self) -> str:
        inner = self._simple()
        quoted = "'" + inner.replace("'", "'\\''") + "'"
        choices = (
            *(f"{one} {inner}" for one in _STARTERS),
            *(f"{one} {quoted}" for one in ("sh -c", "bash -ec", "eval", "env -S")),
            f"trap {quoted} EXIT",
            *(f"ls | {one}" for one in (f"xargs {inner}", f"xargs -n1 {inner}", f"xargs -I{{}} {inner} {{}}")),
            *(f"find . -name f1 -exec {inner} {{}} {end}" for end in ("\\;", "+")),
            *(f"{one} {self._setting()}" for one in ("export", "declare -i")),
            f"read {self._pick(_NAMES)} < f1",
            "set -eu",
            f"[ {self._word()} = {self._word()} ]",
            *(f"{one} {self._word()} {self._word()}" for one in ("printf", "echo", "test")),
            f"unset {self._pick(_NAMES)}",
            f"wait {self._word()}",
            f"exec {self._redirect()}",
        )
        return self._pick(choices)

    def _simple(self) -> str:
        parts = [self._setting() for _ in range(self._random.choice((0, 0, 0, 0, 0, 1)))]
        if not parts or self._chance(0.8):
            parts += [self._program(), *(self._word() for _ in range(self._random.randint(0, 3)))]
        if self._chance(0.2):
            parts.append(self._redirect())
        if self._chance(0.05):
            delimiter = self._pick(("'E'", "E", '"E"', "\\E"))
            return self._pick((" ", "  ", "\t")).join(parts) + f" <<{delimiter}\n{self._pick(_BARE)} $X it's\nE\n"
        return self._pick((" ", " ", "  ", "\t", " \\\n ")).join(parts)

    def _program(self) -> str:
        if self._chance(0.3):
            return self._pick(_TOOLS)
        name = self._pick(_PROGRAMS)
        if self._chance(0.15):
            return self._pick(
                (f"'{name}'", f'"{name}"', f"\\{name}", f"{name[0]}''{name[1:]}", f"{name[0]}\\{name[1:]}")
            )
        return name

    def _setting(self) -> str:
        return f"{self._pick(_NAMES)}{self._pick(_SIGNS)}{self._word()}"

    def _word(self) -> str:
        kind = self._random.random()
        if kind < 0.06 and self._depth < 2:
            return self._pick(
                (f"$({self._list()})", f'"$({self._list()})"', f"`{self._simple()}`", f"<({self._list()})")
            )
        if kind < 0.5:
            return self._pick(_BARE)
        word = self._pick(_WORDS)
        return self._pick((f"'{word}'" if "'" not in word else f'"{word}"', f'"{word}"', word or "''"))

    def _redirect(self) -> str:
        if self._chance(0.1):
            return self._pick(("<>f1", ">&f1", "> $X", ">f*", "<<<f1", "2<&1-", "{x}>f1", "12>f1", "<&f1", "&>$X"))
        sign = self._pick((">", ">>", "<", "&>", "2>", ">|", " > ", "2>&1", ">&2", "< ", "2> ", "3>"))
        if sign in ("2>&1", ">&2"):
            return sign
        return sign + self._pick(("f1", "f2", "f3", "'f 4'", "/dev/null", "f5", '"f6"', "f\\7"))
