"""Every example on the SDK's page is code that runs."""

import re
from typing import Any

import pytest

from service.core.settings import CHECKOUT

BLOCKS = re.findall(r"^```python\n(.*?)^```", (CHECKOUT / "docs" / "sdk.md").read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("block", BLOCKS[1:], ids=range(1, len(BLOCKS)))
def test_tutorial_examples_are_complete(block: str) -> None:
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(block, "docs/sdk.md", "exec"), names)  # noqa: S102  it is our own page
    tests = [thing for name, thing in names.items() if name.startswith("test_")]
    for test in tests:
        test()
    assert tests or "gate" in names
