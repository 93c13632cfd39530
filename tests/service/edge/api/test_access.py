"""Permissions: every operation with every kind of credential, by the table of roles. A new operation needs a row."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import SecretStr

from sayso.core.clock import iso_utc
from sayso.core.records.terms import RuleTerms
from service.app import create_app
from service.core.auth.credentials import SCOPES
from service.core.auth.doors import OPEN_OPERATIONS
from service.core.auth.doors import OPERATIONS as NEEDED
from service.core.settings import Settings
from tests.builders import PASSWORD, approve, ask, finish, give_up, make_pending, make_person, make_running, person
from tests.service.edge.credentials import ANNAS_KEY, KEYS, STRANGERS, WHO, add_credential, rights_of
from tests.service.worlds import World

SECRET = "whsec_" + "c2F5c28g" * 5


KEYS_ACCOUNT = ("signOut", "listWebhookEvents")
"""What a reviewer's key may do of all that a person does about their own account."""


@dataclass(frozen=True)
class Row:
    """What those who may are answered: people, the agent that owns the run, and another; `but` names exceptions."""

    status: int
    demo: int = 403
    other: int = 403
    body: Mapping[str, Any] | None = None
    but: Mapping[str, int] = field(default_factory=dict)

    def find_status(self, name: str, who: str) -> int:
        """Return the status of a cell, which follows from the tables of roles and of scopes."""
        if name in OPEN_OPERATIONS:
            return self.status
        if who in STRANGERS:
            return 401
        if who in KEYS:
            needed = SCOPES.get(name, ())
            return 403 if who == "reads" and needed and "read" not in needed else getattr(self, who, self.demo)
        if who == ANNAS_KEY and NEEDED[name] == "account" and name not in KEYS_ACCOUNT:
            return 403
        may = rights_of(who).has(NEEDED[name])
        return self.but.get(who, self.but.get("people", self.status)) if may else 403


def anybody(status: int = 200, body: Mapping[str, Any] | None = None) -> Row:
    return Row(status, body=body)


def signed_in(status: int = 200, body: Mapping[str, Any] | None = None) -> Row:
    return Row(status, status, status, body)


def owner_and_people(status: int = 200, body: Mapping[str, Any] | None = None) -> Row:
    return Row(status, status, 404, body)


def people(status: int = 200, body: Mapping[str, Any] | None = None, **but: int) -> Row:
    return Row(status, body=body, but=but)


RULES = "version: 1\ndefault: deny\nrules: []\n"
EVENTS = [{"seq": 1, "event": {"type": "note", "data": {}}}]
ABSENCE = {"starts_at": "2099-12-21T08:00:00Z", "ends_at": "2099-12-31T08:00:00Z"}

HOOKS = ("takeSignedDecision", "takeSenderDecision")  # they have a signature for a credential

ROWS: dict[str, Row] = {
    "getHealth": anybody(),
    "getReadiness": anybody(),
    "takeSignedDecision": anybody(401, {}),
    "takeSenderDecision": anybody(401, {}),
    "listWebhookEvents": signed_in(),
    "listEndpoints": Row(200, 200, 200),
    "createEndpoint": Row(201, 201, 201, body={"url": "https://hooks.example.com/"}),
    "verifyEndpoint": Row(404, 404, 404),
    "disableEndpoint": Row(404, 404, 404),
    "rotateEndpoint": Row(404, 404, 404),
    "deleteEndpoint": Row(404, 404, 404),
    "listFailures": Row(200, 200, 200),
    "redeliver": Row(404, 404, 404, body={"ids": ["evt_none"]}),
    "listChannels": people(),
    "testChannel": people(404, {}),
    "listHistory": people(),
    "listArchivedRuns": people(),
    "exportHistory": people(),
    "exportOverrides": signed_in(),
    "reportHeadless": people(),
    "reportInsights": people(),
    "listDrills": people(),
    "listSecondLooks": people(),
    "takeSecondLook": people(404, {"opinion": "agree"}),
    "plantDrill": people(404, {"template": "none", "reviewer": "ben"}),
    "listSenders": people(),
    "createSender": people(201, {"name": "pager", "reviewer": "ben"}, olga=403),
    "rotateSender": people(404),
    "revokeSender": people(404),
    "signIn": anybody(201, {"name": "ben", "password": PASSWORD}),
    "signOut": people(204),
    "changeOwnPassword": people(200, {"current": PASSWORD, "password": "a much better one"}),
    "listOwnSessions": people(),
    "endOtherSessions": people(),
    "endOwnSession": people(404),
    "activateReviewer": people(),
    "listSessions": people(),
    "endSessions": people(),
    "endSession": people(404),
    "listAgents": signed_in(),
    "startRun": signed_in(201, {"agent": "demo", "input": "Refund A-1"}),
    "listRuns": signed_in(),
    "getRun": owner_and_people(),
    "listRunSuspensions": owner_and_people(),
    "cancelRun": owner_and_people(),
    "reviveRun": people(),
    "eraseRun": people(409, {"reason": "asked by the customer"}),
    "listEvents": owner_and_people(),
    "streamEvents": owner_and_people(),
    "reportEvents": Row(403, 200, 404, {"source_format": "sayso", "source": "agent", "events": EVENTS}),
    "listExternalEvents": owner_and_people(),
    "getTimeline": owner_and_people(),
    "createSuspension": signed_in(
        201, {"agent": "demo", "calls": [{"tool": "refund", "args": {"order": "A-1", "amount": 5}}]}
    ),
    "judgeCall": signed_in(200, {"agent": "demo", "call": {"tool": "refund", "args": {"order": "A-1", "amount": 5}}}),
    "redeemItem": Row(404, 422, 404),
    "reportOutcome": Row(404, 422, 404, body={"success": True}),
    "markInDoubt": Row(404, 409, 404),
    "getDiagnostics": people(),
    "checkRules": signed_in(200, {"text": "version: 1"}),
    "explainCall": people(200, {"call": {"tool": "refund", "args": {"amount": 5}}}),
    "startReplay": people(202, {"text": RULES, "from": "2026-11-01T00:00:00Z", "to": "2026-11-02T00:00:00Z"}),
    "listReplays": people(),
    "getReplay": people(404),
    "deleteReplay": people(404),
    "listRuleVersions": people(),
    "getRuleVersion": people(),
    "attestRules": people(200, {"text": RULES}),
    "restoreRules": people(409, {"replaces": "another"}),
    "getShadow": people(),
    "beginShadow": people(200, {"text": RULES}),
    "endShadow": people(409),
    "promoteShadow": people(409, {"replaces": "another"}),
    "reportShadow": people(404, {}),
    "listSuspensions": signed_in(),
    "getSuspension": owner_and_people(),
    "decideItem": people(200, {"action": "approve", "digest": "<digest>"}),
    "listFreezes": people(),
    "listGrants": people(),
    "confirmGrant": people(404),
    "revokeGrant": people(404),
    "reinstateGrant": people(404),
    "listMandates": signed_in(),
    "proposeMandate": signed_in(422, {"for_s": 60, "count": 1, "tools": [{"tool": "refund", "definition": {}}]}),
    "getMandate": signed_in(404),
    "revokeMandate": signed_in(404),
    "freeze": people(201, {"scope": "tool:refund", "reason": "odd"}),
    "unfreeze": people(),
    "claimItem": people(),
    "releaseItem": people(),
    "retractDecision": people(409),
    "confirmItem": people(403, {"action": "confirm", "digest": "0" * 64}),
    "askRequester": people(200, {"text": "Which order?"}),
    "answerInquiry": Row(403, 404, 404, body={"text": "A-1"}),
    "listInquiries": owner_and_people(),
    "forecastSuspension": owner_and_people(),
    "writeNote": people(200, {"text": "Take the other account."}),
    "listNotes": owner_and_people(),
    "previewItem": people(409, {}),
    "forwardItem": people(403, {"to": "nobody", "digest": "<digest>"}),
    "inviteOutsider": people(422, {"address": "jane@partner.example", "digest": "0" * 64}),
    "listInvitations": people(),
    "revokeInvitation": people(404),
    "addComment": people(200, {"text": "The order is real."}),
    "attachFile": owner_and_people(200, {"name": "log.txt", "content": "YSBsb2c="}),
    "listAttachments": owner_and_people(),
    "getAttachment": Row(404, 404, 404),
    "listComments": people(),
    "showWho": people(200, {"rule": "concerts", "at": "2036-12-24T18:00:00Z"}),
    "extendItem": people(200, {"until": "<until>"}),
    "listRoles": people(),
    "saveRole": people(200, {"permissions": ["decide"], "tools": ["refund"]}),
    "deleteRole": people(404),
    "listEmergencies": people(),
    "breakGlass": people(201, {"reason": "Nobody answers"}, root=409),
    "endOwnEmergency": people(404),
    "endEmergency": people(404),
    "setRoles": people(200, {"roles": ["reviewer"]}),
    "addReviewer": people(201, {"name": "carla", "password": PASSWORD}),
    "listReviewers": people(),
    "setPassword": people(204, {"password": PASSWORD}),
    "deactivateReviewer": people(),
    "setManager": people(200, {"manager": None}),
    "listGroups": people(),
    "createGroup": people(201, {"name": "ops", "members": ["ben"]}),
    "readGroup": people(),
    "changeGroup": Row(403, body={"members": []}, but={"root": 200}),
    "deleteGroup": people(204),
    "listOwnContacts": people(),
    "createContactCode": people(201, {"channel": "telegram"}),
    "unlinkOwnContact": people(404),
    "listContacts": people(),
    "unlinkContact": people(404),
    "readOwnPreferences": people(),
    "saveOwnPreferences": people(200, {"cap_per_hour": 4}),
    "readPreferences": people(),
    "savePreferences": people(200, {"cap_per_hour": 4}),
    "listOwnViews": people(),
    "saveOwnView": people(201, {"name": "Refunds", "search": "tool:refund"}),
    "deleteOwnView": people(404),
    "listOwnAbsences": people(),
    "addOwnAbsence": people(201, ABSENCE),
    "deleteOwnAbsence": people(404),
    "listAllAbsences": people(),
    "addAbsence": people(201, ABSENCE),
    "deleteAbsence": people(404),
    "createKey": Row(403, body={"name": "new-bot"}, but={"root": 201}),
    "rotateKey": Row(404, but={"root": 201}),  # people see the reviewer's keys of their own
    "listKeys": people(),
    "revokeKey": Row(404, but={"root": 200}),
    "listActivity": people(),
    "listCheckpoints": people(),
    "checkCheckpoints": people(200, {"heads": []}),
    "exportEvidence": people(422),
}

OPERATIONS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in create_app(Settings(redis_url="redis://nowhere.invalid")).openapi()["paths"].items()
    for method, operation in methods.items()
}


@pytest.fixture
def settings(clean_store_url: str) -> Settings:
    return Settings(redis_url=clean_store_url, webhook_secret=(SecretStr(SECRET),))


def test_rows_match_operations() -> None:
    assert set(ROWS) == set(OPERATIONS) == {*NEEDED} | OPEN_OPERATIONS
    assert {*SCOPES} <= {*NEEDED}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_declares_its_security(name: str) -> None:
    _, _, operation = OPERATIONS[name]
    assert bool(operation["security"]) == (name not in OPEN_OPERATIONS)
    assert "401" in operation["responses"] or name in OPEN_OPERATIONS


def list_cells() -> Iterator[Any]:
    """Yield each operation with each credential that may use it, and with all others together."""
    for name in OPERATIONS:
        statuses = {who: ROWS[name].find_status(name, who) for who in WHO}
        refused = tuple(who for who, status in statuses.items() if status in (401, 403))
        for whos in (refused, *((who,) for who in WHO if who not in refused)):
            yield pytest.param(name, whos, id=f"{name}-{'others' if whos is refused else whos[0]}")


@pytest.mark.parametrize(("name", "whos"), [*list_cells()])
async def test_operation_answers_each_credential_as_listed(world: World, name: str, whos: tuple[str, ...]) -> None:
    method, path, operation = OPERATIONS[name]
    await make_person(world.wiring, "ben")
    demo, *_ = await world.wiring.api_keys.list_all()
    pending = await make_pending(world.wiring, ask(terms=RuleTerms(extend_by_s=600)))
    if name == "reviveRun":
        pending = await give_up(world.wiring, await approve(world.wiring, pending, by="root"))
    run = await finish(world.wiring, await make_running(world.wiring)) if name == "streamEvents" else pending
    frozen = await world.wiring.freezes.freeze("agent:nobody", "", person("root"))
    names = {"suspension_id": pending.id, "item_id": "i1", "run_id": run.run.id, "name": "ben", "key_id": demo.id}
    names |= {"freeze_id": frozen.id, "session_id": "ses_" + "0" * 32}
    names |= {"endpoint_id": "whe_none", "sender_id": "whs_none", "channel": "none"}
    group = await world.wiring.groups.create("payments", ("ben",), (), "root")
    names |= {"group": group.name, "contact_id": "con_" + "0" * 32, "absence_id": "abs_" + "0" * 32}
    names |= {"replay_id": "rpl_" + "0" * 32, "version": world.wiring.rules.policy().version}
    names |= {"view_id": "view_" + "0" * 32, "grant_id": "gra_" + "0" * 32, "mandate_id": "man_" + "0" * 32}
    names |= {"seq": "2", "role": "refunds", "invitation_id": "inv_" + "0" * 32}
    names |= {"inquiry_id": "inq_" + "0" * 32, "attachment_id": "att_" + "0" * 32}
    body = ROWS[name].body
    if body is not None and "digest" in body:
        body = {**body, "digest": pending.items[0].digest}
    if body is not None and "until" in body:
        body = {"until": iso_utc(pending.items[0].terms.extend_until_ms)}
    for who in whos:
        await add_credential(world, who)
        async with world.client(None if who == "nobody" else who) as client:
            answer = await client.request(method, path.format(**names), json=body)
        assert answer.status_code == ROWS[name].find_status(name, who), (who, answer.text)
        assert str(answer.status_code) in operation["responses"]
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
        assert ("www-authenticate" in answer.headers) == (answer.status_code == 401 and name not in HOOKS)


FOREIGN = [
    name
    for name, (_, path, _) in OPERATIONS.items()
    if ("{run_id}" in path or "{suspension_id}" in path) and ROWS[name].other == 404
]


@pytest.mark.parametrize("who", ["other", "anna"])
@pytest.mark.parametrize("name", FOREIGN)
async def test_foreign_id_is_answered_like_a_missing_one(world: World, name: str, who: str) -> None:
    method, path, _ = OPERATIONS[name]
    if ROWS[name].find_status(name, who) != 404 or (who == "anna" and "{attachment_id}" in path):
        return  # a reviewer may read the item, which has no such file
    pending = await make_pending(world.wiring)
    texts = []
    async with world.client(who) as client:
        for suspension_id, run_id in ((pending.id, pending.run.id), ("sus_" + "0" * 32, "run_" + "0" * 32)):
            names = {"suspension_id": suspension_id, "run_id": run_id, "item_id": "i1", "seq": "99"}
            place = path.format(**names, inquiry_id="inq_1", attachment_id="att_1")
            answer = await client.request(method, place, json=ROWS[name].body, headers={"Idempotency-Key": "k"})
            assert answer.status_code == 404
            texts.append(answer.text.replace(suspension_id, "<id>").replace(run_id, "<id>"))
    assert texts[0] == texts[1]


async def test_api_ignores_session_cookies(world: World) -> None:
    async with world.client() as client:
        for name in ("sayso_session_8321", "__Host-sayso"):
            client.cookies.set(name, world.tokens["root"])
        assert (await client.get("/api/v1/runs")).status_code == 401


async def test_credential_is_checked_before_the_body(world: World) -> None:
    async with world.client() as client:
        answer = await client.post("/api/v1/runs", content=b"{{{", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 401


@pytest.mark.parametrize("header", ["Basic YW5uYTp4", "Bearer", "Bearer ", "bearer: x", "Token x", ""])
async def test_malformed_credential_is_refused(world: World, header: str) -> None:
    async with world.client() as client:
        answer = await client.get("/api/v1/runs", headers={"Authorization": header})
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


async def test_two_credentials_are_refused(world: World) -> None:
    tokens = [("Authorization", f"Bearer {world.tokens[who]}") for who in ("demo", "root")]
    async with world.client() as client:
        assert (await client.get("/api/v1/runs", headers=tokens)).status_code == 401
