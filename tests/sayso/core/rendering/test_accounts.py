"""IBANs are tested by their checksum, in any call."""

import pytest

from sayso.core.rendering.money import mark_fours
from sayso.core.rendering.renderers import render_call
from sayso.core.text.ibans import is_valid


@pytest.mark.parametrize("iban", ["DE89370400440532013000", "GB29 NWBK 6016 1331 9268 19", "ch9300762011623852957"])
def test_is_valid_accepts_right_checksums(iban: str) -> None:
    assert is_valid(iban)


@pytest.mark.parametrize("iban", ["DE89370400440532013001", "GB29NWBK60161331926891", "DE89", "", "\u0420\u042189"])
def test_is_valid_refuses_wrong_checksums(iban: str) -> None:
    assert not is_valid(iban)


def test_marks_part_an_iban_in_fours() -> None:
    assert [(mark.start, mark.end) for mark in mark_fours("NO9386011117947")] == [(0, 4), (4, 8), (8, 12), (12, 15)]
    assert mark_fours("Ann") == []


def test_argument_called_iban_is_checked_in_any_call() -> None:
    view = render_call("create_contact", {"bank": [{"IBAN": "DE00370400440532013000"}]})
    assert view.severe
    assert "bank[0].IBAN is not a valid IBAN" in view.flags[0].sentence
    assert not render_call("create_contact", {"iban": "DE89370400440532013000"}).flags
