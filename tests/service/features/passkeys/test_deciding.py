"""Approvals that a passkey signs: on the item's page, and at no other door."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from sayso.core.records.decisions import Decision, DecisionRequest
from sayso.core.records.items import ItemKind
from sayso.core.records.proofs import decode_base64url, encode_base64url
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import RuleTerms
from sayso.errors import StepUpRequired
from sayso.wire.suspensions import show_suspension
from service.features.passkeys.ceremonies import UntrustedPasskey, hash_challenge
from service.features.passkeys.deciding import begin_deciding
from service.features.passkeys.store import Challenge, Passkeys
from tests.builders import ask, make_pending, person
from tests.fakes.authenticator import FLAGS, PRESENT, VERIFIED, Authenticator, write_client_data, write_data
from tests.service.edge.web.sites import CSRF, OWN, Visit, add_people
from tests.service.edge.web.stories import place_of
from tests.service.features.passkeys.people import SIGN_IN_OPTIONS, add_passkey, read_options


async def make_item(visit: Visit, kind: ItemKind = ItemKind.APPROVAL, **terms: Any) -> SuspensionRecord:
    return await make_pending(visit.wiring, ask(kind=kind, terms=RuleTerms(step_up="passkey", **terms)))


def approve(record: SuspensionRecord, **fields: str) -> dict[str, str]:
    return {"answer": "approve", "digest": record.items[0].digest, **fields}


async def begin(visit: Visit, record: SuspensionRecord, fields: dict[str, str], status: int = 200) -> Any:
    """Return what the browser is asked to sign for a form."""
    answer = await visit.client.post(f"{place_of(record)}/sign", data={"csrf": CSRF, **fields}, headers=OWN)
    assert answer.status_code == status, answer.text
    return answer.json()


def sign(device: Authenticator, options: Any, **changed: str) -> dict[str, str]:
    """Return the field of the form that has what the passkey signed."""
    answer = device.answer(decode_base64url(options["challenge"]), **changed)
    return {"signed": json.dumps({**answer, "nonce": changed.get("nonce", options["nonce"])})}


async def read_decisions(visit: Visit, record: SuspensionRecord) -> tuple[Decision, ...]:
    return (await visit.wiring.desk.suspensions.read(record.id)).record.items[0].decisions


async def test_approval_is_signed_and_keeps_its_proof(anna: Visit) -> None:
    device = await add_passkey(anna)
    record = await make_item(anna)
    assert "Your passkey signs what you approve" in await anna.read(place_of(record))
    options = await begin(anna, record, approve(record))
    assert options["userVerification"] == "required"
    assert [row["id"] for row in options["allowCredentials"]] == [
        one.id for one in await anna.wiring.part(Passkeys).list_of("anna")
    ]
    fields = approve(record, **sign(device, options))
    await anna.send(place_of(record), 303, **fields)
    await anna.send(place_of(record), 303, **fields)  # the form sent twice counts once
    (decision,) = await read_decisions(anna, record)
    assert decision.proof is not None
    assert (decision.proof.name, decision.proof.nonce) == ("Phone", options["nonce"])
    page = await anna.read(place_of(record))
    assert page.count("signed with passkey “Phone”") >= 2  # in the terms and in the timeline
    (view,) = show_suspension((await anna.wiring.desk.suspensions.read(record.id)).record, (), None).items
    assert view.terms.step_up == "passkey"
    assert view.decisions[0].proof == decision.proof


@pytest.mark.parametrize(
    ("kind", "given", "other"),
    [
        (
            ItemKind.APPROVAL,
            {"action": "approve", "args": {"order": "A-1", "amount": 9}},
            {"order": "A-1", "amount": 8},
        ),
        (ItemKind.INPUT, {"action": "value", "value": 9}, 8),
    ],
)
async def test_edits_and_values_are_signed(anna: Visit, kind: ItemKind, given: dict[str, Any], other: object) -> None:
    device = await add_passkey(anna)
    record = await make_item(anna, kind)

    async def decide(**fields: Any) -> None:
        request = DecisionRequest.model_validate({**given, "digest": record.items[0].digest, **fields})
        await anna.wiring.desk.decide(record.id, "i1", request, person("anna"))

    async def read_signed() -> Any:
        request = DecisionRequest.model_validate({**given, "digest": record.items[0].digest})
        return json.loads(sign(device, await begin_deciding(anna.wiring, "anna", request))["signed"])

    with pytest.raises(StepUpRequired):
        await decide()
    name = "args" if "args" in given else "value"
    with pytest.raises(UntrustedPasskey, match="signed another decision"):
        await decide(signed=await read_signed(), **{name: other})
    await decide(signed=await read_signed())
    (decision,) = await read_decisions(anna, record)
    assert decision.proof is not None


async def test_denial_needs_no_passkey(anna: Visit) -> None:
    record = await make_item(anna)
    await anna.send(place_of(record), answer="deny", digest=record.items[0].digest)
    assert (await read_decisions(anna, record))[0].proof is None


async def test_person_without_a_passkey_is_told_to_add_one(anna: Visit) -> None:
    record = await make_item(anna)
    assert "/me/passkeys" in (await begin(anna, record, approve(record), 409))["detail"]
    assert "One more proof is needed" in await anna.send(place_of(record), 403, **approve(record))


async def test_every_vote_is_signed_by_its_own_person(anna: Visit) -> None:
    device = await add_passkey(anna)
    record = await make_item(anna, quorum={"approve": 2})
    options = await begin(anna, record, approve(record))
    await anna.send(place_of(record), 303, **approve(record, **sign(device, options)))
    await add_people(anna.wiring, "ben")
    request = DecisionRequest.model_validate(
        {"action": "approve", "digest": record.items[0].digest, "signed": json.loads(sign(device, options)["signed"])}
    )
    with pytest.raises(UntrustedPasskey, match="signed another decision"):
        await anna.wiring.desk.decide(record.id, "i1", request, person("ben"))


async def test_other_doors_lead_to_the_page(anna: Visit) -> None:
    await add_passkey(anna)
    record = await make_item(anna)
    body = {"action": "approve", "digest": record.items[0].digest}
    cookies, anna.client.cookies = anna.client.cookies, type(anna.client.cookies)()
    _, key = await anna.wiring.api_keys.create("anna", kind="reviewer", by="anna")
    place = f"/api/v1/suspensions/{record.id}/items/i1/decision"
    answer = await anna.client.post(place, json=body, headers={"Authorization": f"Bearer {key}"})
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/step-up-required")
    assert place_of(record) in answer.json()["detail"]
    for channel in ("slack", "teams", "telegram", "mail", "webhook"):
        with pytest.raises(StepUpRequired, match=place_of(record)):
            await anna.wiring.desk.decide(
                record.id, "i1", DecisionRequest.model_validate(body), person("anna", channel), key=channel
            )
    anna.client.cookies = cookies
    assert await read_decisions(anna, record) == ()


Forge = Callable[["Attack"], Awaitable[dict[str, str]]]


@dataclass
class Attack:
    """Somebody who forges what a passkey signs, after the desk has asked to sign a decision."""

    visit: Visit
    device: Authenticator
    other: SuspensionRecord
    options: Any

    @property
    def store(self) -> Passkeys:
        return self.visit.wiring.part(Passkeys)

    @property
    def challenge(self) -> bytes:
        return decode_base64url(self.options["challenge"])

    def sign(self, device: Authenticator | None = None, **changed: str) -> dict[str, str]:
        return sign(device or self.device, self.options, **changed)

    def seal(self, flags: int = FLAGS, host: str = "localhost", counter: int = 9, **changed: str) -> dict[str, str]:
        """Sign other client data or authenticator data."""
        origin, challenge = changed.get("origin", self.device.origin), changed.get("challenge")
        signed = self.challenge if challenge is None else decode_base64url(challenge)
        client_data = write_client_data(changed.get("type", "webauthn.get"), signed, origin)
        sealed = self.device.seal(client_data, write_data(host, flags, counter))
        return {"signed": json.dumps({**sealed, "nonce": self.options["nonce"]})}

    def alter(self, name: str, text: str) -> dict[str, str]:
        return {"signed": json.dumps({**json.loads(self.seal()["signed"]), name: text})}

    async def begin_other(self, **fields: Any) -> dict[str, str]:
        """Sign another decision."""
        request = DecisionRequest.model_validate({"action": "approve", "digest": self.other.items[0].digest, **fields})
        return sign(self.device, await begin_deciding(self.visit.wiring, "anna", request))

    async def change_passkey(self, **update: object) -> dict[str, str]:
        (passkey,) = await self.store.list_of("anna")
        await self.store.change(passkey.id, lambda one: one.model_copy(update=update))
        return self.sign()

    async def remove_passkey(self) -> dict[str, str]:
        (passkey,) = await self.store.list_of("anna")
        await self.store.delete(passkey)
        return self.sign()

    async def begin_as(self, **update: str) -> dict[str, str]:
        """Sign what was begun by somebody else, or for something else."""
        begun = Challenge(purpose="decide", person="anna", host="localhost", origin=self.device.origin)
        await self.store.save_challenge(hash_challenge(self.challenge), begun.model_copy(update=update))
        return self.sign()

    async def take(self) -> dict[str, str]:
        """Use the challenge, or let five minutes pass, which deletes it, too."""
        assert await self.store.take_challenge(hash_challenge(self.challenge)) is not None
        return self.sign()

    async def sign_in(self) -> dict[str, str]:
        begun = await read_options(self.visit, SIGN_IN_OPTIONS)
        return sign(self.device, {**begun, "nonce": self.options["nonce"]})


async def _at_once(fields: dict[str, str]) -> dict[str, str]:
    return fields


FORGERIES: dict[str, Forge] = {
    "another challenge": lambda it: _at_once(it.seal(challenge=encode_base64url(bytes(32)))),
    "another item": lambda it: it.begin_other(),
    "another action": lambda it: it.begin_other(action="deny"),
    "edited arguments": lambda it: it.begin_other(args={"order": "A-1", "amount": 1}),
    "another nonce": lambda it: _at_once(it.sign(nonce="AAAA")),
    "no nonce": lambda it: _at_once({"signed": json.dumps(it.device.answer(it.challenge))}),
    "nobody verified": lambda it: _at_once(it.seal(PRESENT)),
    "nobody present": lambda it: _at_once(it.seal(VERIFIED)),
    "another origin": lambda it: _at_once(it.seal(origin="https://evil.example")),
    "another port": lambda it: _at_once(it.seal(origin="http://localhost:9999")),
    "another host": lambda it: _at_once(it.seal(host="evil.example")),
    "a registration": lambda it: _at_once(it.seal(type="webauthn.create")),
    "a counter that went back": lambda it: it.change_passkey(counter=100),
    "the passkey of another person": lambda it: it.change_passkey(person="ben"),
    "the handle of another person": lambda it: it.change_passkey(handle="AAAA"),
    "another public key": lambda it: it.change_passkey(public_key=encode_base64url(Authenticator().key)),
    "a removed passkey": lambda it: it.remove_passkey(),
    "another private key": lambda it: _at_once(
        it.sign(Authenticator(origin=it.device.origin, id=it.device.id, handle=it.device.handle, counter=50))
    ),
    "an unknown passkey": lambda it: _at_once(it.sign(Authenticator(origin=it.device.origin))),
    "altered authenticator data": lambda it: _at_once(
        it.alter("authenticator_data", encode_base64url(write_data("localhost", FLAGS, 10)))
    ),
    "altered client data": lambda it: _at_once(it.alter("client_data", encode_base64url(b"{}"))),
    "an altered signature": lambda it: _at_once(it.alter("signature", "AAAA")),
    "an altered id": lambda it: _at_once(it.alter("credential_id", "AAAA")),
    "a field more": lambda it: _at_once(it.alter("verified", "yes")),
    "a challenge of another person": lambda it: it.begin_as(person="ben"),
    "a challenge of a new passkey": lambda it: it.begin_as(purpose="add"),
    "a challenge of a sign-in": lambda it: it.begin_as(purpose="sign-in"),
    "a challenge of another desk": lambda it: it.begin_as(origin="https://other.example", host="other.example"),
    "a sign-in": lambda it: it.sign_in(),
    "a challenge that was used, or has expired": lambda it: it.take(),
    "JSON that was cut off": lambda it: _at_once({"signed": it.sign()["signed"][:-20]}),
    "no JSON": lambda it: _at_once({"signed": "x"}),
    "a list": lambda it: _at_once({"signed": "[]"}),
    "nothing": lambda it: _at_once({"signed": ""}),
}


@pytest.mark.parametrize("name", FORGERIES)
async def test_forged_signature_of_a_decision_is_refused(anna: Visit, name: str) -> None:
    device = await add_passkey(anna)
    record, other = await make_item(anna), await make_item(anna)
    fields = approve(record)
    signed = await FORGERIES[name](Attack(anna, device, other, await begin(anna, record, fields)))
    status = {"no JSON": 400, "JSON that was cut off": 400, "nothing": 403}.get(name, 401)
    await anna.send(place_of(record), status, **fields, **signed)
    assert await read_decisions(anna, record) == ()
