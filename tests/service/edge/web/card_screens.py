"""Pictures of the cards of every kind of channel, as Sayso renders them, for docs/channels: `make screens`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Page

from service.channels.kinds import KINDS
from service.core.settings import Settings
from tests.service.edge.web.screens import FOLDER
from tests.service.edge.web.sites import Site, settings_for
from tests.service.edge.web.test_gallery import admin_gallery

RULES = """\
version: 1
default: deny
rules:
  - {id: refunds, tool: refund, action: request_approval, reason: Refunds over 100 need a person}
"""
CALL = {"tool": "refund", "args": {"order": "A-1932", "amount": 250, "currency": "EUR"}, "agent": "support"}


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    """Settings with a channel of each kind, and a rule that asks."""
    file = tmp_path / "channels.yaml"
    rows = {kind.replace("_", "-"): {"kind": kind, **read_sample(kind)} for kind in KINDS}
    file.write_text(yaml.safe_dump({"channels": rows}))
    found = settings_for(clean_store_url, tmp_path, channels=str(file))
    found.policy.write_text(RULES)
    return found


def read_sample(kind: str) -> dict[str, object]:
    """Return the sample fields of a kind as the channels file writes them."""
    return {name: list(one) if isinstance(one, tuple) else one for name, one in KINDS[kind].sample.items()}


def test_cards_are_pictured(site: Site, open_as: Callable[..., Page]) -> None:
    site.act(admin_gallery)
    page = open_as("/channels", name="root")
    page.get_by_label("Call").fill(json.dumps(CALL))
    page.get_by_role("button", name="Show").click()
    FOLDER.mkdir(exist_ok=True)
    for kind in KINDS:
        heading = page.get_by_role("heading", name=kind.replace("_", "-"))
        card = page.locator(".previews article").filter(has=heading).first
        card.screenshot(path=FOLDER / f"card-{kind}.png")
