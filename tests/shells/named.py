"""Named shell texts: ways round a rule that allows `git log`, hostile texts, and what coding agents send daily."""

import json
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parent


class Way(NamedTuple):
    """A command that tries to do more than `git log`; `pushes` says that it is `git push` in the end."""

    name: str
    command: str
    pushes: bool


WAYS = [Way(**json.loads(line)) for line in (_FOLDER / "ways.jsonl").read_text(encoding="utf-8").splitlines()]
REFUSED: list[str] = json.loads((_FOLDER / "refused.json").read_text(encoding="utf-8"))
"""Texts whose effect they do not show."""
ORDINARY: list[str] = json.loads((_FOLDER / "ordinary.json").read_text(encoding="utf-8"))
"""What coding agents send daily."""
