"""The first start creates an admin and the demo agent's key; later starts keep them."""

from pathlib import Path

from pydantic import SecretStr

from service.assembly import assemble
from service.core.settings import Settings
from service.setup import set_up


async def lines_of(url: str, password: str | None = None, key: str | None = None) -> list[str]:
    settings = Settings(
        redis_url=url,
        admin_password=SecretStr(password) if password else None,
        key=SecretStr(key) if key else None,
    )
    return [line async for line in set_up(settings)]


async def signs_in(url: str, password: str) -> bool:
    async with assemble(Settings(redis_url=url)) as wiring:
        return await wiring.reviewers.has_password("admin", password)


async def names_of(url: str, *keys: str) -> list[str]:
    async with assemble(Settings(redis_url=url)) as wiring:
        return [(await wiring.credentials.identify(key)).name for key in keys]


async def test_what_is_made_up_is_printed_once_and_holds(clean_store_url: str) -> None:
    admin, agent = await lines_of(clean_store_url)
    assert "(shown this once)" in admin
    assert "(shown this once)" in agent
    password = admin.partition("the password ")[2].split()[0]
    key = agent.partition("the key ")[2].split()[0]
    assert await signs_in(clean_store_url, password)
    assert await names_of(clean_store_url, key) == ["demo"]
    again = "\n".join(await lines_of(clean_store_url))
    assert "shown this once" not in again
    assert password not in again
    assert key not in again
    assert await signs_in(clean_store_url, password)


async def test_what_the_settings_say_holds_and_is_not_printed(clean_store_url: str) -> None:
    for _ in range(2):
        lines = await lines_of(clean_store_url, "a known password", "a-known-key-of-length")
        assert "a known password" not in str(lines)
        assert "a-known-key-of-length" not in str(lines)
        assert "http://127.0.0.1:8321" in lines[0]
    assert await signs_in(clean_store_url, "a known password")
    assert await names_of(clean_store_url, "a-known-key-of-length") == ["demo"]


async def test_a_password_that_was_changed_in_the_settings_is_changed(clean_store_url: str) -> None:
    await lines_of(clean_store_url, "a known password")
    await lines_of(clean_store_url, "another password")
    assert await signs_in(clean_store_url, "another password")


async def test_a_key_that_was_revoked_stays_revoked(clean_store_url: str) -> None:
    await lines_of(clean_store_url, "a known password", "a-known-key-of-length")
    async with assemble(Settings(redis_url=clean_store_url)) as wiring:
        (key,) = await wiring.api_keys.list_all()
        await wiring.api_keys.revoke(key.id)
    _, line = await lines_of(clean_store_url, "a known password", "a-known-key-of-length")
    assert "was revoked" in line
    async with assemble(Settings(redis_url=clean_store_url)) as wiring:
        assert [one.revoked_at_ms is not None for one in await wiring.api_keys.list_all()] == [True]


async def test_other_key_is_not_reported_as_the_demo_key(clean_store_url: str) -> None:
    async with assemble(Settings(redis_url=clean_store_url)) as wiring:
        await wiring.api_keys.create("other", "the-key-of-another-agent")
        ended, _ = await wiring.api_keys.create("demo", "a-key-that-has-ended")
        await wiring.api_keys.rotate(ended.id, 0)
    for key, why in (("the-key-of-another-agent", "somebody else"), ("a-key-that-has-ended", "has ended")):
        _, line = await lines_of(clean_store_url, key=key)
        assert "SAYSO_KEY does not hold" in line
        assert why in line


async def test_deactivated_admin_is_not_asked_to_sign_in(clean_store_url: str) -> None:
    await lines_of(clean_store_url, "a known password")
    async with assemble(Settings(redis_url=clean_store_url)) as wiring:
        await wiring.reviewers.add("root", "a known password", ("admin",))
        await wiring.reviewers.deactivate("admin")
    for password in (None, "a known password"):
        line, _ = await lines_of(clean_store_url, password)
        assert "was shut out" in line


async def test_production_gets_no_demo_key_unless_one_is_set(clean_store_url: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ndefault: deny\nrules: []\n")
    given = Settings(env="production", public_url="https://desk.example.com", policy=policy, redis_url=clean_store_url)
    for key, made in ((None, "No key is made"), (SecretStr("k" * 32), "has the key in SAYSO_KEY")):
        _, agent = [line async for line in set_up(given.model_copy(update={"key": key}))]
        assert made in agent
        async with assemble(Settings(redis_url=clean_store_url)) as wiring:
            assert len(await wiring.api_keys.list_all()) == (key is not None)
