"""What real shells do with random and named texts is what Sayso reads in them."""

from pathlib import Path

import pytest

from sayso.core.policy.functions.shell.quoting import ANYTHING, Word
from tests.shells.comparing import compare, fits
from tests.shells.grammar import Grammar
from tests.shells.named import ORDINARY, REFUSED, WAYS
from tests.shells.sandbox import BASH, DASH, Sandbox

SEED, TEXTS, TEXTS_FOR_DASH = 32, 2_000, 300
INPUT = "echo git push | sh"
"""Shows `sh`, but not the text that it reads."""
NAMED = [*(one.command for one in WAYS if one.command != INPUT), *REFUSED, *ORDINARY]

needs_bash = pytest.mark.skipif(BASH is None, reason="bash is not installed")
needs_dash = pytest.mark.skipif(DASH is None, reason="dash is not installed")


@needs_bash
def test_bash_runs_what_is_read_in_random_texts(tmp_path: Path) -> None:
    assert BASH is not None
    grammar = Grammar(SEED)
    compared = compare([grammar.make() for _ in range(TEXTS)], Sandbox(tmp_path), [BASH])
    assert compared.differences == []
    assert compared.read > TEXTS / 5, "enough texts are read"


@needs_dash
def test_dash_runs_what_is_read_in_random_texts(tmp_path: Path) -> None:
    assert DASH is not None
    grammar = Grammar(SEED + 1)
    compared = compare([grammar.make() for _ in range(TEXTS_FOR_DASH)], Sandbox(tmp_path), [DASH])
    assert compared.differences == []


@needs_bash
def test_bash_runs_what_is_read_in_named_texts(tmp_path: Path) -> None:
    assert BASH is not None
    compared = compare(NAMED, Sandbox(tmp_path), [BASH])
    assert compared.differences == []


@needs_bash
@pytest.mark.parametrize(
    ("text", "commands", "files"),
    [
        ("ls -l \"a b\" '' | rm f1 > f9", [["ls", "-l", "a b", ""], ["rm", "f1"]], {"f9"}),
        (
            "git log $(cat f1) && unknown",
            [["cat", "f1"], ["git", "log", "push", "--output=f9", "-v"], ["unknown"]],
            set(),
        ),
        ("env x=1 ls & wait; find . -name f1 -exec rm {} \\;", [["ls"], ["rm", "./f1"]], set()),
        ("PATH=/nowhere; ls", [], set()),
    ],
)
def test_sandbox_records_programs_and_files(
    text: str, commands: list[list[str]], files: set[str], tmp_path: Path
) -> None:
    assert BASH is not None
    sandbox = Sandbox(tmp_path)
    (ran,) = sandbox.run([text], BASH)
    recorded = [one[:5] if one[0] == "git" else one for one in ran.commands if one[0] != "ls" or commands]
    assert (sorted(recorded), ran.files) == (sorted(commands), files)
    assert (ran.state == sandbox.state) == ("PATH" not in text)


@pytest.mark.parametrize(
    ("words", "args", "fit"),
    [
        ([Word("log")], ["log"], True),
        ([Word("log")], ["push"], False),
        ([Word("log")], [], False),
        ([Word(None, "f")], ["f1", "f2"], True),
        ([Word(None, "f")], ["f1", "-x"], False),
        ([Word("log"), ANYTHING], ["log", "-x", "y"], True),
        ([Word("log"), ANYTHING], ["push", "-x"], False),
        ([ANYTHING, Word("a")], ["a", "a"], True),
    ],
)
def test_fits_compares_arguments_with_words(words: list[Word], args: list[str], fit: bool) -> None:
    assert fits(words, args) is fit


def test_named_texts_have_names_and_no_doubles() -> None:
    names = [one.name for one in WAYS]
    assert len(names) == len(set(names)) >= 100
    assert len(ORDINARY) == len(set(ORDINARY)) >= 200
    assert len(REFUSED) == len(set(REFUSED)) >= 100
