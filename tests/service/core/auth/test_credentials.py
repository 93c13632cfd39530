"""A credential is looked up once for all who ask at the same time, and never remembered beyond its end."""

import asyncio
import gc
from pathlib import Path

import pytest
from redis.asyncio import Redis

from sayso.core.clock import now_ms
from sayso.errors import NotAuthenticated
from service.assembly import assemble
from service.core.settings import Settings
from tests.builders import PASSWORD, make_agent, make_person
from tests.waits import until


async def gets(redis: Redis) -> int:
    stats = await redis.info("commandstats")
    return int(stats.get("cmdstat_get", {}).get("calls", 0))


async def test_many_who_ask_at_once_with_one_key_take_one_look(clean_store_url: str) -> None:
    async with assemble(Settings(redis_url=clean_store_url)) as wiring, Redis.from_url(clean_store_url) as redis:
        key = await make_agent(wiring, "demo")
        await redis.config_resetstat()
        found = await asyncio.gather(*(wiring.credentials.identify(key) for _ in range(500)))
        assert {one.name for one in found} == {"demo"}
        assert await gets(redis) == 2  # of a key, and of a session


async def test_who_gives_up_waiting_for_the_look_does_not_spoil_it_for_the_others(clean_store_url: str) -> None:
    async with assemble(Settings(redis_url=clean_store_url)) as wiring:
        key = await make_agent(wiring, "demo")
        first, second = (asyncio.create_task(wiring.credentials.identify(key)) for _ in range(2))
        await asyncio.sleep(0)  # both have asked
        first.cancel()
        assert (await second).name == "demo"


async def test_a_look_that_nobody_waited_for_is_not_believed_later(clean_store_url: str) -> None:
    async with assemble(Settings(redis_url=clean_store_url)) as wiring:
        key = await make_agent(wiring, "demo")
        asking = asyncio.create_task(wiring.credentials.identify(key))
        await asyncio.sleep(0)  # it has asked
        asking.cancel()

        async def ended() -> bool:
            return not wiring.credentials._pending

        await until(ended)
        (kept,) = await wiring.api_keys.list_all()
        await wiring.api_keys.revoke(kept.id)
        with pytest.raises(NotAuthenticated):
            await wiring.credentials.identify(key)


async def test_failed_look_up_that_nobody_waits_for_is_not_reported(tmp_path: Path) -> None:
    """A store that takes connections, answers nothing, and then closes them."""
    reported: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    asked, closes, path = asyncio.Event(), asyncio.Event(), str(tmp_path / "silent.sock")

    async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await closes.wait()
        writer.close()

    async with await asyncio.start_unix_server(take, path), assemble(Settings(redis_url=f"unix://{path}")) as wiring:
        asking = asyncio.create_task(wiring.credentials.identify("sayso_agent_x"))
        await asked.wait()
        (look_up,) = wiring.credentials._pending.values()
        asking.cancel()
        await asyncio.wait((asking,))
        closes.set()
        await asyncio.wait((look_up,))
    del asking, look_up  # asyncio reports an error when it is forgotten
    gc.collect()
    assert reported == []


async def test_a_key_that_is_revoked_while_it_is_rotated_stays_revoked(clean_store_url: str) -> None:
    async with assemble(Settings(redis_url=clean_store_url)) as wiring:
        for _ in range(10):
            old, secret = await wiring.api_keys.create("demo")
            await asyncio.gather(
                wiring.api_keys.rotate(old.id, 3600),
                wiring.api_keys.revoke(old.id),
                return_exceptions=True,
            )
            with pytest.raises(NotAuthenticated):
                await wiring.credentials.identify(secret)


async def test_a_reviewer_who_is_shut_out_while_their_password_is_set_stays_out(clean_store_url: str) -> None:
    async with assemble(Settings(redis_url=clean_store_url)) as wiring:
        await make_person(wiring, "anna")
        await asyncio.gather(
            wiring.reviewers.set_password("anna", "a new password"),
            wiring.reviewers.deactivate("anna"),
        )
        with pytest.raises(NotAuthenticated):
            await wiring.reviewers.sign_in("anna", "a new password")


async def test_a_session_of_a_password_that_was_replaced_while_signing_in_does_not_hold(clean_store_url: str) -> None:
    async with assemble(Settings(redis_url=clean_store_url)) as wiring:
        await make_person(wiring, "anna")

        async def replace() -> None:
            """What a new password comes to, without the time it takes to hash it."""
            anna = await wiring.reviewers.find("anna")
            assert anna is not None
            later = anna.model_copy(update={"password_set_at_ms": now_ms() + 1})
            await wiring.reviewers._people.save_reviewer(later)

        opened, _ = await asyncio.gather(wiring.reviewers.sign_in("anna", PASSWORD), replace())
        with pytest.raises(NotAuthenticated):
            await wiring.credentials.identify(opened.token)
