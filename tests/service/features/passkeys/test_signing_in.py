"""People add passkeys, and sign in with them."""

from pathlib import Path

import pytest

from sayso.core.key_files import create_key_file
from sayso.core.records.proofs import encode_base64url
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.connection.connecting import connect
from service.core.store.keys import keys_of
from service.core.store.people import Made, People
from service.edge.web.sessions import cookie_name
from service.features.passkeys.accounts import BEGUN, MOST_PASSKEYS, PasskeyAccounts
from service.features.passkeys.store import Passkey, Passkeys
from tests.fakes.authenticator import Authenticator
from tests.service.edge.web.sites import CSRF, OWN, Visit, add_people, let_in, settings_for, visit
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
from tests.service.features.sign_in.browsers import write_file


@pytest.mark.parametrize("alg", ["ES256", "EdDSA", "RS256"])
async def test_passkey_signs_in_without_a_name(anna: Visit, alg: str) -> None:
    device = await add_passkey(anna, alg=alg)
    anna.client.cookies.clear()
    answer = await sign_in(anna, device, "/history")
    assert (answer.status_code, answer.headers["location"]) == (303, "/history")
    assert await read_name(anna) == "anna"
    log = [(entry.act, entry.by, entry.data) for entry in await read_log(anna)]
    assert ("passkey_added", "anna", {"name": "Phone"}) in log
    assert any(act == "signed_in" and by == "anna" and data["passkey"] == "Phone" for act, by, data in log)


async def test_options_ask_for_a_verified_person_and_a_passkey_that_is_found(anna: Visit) -> None:
    made = await read_options(anna)
    assert made["rp"]["id"] == "localhost"
    assert made["authenticatorSelection"] == {
        "residentKey": "required",
        "requireResidentKey": True,
        "userVerification": "required",
    }
    used = await read_options(anna, SIGN_IN_OPTIONS)
    assert (used["rpId"], used["userVerification"], used["allowCredentials"]) == ("localhost", "required", [])


async def test_several_passkeys_have_one_handle_and_exclude_each_other(anna: Visit) -> None:
    first = await add_passkey(anna, "Phone")
    options = await read_options(anna)
    assert options["user"]["id"] == first.handle
    assert [row["id"] for row in options["excludeCredentials"]] == [
        passkey.id for passkey in await anna.wiring.part(Passkeys).list_of("anna")
    ]
    second = await add_passkey(anna, "Key")
    for device in (first, second):
        assert (await sign_in(anna, device)).status_code == 303


async def test_passkey_is_named_and_removed(anna: Visit) -> None:
    device = await add_passkey(anna)
    (passkey,) = await anna.wiring.part(Passkeys).list_of("anna")
    await anna.send(ADDING, act="name", which=passkey.id, name="  Old\tphone ")
    assert "Old phone" in await anna.read(ADDING)
    anna.client.cookies.clear()
    await sign_in(anna, device)
    opened = dict(anna.client.cookies)
    anna.client.cookies.clear()
    anna.client.cookies.set(cookie_name(anna.wiring.settings), await let_in(anna.wiring.settings, "anna"))
    await anna.send(ADDING, act="remove", which=passkey.id)
    assert "You have no passkey." in await anna.read(ADDING)
    anna.client.cookies.update(opened)
    assert await read_name(anna) is None  # the session that it opened has ended
    assert (await sign_in(anna, device)).status_code == 401
    acts = [entry.act for entry in await read_log(anna)]
    assert {"passkey_renamed", "passkey_removed"} <= {*acts}


@pytest.mark.parametrize("name", ["", "   ", "x" * 61])
async def test_passkey_without_a_fitting_name_is_refused(anna: Visit, name: str) -> None:
    answer = Authenticator().make(await read_options(anna))
    assert "Give the passkey a name" in await anna.send(ADDING, 422, act="add", name=name, signed=answer)


async def test_passkey_is_added_once(anna: Visit) -> None:
    device = await add_passkey(anna)
    answer = device.make(await read_options(anna))
    assert "known already" in await anna.send(ADDING, 409, act="add", name="Again", signed=answer)


async def test_passkey_is_added_only_soon_after_a_sign_in(anna: Visit) -> None:
    people = anna.wiring.part(People)
    (session,) = await people.list_sessions("anna")
    earlier = session.session.model_copy(update={"created_at_ms": session.session.created_at_ms - 600_001})
    await people.open_session(session.token_hash, earlier, 3_600_000)
    assert "within 10 minutes" in (await read_options(anna, status=403))["detail"]


async def test_passkey_of_a_password_that_another_set_is_refused(anna: Visit) -> None:
    await anna.wiring.part(People).change_reviewer(
        "anna", lambda person: person.model_copy(update={"password_by": "root"})
    )
    assert "root set your password" in (await read_options(anna, status=403))["detail"]


async def test_sign_in_counts_as_of_who_made_the_session_that_added_the_passkey(anna: Visit) -> None:
    device = await add_passkey(anna)
    store = anna.wiring.part(Passkeys)
    (passkey,) = await store.list_of("anna")
    await store.change(passkey.id, lambda one: one.model_copy(update={"made_by": "root", "made_at_ms": 7}))
    await sign_in(anna, device)
    (session, *_) = await anna.wiring.reviewers.list_sessions("anna")
    assert Made(session.session.made_by, session.session.made_at_ms) == Made("root", 7)


async def test_most_passkeys_are_twenty(anna: Visit) -> None:
    device = await add_passkey(anna)
    store = anna.wiring.part(Passkeys)
    (passkey,) = await store.list_of("anna")
    for number in range(MOST_PASSKEYS - 1):
        await store.add(passkey.model_copy(update={"id": f"{device.handle}{number}"}))
    assert "Remove one first" in (await read_options(anna, status=409))["detail"]


async def test_deactivated_person_does_not_sign_in(anna: Visit) -> None:
    device = await add_passkey(anna)
    await add_people(anna.wiring, "root")
    await anna.wiring.reviewers.deactivate("anna")
    anna.client.cookies.clear()
    answer = await sign_in(anna, device)
    assert answer.status_code == 403
    assert "anna is deactivated here" in answer.text
    assert await read_name(anna) is None


async def test_challenges_of_one_address_are_limited(anna: Visit) -> None:
    for _ in range(BEGUN.most):
        await anna.wiring.attempts.count(BEGUN, "127.0.0.1")
    assert "Too many attempts" in (await read_options(anna, SIGN_IN_OPTIONS, 429))["detail"]


async def test_admin_removes_a_passkey_of_somebody(settings: Settings) -> None:
    async with visit(settings) as anna:
        device = await add_passkey(anna)
        await anna.wiring.reviewers.add("root", "correct horse battery", ("admin",))
        (passkey,) = await anna.wiring.part(Passkeys).list_of("anna")
        place = "/people/anna/passkeys"
        await anna.read(place, 403)
        await anna.send(place, 403, which=passkey.id)
        await anna.wiring.reviewers.set_roles("anna", ("admin",))
        async with visit(settings, "bert") as bert:
            await bert.wiring.reviewers.set_roles("bert", ("admin",))
            assert "Phone" in await bert.read(place)
            await bert.read("/people/nobody/passkeys", 404)
            await bert.send("/people/bert/passkeys", 404, which=passkey.id)
            await bert.send(place, which=passkey.id)
            assert "anna has no passkey" in await bert.read(place)
            assert (await read_log(bert))[0].target == "anna"
        assert (await sign_in(anna, device)).status_code == 401


@pytest.mark.parametrize(
    ("local_accounts", "roles", "status"),
    [("off", ("admin",), 401), ("break_glass", ("reviewer",), 401), ("break_glass", ("admin",), 303)],
)
async def test_passkeys_count_where_passwords_do(
    clean_store_url: str, tmp_path: Path, local_accounts: str, roles: tuple[str, ...], status: int
) -> None:
    file = write_file(tmp_path, "https://id.example.com", {"local_accounts": local_accounts})
    fields = {"sign_in": str(file), "public_url": "http://localhost:8321"}
    async with visit(settings_for(clean_store_url, tmp_path, **fields)) as anna:
        device = await add_passkey(anna)
        await anna.wiring.reviewers.add("root", "correct horse battery", ("admin",))
        await anna.wiring.reviewers.set_roles("anna", roles)
        anna.client.cookies.clear()
        assert ("Sign in with a passkey" in await anna.read("/sign-in")) == (local_accounts != "off")
        answer = await sign_in(anna, device)
        assert answer.status_code == status
        if status == 401:
            assert "Company" in answer.text
            assert (await read_log(anna))[0].outcome != "done"


@pytest.mark.parametrize("url", ["http://127.0.0.1:8321", "http://desk.example.com", "https://10.0.0.1"])
async def test_passkeys_need_a_host_name_and_https(clean_store_url: str, tmp_path: Path, url: str) -> None:
    async with visit(settings_for(clean_store_url, tmp_path, public_url=url)) as anna:
        assert "Add a passkey" not in await anna.read(ADDING)
        assert "SAYSO_PUBLIC_URL" in (await read_options(anna, status=409))["detail"]
        anna.client.cookies.clear()
        assert "passkey" not in await anna.read("/sign-in")


async def test_answer_that_is_no_assertion_is_refused(anna: Visit) -> None:
    await add_passkey(anna)
    for answer in ("", "{", "[]", "{}", '{"credential_id": 1}', "x" * 9_000):
        response = await anna.client.post(SIGN_IN, data={"signed": answer}, headers=OWN)
        assert response.status_code in (400, 401, 422), response.text


async def test_closed_accounts_open_nothing(anna: Visit) -> None:
    assert anna.wiring.feature(PasskeyAccounts).is_open()
    await anna.send(ADDING, 422, act="other")
    await anna.send(ADDING, 404, act="remove", which="none")
    assert (await anna.client.post(ADDING, data={"csrf": CSRF, "act": "remove"}, headers=OWN)).status_code == 404


async def test_passkey_that_another_program_wrote_signs_nobody_in(clean_store_url: str, tmp_path: Path) -> None:
    create_key_file(tmp_path / "keys")
    fields = {"key_file": str(tmp_path / "keys"), "public_url": "http://localhost:8321"}
    async with visit(settings_for(clean_store_url, tmp_path, **fields), None) as guest:
        await add_people(guest.wiring, "anna")
        device, store = (
            Authenticator(origin=guest.wiring.settings.public_url, handle="AAAA"),
            guest.wiring.part(Passkeys),
        )
        passkey = Passkey(
            id=encode_base64url(device.id),
            person="anna",
            name="Phone",
            handle=device.handle,
            public_key=encode_base64url(device.key),
            counter=0,
            created_at_ms=0,
        )
        assert await store.add(passkey)
        assert (await sign_in(guest, device)).status_code == 303
        guest.client.cookies.clear()
        redis = connect(clean_store_url)
        await redis.set(keys_of(TENANT).passkey(passkey.id), passkey.model_dump_json())
        await redis.aclose()
        assert (await sign_in(guest, device)).status_code >= 400
        assert await read_name(guest) is None
