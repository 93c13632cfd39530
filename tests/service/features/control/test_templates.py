"""The drills file is read whole or not at all, with the line of every fault."""

from pathlib import Path

import pytest

from sayso.errors import NotFound
from service.features.control.drills import InvalidDrills, read_drills

ONE = """\
  - id: unknown-recipient
    agent: support
    requested_by: support-bot
    tool: refund
    args: {amount: 480}
    signs: [Nobody knows the recipient.]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "drills.yaml"
    path.write_text(text)
    return path


def test_file_is_read_whole(tmp_path: Path) -> None:
    plan = read_drills(write(tmp_path, f"every_h: 24\ndrills:\n{ONE}"))
    assert plan.every_h == 24
    assert plan.find("unknown-recipient").args == {"amount": 480}
    with pytest.raises(NotFound, match="Drills in the file: unknown-recipient"):
        plan.find("other")


def test_no_file_has_no_drills() -> None:
    assert read_drills(None).drills == ()
    with pytest.raises(NotFound, match="set SAYSO_DRILLS"):
        read_drills(None).find("any")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (f"drills:\n{ONE}{ONE}", "two drills have the id unknown-recipient"),
        ("every_h: 2\n", "the file has none"),
        (f"drills:\n{ONE.replace('support-bot', 'clock')}", "requested_by clock is a name of Sayso's own"),
        (f"drills:\n{ONE.replace('signs', 'hints')}", "drills.yaml:2:5: drills.0.signs: Field required"),
        (f"drills:\n{ONE.replace('refund', '')}", "drills.yaml:5:"),
        ("drills: [", "drills.yaml:1"),
    ],
)
def test_faulty_file_is_refused_with_its_place(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(InvalidDrills) as refused:
        read_drills(write(tmp_path, text))
    assert fault in refused.value.message


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDrills, match="Correct SAYSO_DRILLS"):
        read_drills(tmp_path / "none.yaml")
