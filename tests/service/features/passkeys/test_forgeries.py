"""No forged assertion is accepted: each kind by name, and random ones. `FORGED=1000000` tries a million of these."""

import os

import pytest

from tests.fakes.authenticator import Authenticator
from tests.service.edge.web.sites import OWN, Visit
from tests.service.features.passkeys.forging import (
    COUNTER,
    Forged,
    accept,
    accept_new,
    check_unreadable,
    is_refused,
    list_forged,
    list_forged_new,
    list_random,
    list_unreadable_challenges,
    make_new,
    make_valid,
)
from tests.service.features.passkeys.people import (
    ADDING,
    SIGN_IN,
    SIGN_IN_OPTIONS,
    add_passkey,
    read_log,
    read_name,
    read_options,
    sign_in,
)

FORGED, FORGED_NEW = dict(list_forged()), dict(list_forged_new())
RANDOM, SEED = int(os.environ.get("FORGED", "10000")), int(os.environ.get("SEED", "1"))


@pytest.mark.parametrize("alg", ["ES256", "EdDSA", "RS256"])
def test_assertion_of_the_passkey_is_accepted(alg: str) -> None:
    assert accept(make_valid(alg), alg) == COUNTER + 1


@pytest.mark.parametrize("name", FORGED)
def test_forged_assertion_is_refused(name: str) -> None:
    assert is_refused(accept, FORGED[name])


def test_new_passkey_is_accepted() -> None:
    assert accept_new(make_new())


@pytest.mark.parametrize("name", FORGED_NEW)
def test_forged_new_passkey_is_refused(name: str) -> None:
    assert is_refused(accept_new, FORGED_NEW[name])


def test_forged_assertions_have_many_kinds() -> None:
    assert len(FORGED) >= 80
    assert len(FORGED_NEW) >= 30


def test_random_assertions_are_refused() -> None:
    def check(drawn: tuple[str, Forged]) -> int:
        return accept(drawn[1], drawn[0])

    accepted = [drawn for drawn in list_random(RANDOM, SEED) if not is_refused(check, drawn)]
    assert accepted == []


def test_client_data_without_a_challenge_is_refused() -> None:
    assert all(is_refused(check_unreadable, client_data) for client_data in list_unreadable_challenges())


async def test_assertion_signs_in_once(anna: Visit) -> None:
    device = await add_passkey(anna)
    anna.client.cookies.clear()
    answer = device.use(await read_options(anna, SIGN_IN_OPTIONS))
    cookies = dict(anna.client.cookies)
    assert (await anna.client.post(SIGN_IN, data={"signed": answer}, headers=OWN)).status_code == 303
    anna.client.cookies.clear()
    anna.client.cookies.update(cookies)
    again = await anna.client.post(SIGN_IN, data={"signed": answer}, headers=OWN)
    assert again.status_code == 401
    assert "or sent twice" in again.text
    assert await read_name(anna) is None
    assert (await read_log(anna))[0].target == "passkey"


async def test_assertion_of_another_browser_is_refused(anna: Visit) -> None:
    device = await add_passkey(anna)
    answer = device.use(await read_options(anna, SIGN_IN_OPTIONS))
    anna.client.cookies.clear()
    assert (await anna.client.post(SIGN_IN, data={"signed": answer}, headers=OWN)).status_code == 401


async def test_challenge_of_a_new_passkey_signs_nobody_in(anna: Visit) -> None:
    device = await add_passkey(anna)
    answer = device.use(await read_options(anna))
    assert (await anna.client.post(SIGN_IN, data={"signed": answer}, headers=OWN)).status_code == 401


async def test_challenge_of_a_sign_in_adds_no_passkey(anna: Visit) -> None:
    options = {**await read_options(anna), "challenge": (await read_options(anna, SIGN_IN_OPTIONS))["challenge"]}
    page = await anna.send(ADDING, 401, act="add", name="Phone", signed=Authenticator().make(options))
    assert "or sent twice" in page


async def test_assertion_without_a_handle_signs_nobody_in(anna: Visit) -> None:
    device = await add_passkey(anna)
    assert (await sign_in(anna, device, user_handle="")).status_code == 401


async def test_unknown_passkey_signs_nobody_in(anna: Visit) -> None:
    stranger = Authenticator(handle=(await add_passkey(anna)).handle)
    assert "is not known here" in (await sign_in(anna, stranger)).text


async def test_counter_that_went_back_signs_nobody_in(anna: Visit) -> None:
    device = await add_passkey(anna)
    device.counter = 7
    assert (await sign_in(anna, device)).status_code == 303
    device.counter = 7 - 1
    assert (await sign_in(anna, device)).status_code == 401
    assert (await sign_in(anna, device)).status_code == 401  # the eighth signature, as the last one that counted
    assert (await sign_in(anna, device)).status_code == 303
