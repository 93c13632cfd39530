"""What a file of checkpoints knows of a store that went back: calls that may have run are in doubt, not started."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import pytest

from sayso.core.key_files import create_key_file
from sayso.core.policy.external import ExternalCall
from sayso.core.records.freezes import Revocations
from sayso.core.records.suspensions import ResumeSpec, SuspensionRecord
from sayso.core.records.tools import ToolCall
from sayso.errors import AlreadyRedeemed, Unavailable
from service.assembly import assemble
from service.core.settings import Settings
from service.core.store.connection.formats import check_format
from service.core.store.connection.macs import Macs
from service.core.wiring import Wiring
from service.features.evidence.keeping import keep_checkpoints
from service.features.evidence.keeping import keys_of as keys_in
from service.features.evidence.store import CheckpointStore
from tests.builders import REFUND, approve, person, run_ref
from tests.servers import Address
from tests.waits import until

Open = Callable[[str], AbstractAsyncContextManager[Wiring]]


@pytest.fixture
def sink(tmp_path: Path) -> Path:
    return tmp_path / "sink" / "checkpoints.jsonl"


@pytest.fixture
async def open_process(address: Address, tmp_path: Path, rules: str, sink: Path) -> Open:
    """Opens a process whose home has this name, with its notes of the calls that it started."""
    keys_in.cache_clear()
    policy, keys = tmp_path / "policy.yaml", tmp_path / "keys"
    policy.write_text(rules)
    create_key_file(keys)
    await check_format(address.url, Macs(keys))
    settings = Settings(redis_url=address.url, checkpoints=(sink.as_uri(),), policy=policy, key_file=keys)
    return lambda name: assemble(settings.model_copy(update={"home": tmp_path / name}))


async def ask(wiring: Wiring) -> SuspensionRecord:
    call = ToolCall(call_id="c", index=0, name="refund", args={"order": "A", "amount": 1})
    return (await wiring.desk.suspend(run_ref(), [ExternalCall(call, REFUND)], ResumeSpec(mode="poll"))).record


async def redeem(wiring: Wiring, record: SuspensionRecord, key: str = "k") -> None:
    await wiring.desk.client_redeem(record.id, "i1", key, Revocations())


async def read(wiring: Wiring, record: SuspensionRecord) -> SuspensionRecord:
    return (await wiring.desk.suspensions.read(record.id)).record


async def lose(address: Address, open_process: Open) -> tuple[SuspensionRecord, ...]:
    """Lose events of an approved and a pending call, and a whole run, but none of the last approved call."""
    async with open_process("clock") as clock:
        async with open_process("worker") as wiring:
            approved, pending, kept = [await approve(wiring, await ask(wiring)), await ask(wiring), await ask(wiring)]
            kept = await approve(wiring, kept)
            copy = address.copy()
            await redeem(wiring, approved)
            await redeem(wiring, await approve(wiring, pending))
            gone = await ask(wiring)
        await keep_checkpoints(clock)
    address.restore(copy)
    return approved, pending, kept, gone


def forge(sink: Path) -> None:
    """Change a head in the only line, and add one that was cut."""
    made = json.loads(sink.read_text())
    made["leaves"][0][1] += 1
    sink.write_text(f"{json.dumps(made)}\ncut")


async def compare(clock: Wiring) -> None:
    """Repeat the tick until it has compared; until each process has compared its commits, the store takes none."""

    async def is_done() -> bool:
        with suppress(Unavailable):
            await keep_checkpoints(clock)
        frozen = await clock.freezes.in_force(fresh=True)
        return bool(frozen) and await clock.part(CheckpointStore).is_compared(frozen[0].id)

    await until(is_done)


async def test_calls_whose_redeem_a_checkpoint_knows_are_in_doubt(address: Address, open_process: Open) -> None:
    approved, pending, kept, gone = await lose(address, open_process)
    async with open_process("clock") as clock:
        await compare(clock)
        await keep_checkpoints(clock)
        acts = (await clock.activity.read_page(0, 10)).entries
        assert [entry.target for entry in acts if entry.act == "run_lost"] == [gone.run.id]
        (freeze,) = await clock.freezes.in_force(fresh=True)
        await clock.freezes.unfreeze(freeze.id, person("root"), checked="The bank shows both refunds.")
        following = (await read(clock, approved)).following_id
        assert following is not None
        assert (await clock.desk.suspensions.read(following)).record.items[0].doubt is not None
        with pytest.raises(AlreadyRedeemed, match="may have run"):
            await redeem(clock, approved, "another")
        assert str((await read(clock, pending)).items[0].prompt.reason).count("The store went back") == 1
        await redeem(clock, kept)


async def test_lines_that_the_desk_has_not_signed_put_nothing_in_doubt(
    address: Address, open_process: Open, sink: Path
) -> None:
    approved, *_ = await lose(address, open_process)
    forge(sink)
    async with open_process("clock") as clock:
        await compare(clock)
        assert (await read(clock, approved)).following_id is None
