"""Approvals that take a code of an authenticator app: on the item's page, over the API and on the command line."""

import asyncio
import os
import re
from pathlib import Path

import pytest
from httpx import Response

from sayso.core.clock import now_ms
from sayso.core.records.decisions import Decision, DecisionRequest
from sayso.core.records.items import ItemKind
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import RuleTerms
from sayso.errors import AlreadyDecided, StepUpRequired, WrongCode
from sayso.features.evidence.verify_evidence import verify_text
from sayso.wire.suspensions import show_suspension
from service.assembly import assemble
from service.core.auth.codes import BY_PERSON
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.evidence.exporting import make_file
from tests.builders import ask, make_pending, person
from tests.sayso.cli.programs import Programs
from tests.service.edge.web.sites import PASSWORD, Visit, add_people
from tests.service.edge.web.stories import place_of
from tests.service.features.codes.apps import add_app, enrol, forget_use, make_carla, make_code, make_wrong_code
from tests.service.features.passkeys.people import read_log
from tests.service.servers import served

FIELD = r'<input[^>]*name="code"[^>]*>'


async def make_item(wiring: Wiring, kind: ItemKind = ItemKind.APPROVAL, **terms: object) -> SuspensionRecord:
    return await make_pending(wiring, ask(kind=kind, terms=RuleTerms.model_validate({"step_up": "code", **terms})))


def approve(record: SuspensionRecord, code: str = "") -> dict[str, str]:
    return {"answer": "approve", "digest": record.items[0].digest, **({"code": code} if code else {})}


async def read_decisions(wiring: Wiring, record: SuspensionRecord) -> tuple[Decision, ...]:
    return (await wiring.desk.suspensions.read(record.id)).record.items[0].decisions


async def decide(
    visit: Visit, record: SuspensionRecord, by: str, key: str | None = None, channel: str = "web", **given: object
) -> None:
    request = DecisionRequest.model_validate({"action": "approve", "digest": record.items[0].digest, **given})
    await visit.wiring.desk.decide(record.id, "i1", request, person(by, channel), key)


async def test_page_takes_the_code_with_an_approval(anna: Visit) -> None:
    seed = await enrol(anna)
    record = await make_item(anna.wiring)
    page = await anna.read(place_of(record))
    (field,) = re.findall(FIELD, page)
    assert all(part in field for part in (' required inputmode="numeric"', 'autocomplete="one-time-code"'))
    assert "needs a code" in page
    code = make_code(seed)
    spaced = f"{code[:3]} {code[3:]}"
    await anna.send(place_of(record), 303, **approve(record, spaced))
    await anna.send(place_of(record), 303, **approve(record, spaced))  # the form sent twice counts once
    (decision,) = await read_decisions(anna.wiring, record)
    assert (decision.code_used, decision.proof) == (True, None)
    page = await anna.read(place_of(record))
    assert page.count("with a code of their app") >= 2  # in the terms and in the timeline
    assert code not in page
    (view,) = show_suspension((await anna.wiring.desk.suspensions.read(record.id)).record, (), None).items
    assert (view.terms.step_up, view.decisions[0].code_used) == ("code", True)


async def test_approval_without_a_right_code_is_refused(anna: Visit) -> None:
    seed = await enrol(anna)
    record = await make_item(anna.wiring)
    assert "One more proof is needed" in await anna.send(place_of(record), 403, **approve(record))
    wrong = await anna.send(place_of(record), 401, **approve(record, make_wrong_code(seed)))
    assert "That code does not count" in wrong
    assert "wait for the app" in wrong
    assert "has six digits" in await anna.send(place_of(record), 422, **approve(record, "12345x"))
    assert await read_decisions(anna.wiring, record) == ()
    await anna.send(place_of(record), 303, **approve(record, make_code(seed)))


async def test_code_counts_once(anna: Visit) -> None:
    seed = await enrol(anna)
    code = make_code(seed)
    first, second = await make_item(anna.wiring), await make_item(anna.wiring)
    await anna.send(place_of(first), 303, **approve(first, code))
    await anna.send(place_of(second), 401, **approve(second, code))
    with pytest.raises(WrongCode):
        await anna.wiring.reviewers.codes.use("anna", code)  # nor for a sign-in
    assert await read_decisions(anna.wiring, second) == ()


async def test_code_of_another_person_is_refused(anna: Visit) -> None:
    await add_people(anna.wiring, "ben")
    await enrol(anna)
    seed = await add_app(anna.wiring, "ben")
    record = await make_item(anna.wiring, quorum={"approve": 2})
    await anna.send(place_of(record), 401, **approve(record, make_code(seed)))
    await decide(anna, record, "ben", code=make_code(seed))
    assert [decision.by.id for decision in await read_decisions(anna.wiring, record)] == ["ben"]


async def test_eleventh_wrong_code_in_an_hour_must_wait(anna: Visit) -> None:
    seed = await enrol(anna)
    record = await make_item(anna.wiring)
    for _ in range(BY_PERSON.most):
        with pytest.raises(WrongCode):
            await decide(anna, record, "anna", code=make_wrong_code(seed))
    assert "Too many wrong attempts" in await anna.send(place_of(record), 429, **approve(record, make_code(seed)))
    await anna.send(place_of(record), 303, answer="deny", digest=record.items[0].digest)


async def test_edit_and_value_take_a_code(anna: Visit) -> None:
    seed = await enrol(anna)
    for kind, given in (
        (ItemKind.APPROVAL, {"args": {"order": "A-1", "amount": 9}}),
        (ItemKind.INPUT, {"action": "value", "value": 9}),
    ):
        record = await make_item(anna.wiring, kind)
        assert len(re.findall(FIELD, await anna.read(place_of(record)))) == 1
        with pytest.raises(StepUpRequired):
            await decide(anna, record, "anna", **given)
        await forget_use(anna.wiring)
        await decide(anna, record, "anna", code=make_code(seed), **given)
        assert (await read_decisions(anna.wiring, record))[0].code_used


async def test_repetition_with_the_next_code_uses_none(anna: Visit) -> None:
    seed = await enrol(anna)
    record = await make_item(anna.wiring, quorum={"approve": 2})
    following = make_code(seed, now_ms() + 30_000)
    await decide(anna, record, "anna", "again", code=make_code(seed))
    await decide(anna, record, "anna", "again", code=following)
    assert len(await read_decisions(anna.wiring, record)) == 1
    await anna.wiring.reviewers.codes.use("anna", following)


async def test_code_that_nothing_needs_is_not_used(anna: Visit) -> None:
    seed = await enrol(anna)
    plain, signed = await make_pending(anna.wiring), await make_item(anna.wiring, step_up="passkey")
    await decide(anna, plain, "anna", code=make_code(seed))
    with pytest.raises(StepUpRequired, match="the reviewer's passkey"):
        await decide(anna, signed, "anna", code=make_code(seed))
    denied = await make_item(anna.wiring)
    await decide(anna, denied, "anna", action="deny", code=make_code(seed))
    assert not (await read_decisions(anna.wiring, denied))[0].code_used
    with pytest.raises(AlreadyDecided):
        await decide(anna, denied, "anna", code=make_code(seed))
    await anna.wiring.reviewers.codes.use("anna", make_code(seed))


async def test_person_with_neither_is_told_to_add_one(anna: Visit) -> None:
    record = await make_item(anna.wiring)
    page = await anna.read(place_of(record))
    assert re.findall(FIELD, page) == []
    assert 'You have neither: <a href="/me/codes">add an app</a>' in page
    refused = await anna.send(place_of(record), 401, **approve(record, "123456"))
    assert "You have no authenticator app. Add one on /me/codes." in refused


async def test_api_takes_the_code(anna: Visit) -> None:
    seed = await enrol(anna)
    record = await make_item(anna.wiring)
    _, key = await anna.wiring.api_keys.create("anna", kind="reviewer", by="anna")
    anna.client.cookies.clear()

    async def send(**fields: str) -> Response:
        body = {"action": "approve", "digest": record.items[0].digest, **fields}
        place = f"/api/v1/suspensions/{record.id}/items/i1/decision"
        return await anna.client.post(place, json=body, headers={"Authorization": f"Bearer {key}"})

    needed = await send()
    assert (needed.status_code, needed.json()["type"]) == (403, "/problems/step-up-required")
    assert "Add the code, or approve it on its page" in needed.json()["detail"]
    wrong = await send(code=make_wrong_code(seed))
    assert (wrong.status_code, wrong.json()["type"]) == (401, "/problems/wrong-code")
    assert (await send(code="12345")).status_code == 422
    assert (await send(code=make_code(seed))).status_code == 200


async def test_cards_lead_to_the_page(anna: Visit) -> None:
    await enrol(anna)
    record = await make_item(anna.wiring)
    for channel in ("slack", "teams", "telegram", "mail", "webhook"):
        with pytest.raises(StepUpRequired, match=place_of(record)):
            await decide(anna, record, "anna", channel, channel)
    assert await read_decisions(anna.wiring, record) == ()


async def test_evidence_and_log_have_no_code(anna: Visit) -> None:
    code = make_code(await enrol(anna))
    record = await make_item(anna.wiring)
    await anna.send(place_of(record), 303, **approve(record, code))
    text = await make_file(anna.wiring, [record.run.id], "root")
    assert verify_text(text, [])[0] == []
    assert '"code_used":true' in text.replace(" ", "")
    assert code not in "".join(str(entry) for entry in await read_log(anna))


def test_command_approves_with_a_code(settings: Settings, tmp_path: Path) -> None:
    async def prepare() -> tuple[str, SuspensionRecord]:
        async with assemble(settings) as wiring:
            return await make_carla(wiring), await make_item(wiring)

    programs = Programs()
    with served(settings) as url:
        seed, record = asyncio.run(prepare())
        given = {"SAYSO_URL": url, "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        login = ("login", "--name", "carla", "--password-stdin", "--code", make_code(seed))
        assert programs.run(login, given, PASSWORD).returncode == 0
        assert "needs a code of your authenticator app: --code" in programs.run(("show", record.id), given).stdout
        refused = programs.run(("approve", record.id, "--yes"), given)
        assert (refused.returncode, "Add the code" in refused.stderr) == (1, True)
        following = make_code(seed, now_ms() + 30_000)
        done = programs.run(("approve", record.id, "--yes", "--code", following), given)
        assert done.returncode == 0, done.stderr
        assert "approved" in done.stdout
    programs.close()
