"""`make chaos` says which of its numbers is none, before any storm begins."""

import pytest

from tests.chaos.__main__ import main


@pytest.mark.parametrize(("name", "value"), [("RUNS", "many"), ("KILLS", "-1"), ("SEED", "1.5")])
def test_a_number_that_is_none_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert main() == 2
    assert capsys.readouterr().err.startswith(f"{name} is a whole number")
