"""With `SAYSO_REPLICAS` nothing is confirmed before replicas have it, and a repeat is answered once they do."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.suspensions import Status
from sayso.errors import Unavailable
from service.assembly import assemble
from service.core.settings import Settings
from service.core.store.connection.connecting import WeakDurability, check_durability
from service.core.store.connection.formats import check_format
from service.core.wiring import Wiring
from tests.builders import make_pending, person
from tests.servers import Address
from tests.waits import until


@pytest.fixture
async def wiring(address: Address, tmp_path: Path, rules: str) -> AsyncIterator[Wiring]:
    await check_format(address.url)
    policy = tmp_path / "policy.yaml"
    policy.write_text(rules)
    settings = Settings(home=tmp_path / "home", redis_url=address.url, policy=policy, replicas=1)
    async with assemble(settings) as wiring:
        yield wiring


async def test_a_confirmed_change_survives_a_fail_over(wiring: Wiring, address: Address) -> None:
    address.add_replica()
    records = [await make_pending(wiring) for _ in range(5)]
    address.fail_over()
    async with assemble(wiring.settings.model_copy(update={"replicas": 0})) as other:
        assert [(await other.desk.suspensions.read(record.id)).record.id for record in records] == [
            record.id for record in records
        ]


def _allow(address: Address, command: str) -> None:
    address.primary.acl_setuser(
        "default",
        enabled=True,
        nopass=True,
        keys=["*"],
        channels=["*"],
        categories=["+@all"],
        commands=[command],
    )


@pytest.mark.parametrize("command", ["waitaof", "wait"])
async def test_a_decision_without_a_replica_is_saved_and_confirmed_when_it_is_repeated(
    wiring: Wiring, address: Address, command: str
) -> None:
    if command == "wait":  # an earlier server does not know the other
        _allow(address, "-waitaof")
    wiring.store.confirmer.replicas = 0
    record = await make_pending(wiring)
    wiring.store.confirmer.replicas = 1
    request = DecisionRequest(action="approve", digest=record.items[0].digest)
    with pytest.raises(Unavailable, match="saved on the primary") as refused:
        await wiring.desk.decide(record.id, "i1", request, person("anna"), key="k")
    assert refused.value.facts["retry_after_s"] == 2
    assert (await wiring.desk.suspensions.read(record.id)).record.status is Status.DECIDED
    _allow(address, "+waitaof")
    address.add_replica()

    async def is_confirmed() -> bool:
        """Whether the repeat is answered. It is refused while a primary with its first replica gets another id."""
        try:
            return (await wiring.desk.decide(record.id, "i1", request, person("anna"), key="k")).repeated
        except Unavailable:
            return False

    await until(is_confirmed)


async def test_a_store_that_writes_without_replicas_is_weak(address: Address) -> None:
    with pytest.raises(WeakDurability, match="min-replicas-to-write is 0, not 1"):
        await check_durability(address.url, allow_weak=False, replicas=1)
    address.add_replica()
    address.primary.config_set("min-replicas-to-write", 1)
    assert await check_durability(address.url, allow_weak=False, replicas=1) is None
