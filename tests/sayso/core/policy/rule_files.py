"""Rule files for tests, and how to parse them."""

from typing import Any

import pytest

from sayso.core.policy.files.reading import RulebookError, parse_rulebook

HEAD = "version: 1\ndefault: allow\nrules:\n"


def parse(text: str, **options: Any) -> Any:
    return parse_rulebook(text.encode(), file="policy.yaml", **options)


def read_problems(text: str) -> list[str]:
    """Return the faults of a rulebook as text."""
    with pytest.raises(RulebookError) as caught:
        parse(text)
    return str(caught.value).splitlines()
