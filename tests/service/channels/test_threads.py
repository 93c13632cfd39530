"""Cards of large calls are built and written in threads: they take up to a second, and the loop serves others."""

import ast
import sys

from service.channels.deciding import read_card
from service.core.settings import CHECKOUT
from service.core.wiring import Wiring
from tests.builders import make_pending
from tests.sayso.samples import ask

_WORK = {"build_card", "build_event", "render", "render_card"}
FILES = [*(CHECKOUT / "service/channels").rglob("*.py"), *(CHECKOUT / "workers").rglob("*.py")]


def list_calls_in_loops(source: str) -> list[str]:
    """Return the calls in asynchronous functions that build or write a card at once."""
    tree = ast.parse(source)
    loops = [one for one in ast.walk(tree) if isinstance(one, ast.AsyncFunctionDef)]
    calls = [one for loop in loops for one in ast.walk(loop) if isinstance(one, ast.Call)]
    return [ast.unparse(one) for one in calls if ast.unparse(one.func).rpartition(".")[2] in _WORK]


def test_no_loop_builds_or_writes_a_card() -> None:
    assert list_calls_in_loops("async def send(self, card):\n    await self.post(self.render(card))") == [
        "self.render(card)"
    ]
    found = {path.name: calls for path in FILES if (calls := list_calls_in_loops(path.read_text(encoding="utf-8")))}
    assert not found, "use asyncio.to_thread"


async def test_read_card_builds_the_card_of_a_large_call_in_a_thread(wiring: Wiring) -> None:
    one = ask()
    tool = one.tool.model_copy(update={"args": {"text": "a\u0430 " * 60_000}})
    record = await make_pending(wiring, one.model_copy(update={"tool": tool}))
    in_loop: set[str] = set()
    sys.setprofile(lambda frame, _event, _arg: in_loop.add(frame.f_code.co_name))
    try:
        card = await read_card(wiring, record, record.items[0])
    finally:
        sys.setprofile(None)
    assert "look" in " ".join(card.warnings)
    assert "read_card" in in_loop
    assert in_loop.isdisjoint({"build_card", "describe_characters", "find_lookalikes"})
