"""`make chaos` rejects an invalid number before it starts anything."""

import pytest

from tests.chaos.__main__ import main


@pytest.mark.parametrize(("name", "value"), [("RUNS", "many"), ("KILLS", "-1"), ("SEED", "1.5")])
def test_main_rejects_a_number_that_is_not_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert main() == 2
    assert capsys.readouterr().err.startswith(f"{name} must be a whole number")
