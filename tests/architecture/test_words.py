"""Names and sentences keep to one word for one thing: no banned word in a name, no banned phrase in a text."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.sources import ROOT, modules, pages, place

BANNED_PART = re.compile(
    "agenda|beats?|consume[ds]?|consumptions?|dialects?|dojo|examin(e|ations?)|fold(s|ed)?|fores(ee|een|ight)|gists?"
    "|halt(s|ed)?|hindrance|house|leaves?|lift(s|ed)?|looks|manner|pause[ds]?|rechecks?|ruled|rulings?|spends?|spent"
    "|standings?|storms?|tells?|tellings?|thaw(s|ed)?|told|wires?"
)
GENERAL_NAMES = re.compile(r"(Manager|Helper|Utils?|Processor|Handler)$|^(process|handle|utils?|helpers?|misc|common)$")
ALLOWED_NAMES = frozenset(
    {
        "RUN_PAUSED",  # the event's stored name comes from the tool-call lifecycle
        "spent_ms",  # a field of the saved state that came before the lexicon
        *("PAUSE", "pause", "_pause", "_paused", "paused_at_ms"),  # events and methods of other frameworks
        *("dialect", "_DIALECTS"),  # JSON Schema's own term
        *("leaves", "_list_leaves"),  # of a tree
        *("fold", "_fold", "_fold_pattern"),  # of text: case folding, folding blanks
        *("Wire", "_wire"),  # models as they are sent; assembling the parts of a process
        *("spent_ms", "_spent_ms"),  # time, not permits
    }
)
AAP_PART = re.compile("consume[ds]?|consumptions?")  # the protocol's own words
PHRASES = (
    r"whoever|whatever|that which|by then|what is asked|what (came|became|becomes|comes) of",
    r"(take|takes|taken|took) up(?! to)|(is|are|was|were) to be|puts? before|(is|are|was|were|be|been) told",
    r"(no|with|without|has|had|have|gave|gives?) leave|leave to run|the word of|\w+'s word",
    r"look(s|ed)? at|sees? to|comes to the same",
)
BANNED_PHRASES = re.compile(rf"\b({'|'.join(PHRASES)})\b".replace(" ", r"[\s#-]+"), re.IGNORECASE)
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def test_names_keep_to_the_lexicon() -> None:
    found = list(find_banned_names())
    assert not found, "\n".join(found)


def test_texts_keep_to_plain_english() -> None:
    found = list(find_banned_phrases())
    assert not found, "\n".join(found)


@pytest.mark.parametrize("identifier", ["tellings", "list_looks", "PauseReason", "_told_ms", "EXAMINE_ALL"])
def test_banned_part_is_found_in_any_spelling(identifier: str) -> None:
    assert _banned_parts(identifier)


def test_phrase_is_found_across_a_line_break() -> None:
    assert list(_phrases("a docstring that says what\n    came of it")) == [(1, "what came of")]


def find_banned_names() -> Iterator[str]:
    """Yield each name that is defined with a banned part, with its place."""
    for path in modules():
        defined = [(1, path.stem, True), *_defined(ast.parse(path.read_text()))]
        for line, identifier, is_general in defined:
            parts = {
                part for part in _banned_parts(identifier) if "aap" not in path.parts or not AAP_PART.fullmatch(part)
            }
            if parts or (is_general and GENERAL_NAMES.search(identifier)):
                yield f"{place(path)}:{line} {identifier}"


def find_banned_phrases() -> Iterator[str]:
    """Yield each banned phrase of the modules, templates and pages, with its place."""
    texts = [*modules(), *sorted((ROOT / "templates").rglob("*.html")), *sorted((ROOT / "service").rglob("*.lua"))]
    for path in [*texts, *pages()]:
        for line, phrase in _phrases(path.read_text()):
            yield f"{place(path)}:{line} {phrase}"


def _defined(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Yield the line and text of each name, and whether a function or class carries it."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name, True
            case ast.arg():
                yield node.lineno, node.arg, False
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id, False
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr, False
            case ast.alias(asname=str(alias)):
                yield node.lineno, alias, False


def _banned_parts(identifier: str) -> set[str]:
    if identifier in ALLOWED_NAMES:
        return set()
    return {part for part in map(str.lower, PART.findall(identifier)) if BANNED_PART.fullmatch(part)}


def _phrases(text: str) -> Iterator[tuple[int, str]]:
    for found in BANNED_PHRASES.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, " ".join(found[0].split())


if __name__ == "__main__":
    print("\n".join([*find_banned_names(), *find_banned_phrases()]))
