"""One process at a time listens to a channel, and another takes over."""

import asyncio

from service.channels.base import Channel
from service.channels.kinds import Listen
from service.core.store.attempts import NamedLeases
from service.core.wiring import Wiring
from tests.channels import MemoryChannel
from workers.notify.notifier import listen_by_lease


async def test_one_of_two_processes_listens_and_the_other_takes_over(wiring: Wiring) -> None:
    heard: list[str] = []
    began = {name: asyncio.Event() for name in ("first", "second")}

    def listener(name: str) -> Listen:
        async def listen(channel: Channel, parts: Wiring, ending: asyncio.Event) -> None:
            heard.append(name)
            began[name].set()
            await ending.wait()

        return listen

    stops = {name: asyncio.Event() for name in began}
    tasks = {}
    for name, stop in stops.items():
        tasks[name] = asyncio.create_task(listen_by_lease(wiring, MemoryChannel(), listener(name), stop, 0.05))
        if name == "first":
            await asyncio.wait_for(began["first"].wait(), 10)
    assert await wiring.part(NamedLeases).hold("listen:memory", "third") is False
    assert heard == ["first"]
    stops["first"].set()
    await asyncio.wait_for(began["second"].wait(), 10)
    assert heard == ["first", "second"]
    stops["second"].set()
    await asyncio.gather(*tasks.values())
    assert await wiring.part(NamedLeases).hold("listen:memory", "third"), "the lease was given up"


async def test_listener_starts_again_after_an_error(wiring: Wiring) -> None:
    stop, tries = asyncio.Event(), []

    async def listen(channel: Channel, parts: Wiring, ending: asyncio.Event) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("the socket broke")
        stop.set()

    await asyncio.wait_for(listen_by_lease(wiring, MemoryChannel(), listen, stop, 0.05), 10)
    assert len(tries) == 2
