"""Contacts: linked by a code, once, to one person."""

import asyncio

import pytest
from redis.asyncio import Redis

from sayso.errors import Conflict, InvalidInput, NotFound, TooManyRequests
from service.core.auth.contacts import BY_ADDRESS, CODE_ALPHABET, CODE_VALID_MS, CODES
from service.core.wiring import Wiring
from tests.builders import make_person


@pytest.fixture
async def people(wiring: Wiring) -> None:
    await make_person(wiring, "anna")
    await make_person(wiring, "ben")


@pytest.mark.usefixtures("people")
async def test_code_links_an_address_once(wiring: Wiring) -> None:
    made = await wiring.contacts.create_code("anna", "telegram")
    assert len(made.code) == 8
    assert set(made.code) <= set(CODE_ALPHABET)
    contact = await wiring.contacts.redeem_code(
        "telegram", f" {made.code[:4].lower()}-{made.code[4:]}", "4711", "@anna"
    )
    assert (contact.person, contact.address, contact.label) == ("anna", "4711", "@anna")
    with pytest.raises(InvalidInput, match="not valid for telegram"):
        await wiring.contacts.redeem_code("telegram", made.code, "4712")
    assert await wiring.contacts.find_person("telegram", "4711") == "anna"
    assert await wiring.contacts.find_person("telegram", "4712") is None
    assert await wiring.contacts.find_person("slack", "4711") is None
    assert await wiring.contacts.addresses_of("anna", "telegram") == ["4711"]
    assert await wiring.contacts.addresses_of("anna", "slack") == []


@pytest.mark.usefixtures("people")
async def test_code_is_redeemed_once_by_concurrent_requests(wiring: Wiring) -> None:
    code = (await wiring.contacts.create_code("anna", "telegram")).code
    redeeming = (wiring.contacts.redeem_code("telegram", code, f"a{number}") for number in range(8))
    results = await asyncio.gather(*redeeming, return_exceptions=True)
    assert sum(not isinstance(one, BaseException) for one in results) == 1
    assert len(await wiring.contacts.list_of("anna")) == 1


@pytest.mark.usefixtures("people")
async def test_code_counts_for_its_channel_and_ten_minutes(wiring: Wiring, clean_store_url: str) -> None:
    code = (await wiring.contacts.create_code("anna", "telegram")).code
    with pytest.raises(InvalidInput, match="not valid for slack"):
        await wiring.contacts.redeem_code("slack", code, "U1")
    async with Redis.from_url(clean_store_url) as redis:
        (key,) = [name async for name in redis.scan_iter("*contact-code:*")]
        assert 0 < await redis.pttl(key) <= CODE_VALID_MS == 600_000
        assert code.encode() not in key
        await redis.delete(key)
    with pytest.raises(InvalidInput, match="not valid for telegram"):
        await wiring.contacts.redeem_code("telegram", code, "4711")


@pytest.mark.usefixtures("people")
async def test_address_belongs_to_one_person(wiring: Wiring) -> None:
    code = (await wiring.contacts.create_code("anna", "telegram")).code
    contact = await wiring.contacts.redeem_code("telegram", code, "4711")
    again = (await wiring.contacts.create_code("anna", "telegram")).code
    assert (await wiring.contacts.redeem_code("telegram", again, "4711")).id == contact.id
    other = (await wiring.contacts.create_code("ben", "telegram")).code
    with pytest.raises(Conflict, match="linked to another person"):
        await wiring.contacts.redeem_code("telegram", other, "4711")
    assert await wiring.contacts.find_person("telegram", "4711") == "anna"
    await wiring.contacts.unlink("anna", contact.id, "anna")
    assert await wiring.contacts.find_person("telegram", "4711") is None
    await wiring.contacts.redeem_code("telegram", other, "4711")
    assert await wiring.contacts.find_person("telegram", "4711") == "ben"
    assert await wiring.contacts.list_of("anna") == []


@pytest.mark.usefixtures("people")
async def test_unlink_only_contacts_of_the_person(wiring: Wiring) -> None:
    code = (await wiring.contacts.create_code("anna", "telegram")).code
    contact = await wiring.contacts.redeem_code("telegram", code, "4711")
    with pytest.raises(NotFound, match="ben has no contact"):
        await wiring.contacts.unlink("ben", contact.id, "ben")
    assert await wiring.contacts.find_person("telegram", "4711") == "anna"


@pytest.mark.usefixtures("people")
async def test_deactivated_person_is_not_found(wiring: Wiring) -> None:
    code = (await wiring.contacts.create_code("anna", "telegram")).code
    await wiring.contacts.redeem_code("telegram", code, "4711")
    second = (await wiring.contacts.create_code("anna", "telegram")).code
    await wiring.reviewers.deactivate("anna")
    assert await wiring.contacts.find_person("telegram", "4711") is None
    assert await wiring.contacts.addresses_of("anna", "telegram") == []
    with pytest.raises(InvalidInput, match="anna is deactivated"):
        await wiring.contacts.redeem_code("telegram", second, "4712")


@pytest.mark.usefixtures("people")
async def test_redeem_code_limits_guesses_from_an_address(wiring: Wiring) -> None:
    for _ in range(BY_ADDRESS.most):
        with pytest.raises(InvalidInput):
            await wiring.contacts.redeem_code("telegram", "AAAAAAAA", "4711")
    code = (await wiring.contacts.create_code("anna", "telegram")).code
    with pytest.raises(TooManyRequests):
        await wiring.contacts.redeem_code("telegram", code, "4711")
    assert (await wiring.contacts.redeem_code("telegram", code, "4712")).person == "anna"


@pytest.mark.usefixtures("people")
async def test_create_code_limits_codes_and_names(wiring: Wiring) -> None:
    for name in ("", "Slack", "a b", "x" * 41):
        with pytest.raises(InvalidInput, match="channel's name"):
            await wiring.contacts.create_code("anna", name)
    for _ in range(CODES.most):
        await wiring.contacts.create_code("anna", "slack")
    with pytest.raises(TooManyRequests):
        await wiring.contacts.create_code("anna", "slack")


@pytest.mark.parametrize("address", ["", "x" * 321])
async def test_redeem_code_refuses_an_address_of_bad_length(wiring: Wiring, address: str) -> None:
    with pytest.raises(InvalidInput, match="1 to 320 characters"):
        await wiring.contacts.redeem_code("telegram", "AAAAAAAA", address)
