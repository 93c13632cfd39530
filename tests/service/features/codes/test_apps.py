"""People add and remove authenticator apps."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from sayso.errors import Altered, TooManyRequests, WrongCode
from service.core.auth.codes import BY_PERSON, find_step, make_seed
from service.core.auth.roles import find_rights
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.connection.connecting import connect
from service.core.store.directory import Role
from service.core.store.keys import keys_of
from service.core.store.people import People
from tests.service.edge.web.sites import Visit, add_people, settings_for, visit
from tests.service.features.codes.apps import CODES, add_app, enrol, forget_use, make_code, make_wrong_code, read_seed
from tests.service.features.passkeys.people import read_log

RFC_SEED = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
AT_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("at_s", "code"), [(59, "287082"), (1_111_111_109, "081804"), (1_234_567_890, "005924"), (20_000_000_000, "353130")]
)
def test_codes_are_those_of_rfc_6238(at_s: int, code: str) -> None:
    assert make_code(RFC_SEED, at_s * 1000) == code
    assert find_step(RFC_SEED, code, at_s * 1000) == at_s // 30


@pytest.mark.parametrize("steps", [-1, 0, 1])
def test_code_of_a_neighbouring_step_fits(steps: int) -> None:
    assert find_step(RFC_SEED, make_code(RFC_SEED, AT_MS + steps * 30_000), AT_MS) == AT_MS // 30_000 + steps


@pytest.mark.parametrize("steps", [-3, -2, 2, 3])
def test_code_two_steps_off_does_not_fit(steps: int) -> None:
    assert find_step(RFC_SEED, make_code(RFC_SEED, AT_MS + steps * 30_000), AT_MS) is None


def test_code_of_a_used_or_earlier_step_does_not_fit() -> None:
    used = AT_MS // 30_000
    for steps in (-1, 0):
        assert find_step(RFC_SEED, make_code(RFC_SEED, AT_MS + steps * 30_000), AT_MS, used) is None
    assert find_step(RFC_SEED, make_code(RFC_SEED, AT_MS + 30_000), AT_MS, used) == used + 1


@pytest.mark.parametrize("change", [lambda it: it[:5], lambda it: f"0{it}", lambda it: f"-{it[1:]}", lambda it: ""])
def test_code_of_a_wrong_form_does_not_fit(change: object) -> None:
    assert callable(change)
    assert find_step(RFC_SEED, change(make_code(RFC_SEED, AT_MS)), AT_MS) is None


def test_code_with_other_digits_does_not_fit() -> None:
    arabic = "".join(chr(0x660 + int(digit)) for digit in make_code(RFC_SEED, AT_MS))
    assert find_step(RFC_SEED, arabic, AT_MS) is None
    spaced = make_code(RFC_SEED, AT_MS)
    assert find_step(RFC_SEED, f"{spaced[:3]} {spaced[3:]}", AT_MS) is not None


async def test_app_is_added_by_its_first_code(anna: Visit) -> None:
    assert "You have no authenticator app." in await anna.read(CODES)
    await anna.send(CODES, act="begin")
    page = await anna.read(CODES)
    seed = read_seed(page)
    address = urlsplit(page.split('href="otpauth:')[1].split('"')[0].replace("&amp;", "&"))
    assert (address.netloc, address.path) == ("totp", "/Sayso:anna")
    assert parse_qs(address.query)["secret"] == [seed]
    again = await anna.send(CODES, 401, act="add", code=make_wrong_code(seed))
    assert read_seed(again) == seed, "a wrong code keeps the secret"
    await anna.send(CODES, act="add", code=make_code(seed))
    page = await anna.read(CODES)
    assert "Added" in page
    assert seed not in page
    assert [(entry.act, entry.by) for entry in await read_log(anna) if entry.act == "app_added"] == [
        ("app_added", "anna")
    ]


async def test_first_code_counts_once(anna: Visit) -> None:
    await anna.send(CODES, act="begin")
    seed = read_seed(await anna.read(CODES))
    code = make_code(seed)
    await anna.send(CODES, act="add", code=code)
    with pytest.raises(WrongCode):
        await anna.wiring.reviewers.codes.use("anna", code)


async def test_code_counts_once(anna: Visit) -> None:
    code = make_code(await enrol(anna))
    codes = anna.wiring.reviewers.codes
    await codes.use("anna", code)
    with pytest.raises(WrongCode):
        await codes.use("anna", code)


async def test_code_of_another_persons_app_is_refused(anna: Visit) -> None:
    await add_people(anna.wiring, "ben")
    await enrol(anna)
    seed = await add_app(anna.wiring, "ben")
    with pytest.raises(WrongCode):
        await anna.wiring.reviewers.codes.use("anna", make_code(seed))


async def test_code_of_a_removed_app_is_refused(anna: Visit) -> None:
    seed = await enrol(anna)
    assert await anna.send(CODES, act="remove") == f"{CODES}?done=remove"
    assert "You have no authenticator app." in await anna.read(CODES)
    with pytest.raises(WrongCode):
        await anna.wiring.reviewers.codes.use("anna", make_code(seed))
    assert "app_removed" in [entry.act for entry in await read_log(anna)]


async def test_code_of_an_unknown_person_is_refused(anna: Visit) -> None:
    with pytest.raises(WrongCode):
        await anna.wiring.reviewers.codes.use("nobody", "123456")


async def test_secret_moved_to_another_person_does_not_open(anna: Visit) -> None:
    await add_people(anna.wiring, "ben")
    seed, people = await enrol(anna), anna.wiring.part(People)
    known = await people.find_reviewer("anna")
    assert known is not None
    await people.change_reviewer("ben", lambda person: person.model_copy(update={"app": known.app}))
    with pytest.raises(Altered):
        await anna.wiring.reviewers.codes.use("ben", make_code(seed))


async def test_secret_is_encrypted_in_the_store(anna: Visit, settings: Settings) -> None:
    await anna.send(CODES, act="begin")
    seed = read_seed(await anna.read(CODES))
    redis = connect(settings.store_url)
    begun = [str(await redis.get(key)) async for key in redis.scan_iter("*app-begun:*")]
    assert len(begun) == 1
    assert seed not in begun[0]
    await anna.send(CODES, act="add", code=make_code(seed))
    stored = str(await redis.hget(keys_of(TENANT).reviewers, "anna"))
    assert "sealed:v1:" in stored
    assert seed not in stored
    assert [key async for key in redis.scan_iter("*app-begun:*")] == []
    await redis.aclose()


async def test_app_without_a_key_file_is_refused(clean_store_url: str, tmp_path: Path) -> None:
    async with visit(settings_for(clean_store_url, tmp_path)) as anna:
        page = await anna.send(CODES, 409, act="begin")
        assert "An operator sets SAYSO_KEY_FILE" in page
        assert "sayso keyfile new" in page


async def test_eleventh_wrong_code_in_an_hour_is_refused(anna: Visit) -> None:
    seed = await enrol(anna)
    codes, wrong = anna.wiring.reviewers.codes, make_wrong_code(seed)
    await codes.use("anna", make_code(seed))
    for _ in range(BY_PERSON.most):
        with pytest.raises(WrongCode):
            await codes.use("anna", wrong)
    await forget_use(anna.wiring)
    with pytest.raises(TooManyRequests):
        await codes.use("anna", make_code(seed))


async def test_app_is_added_and_removed_soon_after_a_sign_in(anna: Visit) -> None:
    people = anna.wiring.part(People)
    (session,) = await people.list_sessions("anna")
    earlier = session.session.model_copy(update={"created_at_ms": session.session.created_at_ms - 600_001})
    await people.open_session(session.token_hash, earlier, 3_600_000)
    assert "is added within 10 minutes" in await anna.send(CODES, 403, act="begin")
    await add_app(anna.wiring, "anna")
    assert "is removed within 10 minutes" in await anna.send(CODES, 403, act="remove")


async def test_app_of_a_password_that_another_set_is_refused(anna: Visit) -> None:
    await anna.wiring.part(People).change_reviewer(
        "anna", lambda person: person.model_copy(update={"password_by": "root"})
    )
    assert "root set your password" in await anna.send(CODES, 403, act="begin")


async def test_second_app_is_refused(anna: Visit) -> None:
    await anna.send(CODES, act="begin")
    seed = read_seed(await anna.read(CODES))
    await add_app(anna.wiring, "anna")
    assert "Remove it first" in await anna.send(CODES, 409, act="add", code=make_code(seed))
    assert "Remove it first" in await anna.send(CODES, 409, act="begin")


async def test_code_without_a_begun_app_is_refused(anna: Visit) -> None:
    assert "Begin again" in await anna.send(CODES, 409, act="add", code="123456")


async def test_another_session_does_not_see_the_secret(anna: Visit, settings: Settings) -> None:
    await anna.send(CODES, act="begin")
    async with visit(settings) as elsewhere:
        assert "You have no authenticator app." in await elsewhere.read(CODES)


async def test_admin_removes_an_app_of_a_person(anna: Visit) -> None:
    await add_people(anna.wiring, "ben")
    await add_app(anna.wiring, "ben")
    await anna.wiring.reviewers.set_roles("anna", ("admin",))
    assert "/people/ben/codes" in await anna.read("/people")
    assert "Added" in await anna.read("/people/ben/codes")
    assert await anna.send("/people/ben/codes", act="remove") == "/people/ben/codes?done=remove"
    assert "ben has no authenticator app." in await anna.read("/people/ben/codes?done=remove")
    assert "ben has no authenticator app." in await anna.send("/people/ben/codes", 404, act="remove")
    await anna.read("/people/nobody/codes", 404)
    removed = [entry for entry in await read_log(anna) if entry.act == "app_removed"]
    assert [(entry.by, entry.target) for entry in removed] == [("anna", "ben")]


async def test_app_of_somebody_who_may_do_more_stays(anna: Visit) -> None:
    await add_people(anna.wiring, "ben")
    await anna.wiring.reviewers.set_roles("ben", ("admin",))
    await add_app(anna.wiring, "ben")
    await anna.wiring.roles.save(Role(name="helpers", permissions=("manage_people",)), find_rights(["admin"], {}))
    await anna.wiring.reviewers.set_roles("anna", ("helpers",))
    assert "ben may do more than you" in await anna.send("/people/ben/codes", 403, act="remove")
    await anna.wiring.reviewers.codes.use("ben", make_code("JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"))


def test_each_secret_is_new() -> None:
    assert len({make_seed() for _ in range(100)}) == 100
