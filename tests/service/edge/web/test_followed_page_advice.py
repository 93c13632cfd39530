"""Pages of accounts and items whose refusal gives advice: each is followed, and the advice leads to success."""

from pathlib import Path

import pytest

from sayso.core.key_files import create_key_file
from sayso.core.records.proofs import encode_base64url
from service.core.settings import Settings
from service.features.passkeys.accounts import LONGEST_NAME, MOST_PASSKEYS
from service.features.passkeys.store import Passkey, Passkeys
from tests.fakes.authenticator import Authenticator
from tests.service.edge.web.sites import settings_for, visit
from tests.service.edge.web.stories import asked, place_of
from tests.service.features.codes.apps import CODES, enrol, make_code, make_wrong_code, read_seed
from tests.service.features.codes.test_deciding import approve, make_item
from tests.service.features.passkeys.people import OPTIONS, add_passkey, read_options

CODES_OF, CODE_PAGES, CODE = (
    "service/features/codes/accounts.py",
    "service/features/codes/pages.py",
    "service/core/auth/codes.py",
)
PASSKEYS, PASSKEY_PAGES, SIGNING = (
    "service/features/passkeys/accounts.py",
    "service/features/passkeys/pages.py",
    "service/features/passkeys/deciding.py",
)
CHECKS, CONFIRMING, FORMS = (
    "sayso/core/transitions/decision_checks.py",
    "sayso/core/transitions/inquiring.py",
    "service/forms/answers.py",
)
EDIT = "Open the page again and send it from there"
FOLLOWED = [
    (CODE, "Add one on /me/codes"),
    (CODE, "Remove it first, to add another"),
    (CODES_OF, "Begin again"),
    (CODES_OF, "Remove it first, to add another"),
    (CODE_PAGES, EDIT),
    (PASSKEYS, "Give the passkey a name of at most"),
    (PASSKEYS, "Remove one first"),
    (PASSKEY_PAGES, EDIT),
    (SIGNING, "Add one on /me/passkeys, and approve this then"),
    (CHECKS, "Leave that out"),
    (CONFIRMING, "Change your password, sign in again, and confirm then"),
    (CONFIRMING, "Confirm the call once it has one"),
    (CONFIRMING, "Omit message, or decline"),
    (FORMS, "Choose one of the decisions on this page"),
    (FORMS, "Type it again"),
    ("service/features/break_glass/pages.py", EDIT),
    ("service/recover.py", "Check the name and SAYSO_TENANT"),
    ("service/edge/web/content/finding.py", "Open the inbox again"),
    ("service/edge/web/content/details.py", "Show the secret values before you approve"),
    ("service/features/permissions/pages.py", "Show it again before you send it"),
]
"""Advice that these tests follow, and those of confirmations, of secrets, of grants and of step-ups."""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    create_key_file(tmp_path / "key")
    places = {"key_file": str(tmp_path / "key"), "public_url": "http://localhost:8321"}
    return settings_for(clean_store_url, tmp_path, **places)


async def test_advice_about_an_app_leads_to_one(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await make_item(anna.wiring)
        assert "Add one on /me/codes" in await anna.send(place_of(record), 401, **approve(record, "123456"))
        assert "Begin again" in await anna.send(CODES, 409, act="add", code="123456")
        assert EDIT in await anna.send(CODES, 422, act="none")
        seed = await enrol(anna)
        assert "Remove it first, to add another" in await anna.send(CODES, 409, act="begin")
        assert "Type it again" in await anna.send(place_of(record), 422, **approve(record, "12345"))
        assert await anna.send(place_of(record), 303, **approve(record, make_code(seed)))
        assert await anna.send(CODES, act="remove")
        assert await anna.send(CODES, act="begin")
        begun = read_seed(await anna.read(CODES))
        await anna.send(CODES, 401, act="add", code=make_wrong_code(begun))
        assert await anna.send(CODES, act="add", code=make_code(begun)) == f"{CODES}?done=add"


async def test_advice_about_a_passkey_leads_to_one(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await make_item(anna.wiring, step_up="passkey")
        signing = f"{place_of(record)}/sign"
        refused = await anna.send(signing, 409, **approve(record))
        assert "Add one on /me/passkeys, and approve this then" in refused
        assert EDIT in await anna.send("/me/passkeys", 422, act="none")
        answer = Authenticator(origin=settings.public_url).make(await read_options(anna))
        unnamed = await anna.send("/me/passkeys", 422, act="add", name="x" * (LONGEST_NAME + 1), signed=answer)
        assert "Give the passkey a name of at most" in unnamed
        await add_passkey(anna)
        assert "challenge" in await anna.send(signing, 200, **approve(record))


async def test_advice_about_many_passkeys_leads_to_another(settings: Settings) -> None:
    async with visit(settings) as anna:
        ids = [encode_base64url(bytes([place])) for place in range(MOST_PASSKEYS)]
        for id_ in ids:
            row = Passkey(id=id_, person="anna", name=id_, handle="AAAA", public_key="", counter=0, created_at_ms=1)
            await anna.wiring.part(Passkeys).add(row)
        assert "Remove one first" in (await read_options(anna, OPTIONS, 409))["detail"]
        assert await anna.send("/me/passkeys", act="remove", which=ids[0])
        await add_passkey(anna)


async def test_advice_about_a_decision_leads_to_one(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        given = {"digest": record.items[0].digest}
        refused = await anna.send(place_of(record), 422, answer="perhaps", **given)
        assert "Choose one of the decisions on this page" in refused
        assert await anna.send(place_of(record), 303, answer="deny", **given)


async def test_advice_about_a_place_leads_to_the_inbox(settings: Settings) -> None:
    async with visit(settings) as anna:
        await asked(anna.wiring)
        assert "Open the inbox again" in await anna.read("/?after=nowhere", 422)
        await anna.read("/")


async def test_advice_about_emergency_rights_leads_to_them(settings: Settings) -> None:
    async with visit(settings) as anna:
        await anna.wiring.reviewers.set_roles("anna", ("operator", "reviewer"))
        assert EDIT in await anna.send("/break-glass", 422, act="none")
        reason = "Payments are down, and no admin answers"
        await anna.wiring.reviewers.add("zoe", "granite lantern over the quiet estuary", ("admin",))
        assert await anna.send("/break-glass", act="break", reason=reason) == "/break-glass?done=break"
