"""Messages of Teams: only with a token of the connector, of the own tenant, from linked people, and once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import rsa
from httpx import Response

from sayso.core.records.envelopes import RequestedChanges
from sayso.core.records.items import ItemKind
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import Quorum, RuleTerms
from service.channels.cards import build_card
from service.channels.teams import tokens
from service.channels.teams.outbound import TeamsChannel
from service.core.settings import Settings
from tests.builders import REFUND, answer_question, approve, ask, make_pending, make_person
from tests.fakes.teams import ANNA, APP, BEN, Teams, list_actions, list_verbs, read_text, serving_teams
from tests.service.channels.teams.test_outbound import fields_of
from tests.service.worlds import POLICY, World

PATH = "/channels/teams/office/messages"


@pytest.fixture
def teams() -> Iterator[Teams]:
    with serving_teams(ANNA, BEN) as teams:
        yield teams


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path, teams: Teams) -> Settings:
    (tmp_path / "channels.yaml").write_text(yaml.safe_dump({"channels": {"office": fields_of(teams)}}))
    (tmp_path / "policy.yaml").write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=tmp_path / "policy.yaml", channels=tmp_path / "channels.yaml")


class Office(NamedTuple):
    """The desk and the Teams that talks to it."""

    teams: Teams
    world: World

    async def post(self, activity: dict[str, Any], token: str | None = None, path: str = PATH) -> Response:
        headers = {"Authorization": f"Bearer {token or self.teams.sign()}"}
        async with self.world.client() as client:
            return await client.post(path, json=activity, headers=headers)

    async def link(self, person: str, address: str) -> None:
        code = (await self.world.wiring.contacts.create_code(person, "office")).code
        await self.say(f"link {code}", address)

    async def say(self, text: str, address: str = ANNA) -> str:
        """Send a message to the bot; return its answer."""
        assert (await self.post(self.teams.activity(address, type="message", text=text))).status_code == 200
        return self.teams.messages[-1].text

    def press(self, record: SuspensionRecord, verb: str, person: str = ANNA, **inputs: str) -> dict[str, Any]:
        """Return the message for a control of the item's card."""
        channel = self.world.app.state.channels.find("office")
        assert isinstance(channel, TeamsChannel)
        card = channel.render(build_card(record, record.items[0], REFUND, "https://sayso.example")).body
        action = list_actions(card).get(verb) or {**card["refresh"]["action"], "verb": verb}
        return self.teams.invoke(person, action, **inputs)

    async def read(self, record: SuspensionRecord) -> SuspensionRecord:
        return (await self.world.wiring.desk.suspensions.read(record.id)).record

    async def is_open(self, record: SuspensionRecord) -> bool:
        return (await self.read(record)).items[0].open


@pytest.fixture
async def office(teams: Teams, world: World) -> Office:
    await make_person(world.wiring, "ben")
    return Office(teams, world)


async def test_code_links_the_sender(office: Office) -> None:
    code = (await office.world.wiring.contacts.create_code("anna", "office")).code
    assert await office.say(f"<at>Sayso</at> Link {code}") == (
        "This chat is linked to anna. Cards arrive here from now on."
    )
    (contact,) = await office.world.wiring.contacts.list_of("anna")
    assert (contact.address, contact.label) == (ANNA, "Anna A")
    assert "not valid for office" in await office.say(f"link {code}", BEN)
    assert "To link this chat send: link CODE" in await office.say("hello")


async def test_press_of_approve_decides_and_returns_the_closed_card(office: Office) -> None:
    await office.link("anna", ANNA)
    record = await make_pending(office.world.wiring)
    answer = (await office.post(office.press(record, "approve"))).json()
    (decision,) = (await office.read(record)).items[0].decisions
    assert (decision.by.id, decision.by.kind, decision.by.channel) == ("anna", "human", "office")
    assert (answer["statusCode"], answer["type"]) == (200, "application/vnd.microsoft.card.adaptive")
    assert "anna approved this over office" in read_text(answer["value"])
    assert not list_verbs(answer["value"])


async def test_press_of_undo_takes_back_the_decision(office: Office) -> None:
    await office.link("anna", ANNA)
    record = await make_pending(office.world.wiring, ask(terms=RuleTerms(undo="60s")))
    held = (await office.post(office.press(record, "approve"))).json()["value"]
    assert list_verbs(held) == {"undo"}
    again = (await office.post(office.press(record, "undo"))).json()["value"]
    assert "approve" in list_verbs(again)
    item = (await office.read(record)).items[0]
    assert (item.undoable, item.voided[0].retracted) == (None, True)


@pytest.mark.parametrize(("reason", "message"), [(" Not now. ", "Not now."), ("", None)])
async def test_press_of_deny_takes_the_reason(office: Office, reason: str, message: str | None) -> None:
    await office.link("anna", ANNA)
    record = await make_pending(office.world.wiring)
    assert "2001 characters" in (await office.post(office.press(record, "deny", reason="x" * 2001))).json()["value"]
    await office.post(office.press(record, "deny", reason=reason))
    outcome = (await office.read(record)).items[0].outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.message) == ("denied", message)


async def test_press_of_changes_takes_what_to_change(office: Office) -> None:
    await office.link("anna", ANNA)
    record = await make_pending(office.world.wiring)
    for typed, refusal in ((" ", "Write what to change"), ("x" * 2001, "2001 characters")):
        refused = await office.post(office.press(record, "changes", changes=typed))
        assert refusal in refused.json()["value"]
    card = (await office.post(office.press(record, "changes", changes="100 is enough."))).json()["value"]
    assert "anna requested changes over office at " in read_text(card)
    outcome = (await office.read(record)).items[0].outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.changes) == ("denied", RequestedChanges(round=1, rounds=3))
    assert "100 is enough." in (outcome.message or "")


async def test_changes_that_the_item_does_not_take_are_refused(office: Office) -> None:
    await office.link("anna", ANNA)
    record = await make_pending(office.world.wiring, ask(terms=RuleTerms(rounds=0)))
    answer = (await office.post(office.press(record, "changes", changes="Less."))).json()
    assert "does not offer 'changes'" in answer["value"]
    assert await office.is_open(record)


async def test_value_is_validated(office: Office) -> None:
    await office.link("anna", ANNA)
    record = await make_pending(office.world.wiring, ask(kind=ItemKind.INPUT))
    wrong = (await office.post(office.press(record, "value", value="many"))).json()
    assert wrong["type"] == "application/vnd.microsoft.activity.message"
    assert "amount" in wrong["value"]
    await office.post(office.press(record, "value", value="9.5"))
    outcome = (await office.read(record)).items[0].outcome
    assert outcome is not None
    assert outcome.value == 9.5


async def test_late_press_learns_who_was_first(office: Office) -> None:
    await office.link("anna", ANNA)
    record = await make_pending(office.world.wiring)
    late = [office.press(record, verb) for verb in ("approve", "deny", "refresh")]
    await approve(office.world.wiring, record, by="ben")
    for one in late:
        card = (await office.post(one)).json()["value"]
        assert "ben approved this" in read_text(card)
        assert not list_verbs(card)
    assert len((await office.read(record)).items[0].decisions) == 1


async def test_message_that_comes_twice_decides_once(office: Office) -> None:
    await office.link("anna", ANNA)
    record = await make_pending(office.world.wiring, ask(terms=RuleTerms(quorum=Quorum(approve=2))))
    press = office.press(record, "approve")
    answers = [(await office.post(press)).json() for _ in range(2)]
    assert answers[0]["type"] == answers[1]["type"] == "application/vnd.microsoft.card.adaptive"
    assert len((await office.read(record)).items[0].decisions) == 1
    again = (await office.post(office.press(record, "approve"))).json()
    assert "already decided" in again["value"]


async def test_refresh_shows_the_card_and_decides_nothing(office: Office) -> None:
    await office.link("anna", ANNA)
    record = await make_pending(office.world.wiring)
    card = (await office.post(office.press(record, "refresh"))).json()["value"]
    assert list_verbs(card) == {"approve", "deny", "changes", "ask"}
    assert await office.is_open(record)


async def test_press_of_nobody_or_of_another_kind_is_refused(office: Office) -> None:
    record = await make_pending(office.world.wiring)
    assert "linked to no reviewer" in (await office.post(office.press(record, "approve"))).json()["value"]
    await office.link("anna", ANNA)
    assert "belongs to no item" in (await office.post(office.press(record, "run"))).json()["value"]
    press = office.press(record, "approve")
    assert "belongs to no item" in (await office.post({**press, "value": {"action": {}}})).json()["value"]
    press["value"]["action"]["data"]["digest"] = "0" * 64
    assert "has changed" in (await office.post(press)).json()["value"]
    assert await office.is_open(record)


async def test_approve_that_the_card_does_not_offer_is_refused(office: Office) -> None:
    await office.link("anna", ANNA)
    record = await make_pending(office.world.wiring, ask(terms=RuleTerms(secrets=("order",))))
    answer = (await office.post(office.press(record, "approve"))).json()
    assert "does not offer 'approve'" in answer["value"]
    assert await office.is_open(record)


OTHER_KEY = rsa.generate_private_key(65537, 2048)


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "22222222-2222-3333-4444-555555555555"},
        {"aud": [APP, "other"]},
        {"aud": None},
        {"iss": "https://sts.windows.net/x/"},
        {"iss": None},
        {"exp": None},
        {"exp": -301},
        {"nbf": 400},
        {"serviceurl": "https://evil.example"},
        {"serviceurl": None},
        {"key": OTHER_KEY},
    ],
    ids=lambda claims: " ".join(f"{name}={value}" for name, value in claims.items() if name != "key") or "key",
)
async def test_forged_token_decides_nothing(office: Office, claims: dict[str, Any]) -> None:
    await office.link("anna", ANNA)
    record = await make_pending(office.world.wiring)
    refused = await office.post(office.press(record, "approve"), office.teams.sign(**claims))
    assert refused.status_code == 401
    assert await office.is_open(record)


@pytest.mark.parametrize(
    "form", ["", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "eyJhbGciOiJub25lIiwia2lkIjoia2V5LTEifQ.e30."]
)
async def test_token_without_a_signature_is_refused(office: Office, form: str) -> None:
    record = await make_pending(office.world.wiring)
    async with office.world.client() as client:
        headers = {"Authorization": f"Bearer {form}"} if form else {}
        refused = await client.post(PATH, json=office.press(record, "approve"), headers=headers)
    assert refused.status_code == 401


async def test_body_is_parsed_after_the_token_only(office: Office) -> None:
    async with office.world.client() as client:
        assert (await client.post(PATH, content=b"{")).status_code == 401
        headers = {"Authorization": f"Bearer {office.teams.sign()}"}
        assert (await client.post(PATH, content=b"{", headers=headers)).status_code == 400
        assert (await client.post(PATH, json={"type": 3}, headers=headers)).status_code == 422


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"channelData": {"tenant": {"id": APP}}}, 403),
        ({"channelData": {}, "conversation": {"id": "a:x"}}, 403),
        ({"conversation": {"id": "a:x", "tenantId": APP}}, 403),
        ({"from": {"id": "29:guest", "name": "Anna A"}}, 403),
        ({"channelId": "emulator"}, 401),
        ({"serviceUrl": ""}, 401),
    ],
)
async def test_message_of_another_place_is_refused(office: Office, fields: dict[str, Any], status: int) -> None:
    await office.link("anna", ANNA)
    record = await make_pending(office.world.wiring)
    assert (await office.post({**office.press(record, "approve"), **fields})).status_code == status
    assert await office.is_open(record)


async def test_unknown_channel_is_not_found(office: Office) -> None:
    activity = office.teams.activity(ANNA, type="message", text="x")
    assert (await office.post(activity, path="/channels/teams/none/messages")).status_code == 404


async def test_message_in_a_group_is_not_answered(office: Office) -> None:
    place = {"id": "19:x", "conversationType": "groupChat"}
    activity = office.teams.activity(ANNA, type="message", text="link AAAAAAAA", conversation=place)
    assert (await office.post(activity)).json() == {}
    assert office.teams.messages == []


async def test_keys_are_read_once_and_again_for_a_new_key(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        await office.say("hello")
    assert office.teams.key_reads == 1
    office.teams.kid, office.teams.key = "key-2", OTHER_KEY
    activity = office.teams.activity(ANNA, type="message", text="hello")
    assert (await office.post(activity)).status_code == 401, "not within a minute of the last request for keys"
    monkeypatch.setattr(tokens, "KEYS_AGAIN_MS", 0)
    assert (await office.post(activity)).status_code == 200
    assert office.teams.key_reads == 2


async def test_key_without_endorsement_for_teams_is_refused(office: Office) -> None:
    office.teams.endorsements = ["webchat"]
    activity = office.teams.activity(ANNA, type="message", text="hello")
    assert (await office.post(activity)).status_code == 503


async def test_metadata_that_cannot_be_read_refuses_messages(office: Office) -> None:
    channel = office.world.app.state.channels.find("office")
    channel.keys.metadata_url = "http://127.0.0.1:9/metadata"
    activity = office.teams.activity(ANNA, type="message", text="hello")
    assert (await office.post(activity)).status_code == 503


async def test_question_is_asked_once_and_stands_on_the_card(office: Office) -> None:
    await office.link("anna", ANNA)
    record = await make_pending(office.world.wiring)
    assert "1 to 2000" in (await office.post(office.press(record, "ask", question=" "))).json()["value"]
    press = office.press(record, "ask", question="Which order?")
    for _ in range(2):
        card = (await office.post(press)).json()["value"]
        assert "Question of anna: Which order?" in read_text(card)
    again = (await office.post(office.press(record, "ask", question="And why?"))).json()
    assert "has not answered" in again["value"]
    (inquiry,) = (await answer_question(office.world.wiring, record, "A-4711")).items[0].inquiries
    assert (inquiry.by.id, inquiry.by.channel) == ("anna", "office")
    card = (await office.post(office.press(record, "refresh"))).json()["value"]
    assert "Answer to anna: A-4711" in read_text(card)
    assert await office.is_open(record)
