"""Decisions in Slack through the running app: buttons, modals, links, the Home tab, and who may not decide."""

import asyncio
import json
from typing import Any

import pytest

from sayso.core.records.decisions import ActorKind
from sayso.core.records.envelopes import RequestedChanges
from sayso.core.records.items import ItemKind
from sayso.core.records.terms import Quorum, RuleTerms
from sayso.core.sentences.deliveries import UNDONE
from tests.builders import approve, ask, make_person
from tests.fakes.slack import form_of, sign
from tests.fakes.slack_api import ANNA
from tests.service.channels.slack.worlds import NAME, SlackWorld
from tests.service.features.reversing import offer_undo

BEN = "U0BEN"


async def test_approve_button_decides_as_the_linked_reviewer(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    sent = slack_world.slack.press(message, "sayso:approve")
    answer = await slack_world.interact(sent)
    assert answer.content == b""
    item = await slack_world.read(record)
    assert item.outcome is not None
    assert item.outcome.verdict == "approved"
    (decision,) = item.decisions
    assert (decision.by.id, decision.by.kind, decision.by.channel) == ("anna", ActorKind.HUMAN, NAME)
    assert decision.idempotency_key == f"{NAME}:{ANNA}:{sent['actions'][0]['action_ts']}"
    assert f"Closed: anna approved this over {NAME} at " in message.screen
    assert set(message.buttons) == {"sayso:open"}
    assert slack_world.slack.responses == []


async def test_repeated_press_changes_nothing(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask(ask(terms=RuleTerms(quorum=Quorum(approve=2))))
    sent = slack_world.slack.press(message, "sayso:approve")
    for _ in range(3):
        await slack_world.interact(sent)
    assert len((await slack_world.read(record)).decisions) == 1


async def test_undo_button_takes_back_the_decision(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask(ask(terms=RuleTerms(undo="60s")))
    assert "Until then, Undo takes it back." in await slack_world.press(message, "approve")
    _, held = await slack_world.send(record)
    assert set(held.buttons) == {"sayso:undo", "sayso:open"}
    assert await slack_world.press(held, "undo") == UNDONE
    item = await slack_world.read(record)
    assert (item.undoable, item.voided[0].retracted) == (None, True)


async def test_late_press_is_told_who_was_first(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    pressed = [slack_world.slack.press(message, f"sayso:{action}") for action in ("approve", "edit", "deny")]
    await approve(slack_world.world.wiring, record, "root")
    for sent in pressed:
        await slack_world.interact(sent)
    told = [one["text"] for one in slack_world.slack.responses]
    assert len(told) == 3
    assert all(one.startswith("root approved this over api at ") for one in told)
    assert slack_world.slack.responses[0]["response_type"] == "ephemeral"
    assert set(message.buttons) == {"sayso:open"}, "a card that missed its update is replaced by the press"
    assert slack_world.slack.views == {}


async def test_denial_sends_the_reason_of_its_modal(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    assert await slack_world.press(message, "deny") == ""
    reason = {"Reason; the agent sees it": "Too much."}
    answer = await slack_world.interact(slack_world.slack.submit(slack_world.slack.modal(), **reason))
    assert answer.content == b""
    outcome = (await slack_world.read(record)).outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.message, outcome.by.id) == ("denied", "Too much.", "anna")
    assert "Reason: Too much." in message.screen


async def test_changes_are_requested_in_their_modal(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    assert await slack_world.press(message, "changes") == ""
    typed = {"What to change; the agent sees it": "100 is enough."}
    await slack_world.interact(slack_world.slack.submit(slack_world.slack.modal(), **typed))
    outcome = (await slack_world.read(record)).outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.changes) == ("denied", RequestedChanges(round=1, rounds=3))
    assert "100 is enough." in (outcome.message or "")
    assert f"Closed: anna requested changes over {NAME} at " in message.screen
    assert "To change: 100 is enough." in message.screen


async def test_forged_changes_are_refused_where_the_item_takes_none(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask(ask(terms=RuleTerms(rounds=0)))
    assert "sayso:changes" not in message.buttons
    payload = slack_world.slack.press(message, "sayso:deny")
    payload["actions"][0]["action_id"] = "sayso:changes"
    await slack_world.interact(payload)
    assert "cannot do that" in slack_world.slack.responses[0]["text"]
    assert slack_world.slack.views == {}
    assert (await slack_world.read(record)).open


async def test_call_that_ran_is_undone_or_kept(slack_world: SlackWorld) -> None:
    await slack_world.link()
    offers = [await offer_undo(slack_world.world.wiring, key) for key in ("k1", "k2")]
    (undone, first), (kept, second) = [await slack_world.send(offer) for offer in offers]
    assert {one["text"]["text"] for one in first.buttons.values()} == {"Undo", "Keep…", "Open"}
    await slack_world.press(first, "approve")
    assert f"Closed: anna chose to undo it over {NAME} at " in first.screen
    await slack_world.press(second, "deny")
    modal = slack_world.slack.modal()
    assert (modal["title"]["text"], modal["submit"]["text"]) == ("Keep it", "Keep it")
    await slack_world.interact(slack_world.slack.submit(modal, Reason="Right so."))
    assert f"Closed: anna chose to keep it over {NAME} at " in second.screen
    for record, verdict in ((undone, "approved"), (kept, "denied")):
        outcome = (await slack_world.read(record)).outcome
        assert outcome is not None
        assert outcome.verdict == verdict


async def test_edit_is_corrected_in_its_modal_then_recorded(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    await slack_world.press(message, "edit")
    view = slack_world.slack.modal()
    for typed in ("lots", "5000"):
        refused = (await slack_world.interact(slack_world.slack.submit(view, amount=typed))).json()
        assert refused["response_action"] == "errors"
        labels = {one["block_id"]: one["label"]["text"] for one in view["blocks"] if one["type"] == "input"}
        assert [labels[key] for key in refused["errors"]] == ["amount"]
    await slack_world.interact(slack_world.slack.submit(view, amount="9"))
    outcome = (await slack_world.read(record)).outcome
    assert outcome is not None
    assert outcome.args == {"order": "A-1", "amount": 9}


async def test_value_is_given_in_its_modal(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask(ask(kind=ItemKind.INPUT))
    assert set(message.buttons) == {"sayso:value", "sayso:deny", "sayso:ask", "sayso:open"}
    await slack_world.press(message, "value")
    await slack_world.interact(slack_world.slack.submit(slack_world.slack.modal(), Value="9"))
    outcome = (await slack_world.read(record)).outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.value) == ("answered", 9)


async def test_decision_elsewhere_while_the_modal_is_open_is_shown_in_it(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    await slack_world.press(message, "deny")
    await approve(slack_world.world.wiring, record, "root")
    answer = (await slack_world.interact(slack_world.slack.submit(slack_world.slack.modal()))).json()
    assert answer["response_action"] == "update"
    assert "root approved this over api at " in json.dumps(answer["view"])
    assert len((await slack_world.read(record)).decisions) == 1


async def test_quorum_of_two_says_what_is_missing(slack_world: SlackWorld) -> None:
    await make_person(slack_world.world.wiring, "ben")
    slack_world.slack.join(BEN)
    await slack_world.link()
    await slack_world.link(BEN, "ben")
    record, message = await slack_world.ask(ask(terms=RuleTerms(quorum=Quorum(approve=2))))
    assert "1 of 2 have approved" in await slack_world.press(message, "approve")
    assert message.updates == 0, "only the notifier updates the card of an open item"
    assert await slack_world.press(message, "approve") != "", "a second vote of the same person is refused"
    assert len((await slack_world.read(record)).decisions) == 1
    await slack_world.press(message, "approve", BEN)
    assert (await slack_world.read(record)).outcome is not None


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"deleted": True}, "deactivated accounts"),
        ({"is_bot": True}, "bots"),
        ({"is_restricted": True}, "guests"),
        ({"is_ultra_restricted": True}, "guests"),
        ({"is_stranger": True}, "other workspaces"),
        ({"team_id": "T0OTHER"}, "other workspaces"),
        (None, "other workspaces"),
    ],
)
async def test_account_that_is_no_full_member_is_refused(
    slack_world: SlackWorld, fields: dict[str, Any] | None, why: str
) -> None:
    await slack_world.link()
    if fields is None:
        del slack_world.slack.people[ANNA]
    else:
        slack_world.slack.join(ANNA, **fields)
    record, message = await slack_world.ask()
    assert why in await slack_world.press(message, "approve")
    assert why in await slack_world.press(message, "deny")
    assert why in await slack_world.command("link ABCDEFGH")
    assert (await slack_world.read(record)).open
    assert slack_world.slack.views == {}


async def test_account_is_checked_once_in_a_while(slack_world: SlackWorld) -> None:
    await slack_world.link()
    _, message = await slack_world.ask()
    for _ in range(5):
        await slack_world.press(message, "deny")
    assert slack_world.slack.calls.count("users.info") == 1


async def test_slack_that_does_not_vouch_leaves_the_item_open(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    slack_world.slack.errors["users.info"] = "internal_error"
    assert "did not confirm who you are" in await slack_world.press(message, "approve")
    del slack_world.slack.errors["users.info"]
    await slack_world.press(message, "approve")
    assert not (await slack_world.read(record)).open


async def test_unlinked_account_is_told_how_to_link(slack_world: SlackWorld) -> None:
    record, message = await slack_world.ask()
    assert "/sayso link CODE" in await slack_world.press(message, "approve")
    assert (await slack_world.read(record)).open


async def test_deactivated_reviewer_cannot_decide(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    await slack_world.world.wiring.reviewers.deactivate("anna")
    assert "not linked" in await slack_world.press(message, "approve")
    assert (await slack_world.read(record)).open


async def test_requester_cannot_approve_their_own_call(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask(owner="anna")
    assert await slack_world.press(message, "approve") != ""
    assert "another reviewer" in await slack_world.press(message, "edit")
    assert (await slack_world.read(record)).open


async def test_link_command_links_once(slack_world: SlackWorld) -> None:
    code = (await slack_world.world.wiring.contacts.create_code("anna", NAME)).code
    assert await slack_world.command(f"link {code}") == "Linked to anna. You can now decide here."
    assert await slack_world.world.wiring.contacts.find_person(NAME, ANNA) == "anna"
    assert "Open items of anna" in json.dumps(slack_world.slack.homes[ANNA])
    assert "not valid" in await slack_world.command(f"link {code}", slack_world.slack.join(BEN))


@pytest.mark.parametrize("text", ["", "help", "link", "link  ", "unlink X"])
async def test_other_commands_get_the_usage(slack_world: SlackWorld, text: str) -> None:
    assert await slack_world.command(text) == ("Type `/sayso link CODE` with a code from your account page in Sayso.")


async def test_home_tab_lists_what_its_reader_may_decide(slack_world: SlackWorld) -> None:
    await slack_world.link()
    mine, _ = await slack_world.ask()
    own, _ = await slack_world.ask(owner="anna")
    event = slack_world.slack.event({"type": "app_home_opened", "user": ANNA, "tab": "home"})
    body = json.dumps(event).encode()
    assert (await slack_world.post("events", body)).status_code == 200
    shown = json.dumps(slack_world.slack.homes[ANNA])
    assert mine.id in shown
    assert own.id not in shown
    other = slack_world.slack.event({"type": "app_home_opened", "user": slack_world.slack.join(BEN), "tab": "home"})
    await slack_world.post("events", json.dumps(other).encode())
    assert "not linked" in json.dumps(slack_world.slack.homes[BEN])


async def test_address_for_events_answers_its_challenge(slack_world: SlackWorld) -> None:
    body = json.dumps({"token": "t", "challenge": "3eZbrw1a", "type": "url_verification"}).encode()
    assert (await slack_world.post("events", body)).json() == {"challenge": "3eZbrw1a"}


@pytest.mark.parametrize(
    "change",
    [
        {"api_app_id": "A0OTHER"},
        {"team": {"id": "T0OTHER"}},
        {"team": None},
        {"user": {"id": ANNA, "team_id": "T0OTHER"}},
        {"user": {"id": ""}},
        {"actions": []},
        {"type": "view_submission"},
    ],
)
async def test_signed_press_of_another_app_or_form_is_refused(slack_world: SlackWorld, change: dict[str, Any]) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    payload = {**slack_world.slack.press(message, "sayso:approve"), **change}
    answer = await slack_world.post("interactions", form_of(payload))
    assert answer.status_code in (403, 422), answer.text
    assert (await slack_world.read(record)).open


@pytest.mark.parametrize("fields", [{"api_app_id": "A0OTHER"}, {"team_id": "T0OTHER"}])
async def test_command_and_event_of_another_app_are_refused(slack_world: SlackWorld, fields: dict[str, Any]) -> None:
    event = slack_world.slack.event({"type": "app_home_opened", "user": ANNA, "tab": "home"}, **fields)
    assert (await slack_world.post("events", json.dumps(event).encode())).status_code == 403
    assert slack_world.slack.homes == {}


@pytest.mark.parametrize("value", ["", "{}", '["a"]', '["sus_x","i1","' + "0" * 64 + '"]', '["a","b","c","d"]'])
async def test_button_that_names_no_item_is_answered(slack_world: SlackWorld, value: str) -> None:
    await slack_world.link()
    record, message = await slack_world.ask()
    payload = slack_world.slack.press(message, "sayso:approve")
    payload["actions"][0]["value"] = value
    await slack_world.interact(payload)
    assert len(slack_world.slack.responses) == 1
    assert (await slack_world.read(record)).open


async def test_forged_approve_of_an_incomplete_card_is_refused(slack_world: SlackWorld) -> None:
    await slack_world.link()
    record, message = await slack_world.ask(ask(note="x" * 5_000))
    assert "sayso:approve" not in message.buttons
    for action in ("sayso:approve", "sayso:edit"):
        payload = slack_world.slack.press(message, "sayso:deny")
        payload["actions"][0]["action_id"] = action
        await slack_world.interact(payload)
    assert len(slack_world.slack.responses) == 2
    assert (await slack_world.read(record)).open
    assert slack_world.slack.views == {}


@pytest.mark.parametrize("kind", ["shortcut", "view_closed", "message_action", "block_suggestion"])
async def test_other_interactions_are_acknowledged_only(slack_world: SlackWorld, kind: str) -> None:
    assert (await slack_world.post("interactions", form_of({"type": kind}))).status_code == 200


async def test_open_button_is_acknowledged_only(slack_world: SlackWorld) -> None:
    _, message = await slack_world.ask()
    assert await slack_world.press(message, "open") == ""
    assert "users.info" not in slack_world.slack.calls


async def test_replies_go_only_to_slacks_own_address(slack_world: SlackWorld) -> None:
    _, message = await slack_world.ask()
    payload = slack_world.slack.press(message, "sayso:approve")
    elsewhere = f"{slack_world.slack.url}/link"
    await slack_world.interact({**payload, "response_url": elsewhere})
    assert slack_world.slack.responses == []


async def test_body_is_refused_before_it_is_parsed(slack_world: SlackWorld) -> None:
    for path in ("interactions", "commands", "events"):
        answer = await slack_world.post(path, b"{{{", {**sign(b"other")})
        assert (answer.status_code, answer.json()["type"]) == (401, "/problems/invalid-signature")


@pytest.mark.parametrize(
    "body", [b"", b"payload=%7B", b"payload={}&payload={}", b"payload={}&x=1", b"x=1", b"payload=%ff", b"\xff", b"&&"]
)
async def test_signed_form_that_is_no_interaction_is_refused(slack_world: SlackWorld, body: bytes) -> None:
    answer = await slack_world.post("interactions", body)
    assert answer.status_code in (200, 400, 422)
    assert (answer.status_code == 200) == (body == b"payload={}")


async def test_unknown_channel_is_not_found(slack_world: SlackWorld) -> None:
    async with slack_world.world.client() as client:
        for name in ("other", "OPS", "ops slack"):
            answer = await client.post(f"/channels/slack/{name}/events", content=b"{}", headers=sign(b"{}"))
            assert answer.status_code == 404


async def test_two_people_press_at_once_and_one_is_first(slack_world: SlackWorld) -> None:
    await make_person(slack_world.world.wiring, "ben")
    slack_world.slack.join(BEN)
    await slack_world.link()
    await slack_world.link(BEN, "ben")
    record, message = await slack_world.ask()
    presses = [slack_world.slack.press(message, "sayso:approve", user) for user in (ANNA, BEN)]
    await asyncio.gather(*map(slack_world.interact, presses))
    item = await slack_world.read(record)
    assert item.outcome is not None
    (told,) = slack_world.slack.responses
    assert told["text"].startswith(f"{item.outcome.by.id} approved this over {NAME}")
