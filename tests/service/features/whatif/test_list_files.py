"""Rules whose lists are files: attested and replayed with the entries of the lists."""

from pathlib import Path

import pytest

from sayso.errors import InvalidInput
from service.features.rulebook.versions import attest
from service.features.whatif.replays import ReplayRequest, RuleReplays
from tests.service.features.rulebook.test_operations_versions import Start, default_of, start, write
from tests.service.features.whatif.test_operations_replays import FOREVER, refund, replays
from tests.service.worlds import World

__all__ = ["replays", "start"]

RULES = (
    "version: 1\ndefault: deny\nlists: {safe: {file: safe.txt}}\nrules: [{id: a, tool: {in: safe}, action: allow}]\n"
)


async def test_attestation_covers_the_entries_of_lists(start: Start, tmp_path: Path) -> None:
    (tmp_path / "safe.txt").write_text("look_up\n")
    async with start("service", "version: 1\ndefault: allow\nrules: []\n", needed=1) as service:
        with pytest.raises(InvalidInput, match=r"the file 'safe.txt' is not here"):
            await attest(service, RULES, "service.yaml", "anna")
        await attest(service, RULES, "service.yaml", "anna", {"safe.txt": "look_up\n"})
        write(tmp_path, "service", RULES)
        assert await default_of(service, "service") == "deny"
        assert service.rules.policy().lists == {"safe": ("look_up",)}
        (tmp_path / "safe.txt").write_text("look_up\npay_out\n")
        await default_of(service, "service")
        assert service.rules.policy().lists == {"safe": ("look_up",)}
        assert service.rules.held_back is not None
        await attest(service, RULES, "service.yaml", "anna", {"safe.txt": "look_up\npay_out\n"})
        await default_of(service, "service")
        assert service.rules.policy().lists == {"safe": ("look_up", "pay_out")}


async def test_replay_judges_with_the_entries_of_lists(world: World, replays: RuleReplays) -> None:
    await refund(world.wiring, 250, "approve")
    for text, now in (("refund\n", "allowed"), ("other\n", "denied")):
        asked = ReplayRequest(RULES, "draft.yaml", *FOREVER, lists={"safe.txt": text})
        found = await replays.wait((await replays.start(asked, "root")).id, 60)
        assert [str(cell.now) for cell in found.result.list_cells()] == [now]
