"""YAML documents: values, places and unsupported YAML."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sayso.core.policy.files.yaml_documents import MAX_BYTES, read_document


def problems(text: str | bytes) -> list[str]:
    raw = text if isinstance(text, bytes) else text.encode()
    return [str(problem) for problem in read_document(raw, "f").problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-7", -7),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("no", "no"),
        ("on", "on"),
        ("1:30", "1:30"),
        ("007", "007"),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        ("2026-01-01", "2026-01-01"),
        (".inf", ".inf"),
        ("<<", "<<"),
        ("'1'", "1"),
        ('"true"', "true"),
        ("[1, x, {a: b}]", [1, "x", {"a": "b"}]),
        ("|\n  two\n  lines\n", "two\nlines\n"),
        ("é😀", "é😀"),
    ],
)
def test_scalars_are_those_of_json_and_words_stay_words(text: str, value: object) -> None:
    document = read_document(f"key: {text}".encode(), "f")
    assert document.problems == []
    assert document.content == {"key": value}
    assert type(document.content["key"]) is type(value)


def test_every_value_and_key_has_its_place() -> None:
    document = read_document(b"a: 1\nlist:\n  - x\n  - {b: 2}\n", "f")
    assert document.values["a",] == (1, 4)
    assert document.values["list", 0] == (3, 5)
    assert document.values["list", 1, "b"] == (4, 9)
    assert document.keys["list", 1, "b"] == (4, 6)


def test_report_falls_back_to_the_closest_place() -> None:
    document = read_document(b"a:\n  - {b: 2}\n", "f")
    document.report(("a", 0, "b"), "value")
    document.report(("a", 0, "b"), "key", at_key=True)
    document.report(("a", 0, "missing", 3), "around")
    document.report(("nowhere",), "top")
    assert [str(problem) for problem in document.problems] == [
        "f:2:9: value",
        "f:2:6: key",
        "f:2:5: around",
        "f:1:1: top",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3", "f:3:1: `a` is duplicated, first on line 1"),
        ("a: {b: 1, b: 2}", "f:1:11: `b` is duplicated"),
        ("a: &x 1\nb: *x", "f:1:4: anchors (&) and tags (!) are not supported"),
        ("a: &x 1\nb: *x", "f:2:4: aliases (*) are not supported"),
        ("a: &x 1\nb: &x 2", "f:2:4: anchors (&) and tags (!)"),
        ("a: *x", "f:1:4: aliases (*) are not supported"),
        ("a: !!python/object/apply:os.system ['true']", "f:1:4: anchors (&) and tags (!)"),
        ("a: !mine 3", "f:1:4: anchors (&) and tags (!)"),
        ("a: &a [*a]", "f:1:8: aliases"),
        ("1: x", "f:1:1: a key must be a text"),
        ("? [1]\n: x", "f:1:3: a key must be a text"),
        ("a: 1e999", "f:1:4: the number is too large"),
        ("a: " + "9" * 4001, "f:1:4: the number is too large; use a smaller one"),
        ('a: "\\ud800"', "f:1:4: the text has half of a surrogate pair"),
        ("a: [1, 2", "f:1:9: this is not YAML"),
        ("a: 1\n\tb: 2", "f:2:1: this is not YAML"),
        ("a: 1\n--- \nb: 2", "f:2:1: this is not YAML"),
        ("a: 1\n b: 2", "f:2:3: this is not YAML"),
        ("a: x\x01", "f:1:5: there is a control character here"),
        (b"a: 1\nb: \xff", "f:2:1: the line is not UTF-8"),
        ("[" * 10_000, "f:1:25: this is not YAML: nested deeper than 24 levels"),
        ("- " * 10_000, "nested deeper than 24 levels"),
        ("x" * (MAX_BYTES + 1), f"f:1:1: the file is larger than {MAX_BYTES} bytes"),
    ],
)
def test_read_document_reports_unsupported_yaml(text: str | bytes, expected: str) -> None:
    assert any(expected in problem for problem in problems(text))


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2512292042121000001, 10**3999])
def test_read_document_reads_integers_exactly(number: int) -> None:
    read = read_document(f"a: {number}".encode(), "f")
    assert (read.content, read.problems) == ({"a": number}, [])


def test_read_document_does_not_expand_aliases() -> None:
    layers = ["l0: &l0 [x, x]"] + [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 20)]
    document = read_document("\n".join(layers).encode(), "f")
    assert len(document.problems) == 20 + 19 * 9
    assert len(document.values) < 500


def test_an_empty_document_holds_nothing() -> None:
    for text in (b"", b"# only a comment\n", b"\xef\xbb\xbf"):
        assert read_document(text, "f").content is None


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
@example("a: !<x> &b\n- ?")
@example("%YAML 3.0\n---\n")
def test_reading_never_raises(text: str) -> None:
    read_document(text.encode("utf-8", "surrogatepass"), "f")
