"""The command that lists what can be undone, and undoes a call."""

import asyncio
import json
from pathlib import Path

import pytest

from sayso.core.records.suspensions import SuspensionRecord
from service.assembly import assemble
from service.core.settings import Settings
from tests.sayso.cli.test_commands import Run, ask, desk, sayso  # noqa: F401
from tests.service.features.reversing import offer_undo

Desk = tuple[str, str, str, str]


@pytest.fixture
def offer(desk: Desk, clean_store_url: str, tmp_path: Path) -> SuspensionRecord:  # noqa: F811
    async def save() -> SuspensionRecord:
        settings = Settings(redis_url=clean_store_url, policy=tmp_path / "policy.yaml")
        async with assemble(settings) as wiring:
            return await offer_undo(wiring, output="\x1b[31mreceipt")

    return asyncio.run(save())


def test_undo_lists_and_undoes(offer: SuspensionRecord, sayso: Run) -> None:  # noqa: F811
    listed = sayso("undo").stdout
    assert "refund" in listed
    assert json.loads(sayso("undo", "--json").stdout)[0]["id"] == offer.id
    assert "Give --yes" in sayso("undo", offer.id[-8:]).stderr
    done = sayso("undo", offer.id[-8:], "--yes")
    assert f"A worker undoes it. `sayso show {offer.id}`" in done.stdout, done.stderr
    assert "No call can be undone." in sayso("undo").stdout
    again = sayso("undo", offer.id, "--yes")
    assert (again.returncode != 0, "has no open item" in again.stderr) == (True, True), again.stderr
    assert "\x1b[31m" not in sayso("show", offer.id).stdout


def test_undo_refuses_what_offers_none(desk: Desk, sayso: Run) -> None:  # noqa: F811
    waiting = ask(desk)
    assert "offers to undo no call" in sayso("undo", waiting, "--yes").stderr
    assert "No offers match 'zzz'" in sayso("undo", "zzz", "--yes").stderr
