"""The examples on the pages about channels are files that load."""

from pathlib import Path

import pytest

from service.channels.config import read_channels
from service.channels.kinds import KINDS
from service.features.control.drills import read_drills
from tests.pages import DOCS, find_blocks, read_page

PAGES = ["channels", *(f"channels/{page.stem}" for page in DOCS.glob("channels/*.md"))]
EXAMPLES = [
    pytest.param(block, id=f"{page} {number}")
    for page in PAGES
    for number, block in enumerate(find_blocks(read_page(page), "yaml"))
    if block.startswith("channels:")
]
SECRETS = {
    "TELEGRAM_TOKEN": "12345678:" + "a" * 35,
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_APP_TOKEN": "xapp-1",
    "SLACK_SIGNING_SECRET": "s" * 32,
    "DISCORD_URL": "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js",
    "MATRIX_URL": "matrixs://user:secret@matrix.example/room",
    "NTFY_TOPIC": "topic-that-nobody-guesses",
    "NTFY_TOKEN": "tk_" + "a" * 29,
    "SMTP_PASSWORD": "secret",
    "TEAMS_PASSWORD": "secret",
    "TEAMS_FLOW": "https://flow.example.com/hook",
}


def test_every_kind_has_an_example() -> None:
    shown = "".join(str(example.values) for example in EXAMPLES)
    assert [kind for kind in KINDS if f"kind: {kind}" not in shown] == []


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_is_a_file_of_channels(example: str, tmp_path: Path) -> None:
    (tmp_path / "channels.yaml").write_text(example)
    assert read_channels(tmp_path / "channels.yaml", {kind: row.config for kind, row in KINDS.items()}, SECRETS)


def test_example_of_drills_loads(tmp_path: Path) -> None:
    (example,) = find_blocks(read_page("drills"), "yaml")
    (tmp_path / "drills.yaml").write_text(example)
    assert [drill.id for drill in read_drills(tmp_path / "drills.yaml").drills] == ["unknown-recipient"]
