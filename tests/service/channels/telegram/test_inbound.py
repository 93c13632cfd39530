"""Decisions in Telegram: linked chats only, once per press, and every press is answered."""

import asyncio
from typing import Any

import pytest

from sayso.core.records.envelopes import RequestedChanges
from sayso.core.records.items import ItemKind
from sayso.core.records.terms import Quorum, RuleTerms
from sayso.core.sentences.deliveries import UNDONE
from service.channels.base import CardAction
from service.channels.cards import build_card
from service.channels.telegram.card import write_data
from service.channels.telegram.inbound import Inbox, Update
from tests.builders import REFUND, answer_question, approve, ask, make_pending, person
from tests.service.channels.telegram.bots import ANNA, BEN, Bot
from tests.service.features.reversing import offer_undo


async def test_code_links_the_chat_to_its_person(bot: Bot) -> None:
    code = (await bot.wiring.contacts.create_code("anna", "tg")).code
    assert await bot.say(ANNA, f"/start {code}") == "This chat is linked to anna. Cards arrive here from now on."
    (contact,) = await bot.wiring.contacts.list_of("anna")
    assert (contact.channel, contact.address, contact.label) == ("tg", str(ANNA), "@anna_t")
    assert "not valid for tg" in await bot.say(BEN, f"/start {code}")
    assert await bot.wiring.contacts.find_person("tg", str(BEN)) is None


@pytest.mark.parametrize("text", ["hello", "/start", "/start a b c d!", ""])
async def test_other_messages_are_answered_with_help(bot: Bot, text: str) -> None:
    assert "To link this chat send: /start CODE" in await bot.say(ANNA, text)


async def test_press_of_approve_decides_for_the_linked_person(bot: Bot) -> None:
    await bot.link("anna", ANNA)
    record = await make_pending(bot.wiring)
    message = await bot.show(record)
    notice, alert = await bot.press(message, "Approve")
    (decision,) = (await bot.read(record)).items[0].decisions
    assert (decision.by.id, decision.by.kind, decision.by.channel) == ("anna", "human", "tg")
    assert notice.startswith("anna approved this over tg at ")
    assert not alert
    assert not message.data
    assert "Closed: anna approved this over tg" in message.text


async def test_press_of_undo_takes_back_the_decision_for_its_author(bot: Bot) -> None:
    await bot.link("anna", ANNA)
    await bot.link("ben", BEN)
    record = await make_pending(bot.wiring, ask(terms=RuleTerms(undo="60s")))
    message = await bot.show(record)
    notice, _ = await bot.press(message, "Approve")
    assert "Until then, Undo takes it back." in notice
    held, theirs = [await bot.show(await bot.read(record), chat) for chat in (ANNA, BEN)]
    assert set(held.data) == {"Undo"}
    assert (await bot.press(theirs, "Undo"))[0].startswith("A decision on this item takes effect at ")
    assert await bot.press(held, "Undo") == (UNDONE, False)
    item = (await bot.read(record)).items[0]
    assert (item.undoable, item.voided[0].retracted) == (None, True)


@pytest.mark.parametrize(("reply", "reason"), [("Not this <month>", "Not this <month>"), ("-", None)])
async def test_deny_waits_for_the_reason(bot: Bot, reply: str, reason: str | None) -> None:
    await bot.link("anna", ANNA)
    record = await make_pending(bot.wiring)
    message = await bot.show(record)
    assert await bot.press(message, "Deny…") == ("Reply to the question below.", False)
    prompt = bot.telegram.messages[-1]
    assert prompt.markup["force_reply"]
    assert prompt.reply_to == message.message_id
    assert (await bot.read(record)).items[0].open
    assert "anna denied this over tg" in await bot.say(ANNA, reply, prompt.message_id)
    outcome = (await bot.read(record)).items[0].outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.message) == ("denied", reason)


async def test_changes_wait_for_what_to_change(bot: Bot) -> None:
    await bot.link("anna", ANNA)
    record = await make_pending(bot.wiring)
    await bot.press(await bot.show(record), "Request changes…")
    prompt = bot.telegram.messages[-1]
    assert prompt.text.startswith("What should change in refund(")
    assert "Write what to change" in await bot.say(ANNA, "-", prompt.message_id)
    assert (await bot.read(record)).items[0].open
    assert "anna requested changes over tg" in await bot.say(ANNA, "100 is <enough>.", prompt.message_id)
    outcome = (await bot.read(record)).items[0].outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.changes) == ("denied", RequestedChanges(round=1, rounds=3))
    assert "100 is <enough>." in (outcome.message or "")


async def test_call_that_ran_is_kept_after_the_reason(bot: Bot) -> None:
    await bot.link("anna", ANNA)
    offer = await offer_undo(bot.wiring)
    message = await bot.show(offer)
    assert list(message.data) == ["Undo", "Keep…"]
    await bot.press(message, "Keep…")
    prompt = bot.telegram.messages[-1]
    assert prompt.text.startswith("Why do you keep refund(order: A-5")
    assert "anna chose to keep it over tg" in await bot.say(ANNA, "-", prompt.message_id)
    assert (await bot.read(offer)).items[0].outcome is not None


async def test_too_long_reason_is_refused_and_asked_for_again(bot: Bot) -> None:
    await bot.link("anna", ANNA)
    record = await make_pending(bot.wiring)
    await bot.press(await bot.show(record), "Deny…")
    prompt = bot.telegram.messages[-1].message_id
    assert "2001 characters; at most 2000" in await bot.say(ANNA, "x" * 2001, prompt)
    assert "Reply with a text" in await bot.say(ANNA, "  ", prompt)
    assert "denied" in await bot.say(ANNA, "x" * 1999, prompt)


async def test_value_is_given_by_reply_and_validated(bot: Bot) -> None:
    await bot.link("anna", ANNA)
    record = await make_pending(bot.wiring, ask(kind=ItemKind.INPUT))
    await bot.press(await bot.show(record), "Enter value…")
    prompt = bot.telegram.messages[-1].message_id
    for wrong in ("many", "2000", '{"a": 1}'):
        assert "amount" in await bot.say(ANNA, wrong, prompt)
    assert (await bot.read(record)).items[0].open
    assert "anna gave a value over tg" in await bot.say(ANNA, " 9.5 ", prompt)
    outcome = (await bot.read(record)).items[0].outcome
    assert outcome is not None
    assert outcome.value == 9.5


async def test_late_press_learns_who_was_first_and_loses_the_buttons(bot: Bot) -> None:
    await bot.link("anna", ANNA)
    record = await make_pending(bot.wiring)
    first, second = await bot.show(record), await bot.show(record)
    await bot.press(first, "Deny…")
    prompt = bot.telegram.messages[-1].message_id
    await approve(bot.wiring, record, by="ben")
    for button in ("Approve", "Deny…", "Ask…"):
        notice, alert = await bot.press(second, button, data=first.data[button])
        assert notice.startswith("ben approved this")
        assert "Nothing was changed" in notice
        assert alert
    assert not second.data
    assert "ben approved this" in await bot.say(ANNA, "too late", prompt)
    assert len((await bot.read(record)).items[0].decisions) == 1


async def test_late_press_on_a_changed_item_learns_who_was_first(bot: Bot) -> None:
    await bot.link("anna", ANNA)
    record = await make_pending(bot.wiring)
    message = await bot.show(record)
    before = record.items[0].model_copy(update={"digest": "0" * 64})
    card = build_card(record, before, REFUND, bot.wiring.settings.public_url)
    await approve(bot.wiring, record, by="ben")
    for action in (CardAction.APPROVE, CardAction.DENY):
        notice, alert = await bot.press(message, "", data=write_data(card, action))
        assert notice.startswith("ben approved this")
        assert notice.endswith("Nothing was changed.")
        assert alert


async def test_late_press_after_the_run_was_cancelled_says_so(bot: Bot) -> None:
    await bot.link("anna", ANNA)
    record = await make_pending(bot.wiring)
    message = await bot.show(record)
    data = dict(message.data)
    await bot.wiring.desk.cancel(record.run.id, person("ben"))
    for button in ("Approve", "Deny…"):
        notice, alert = await bot.press(message, button, data=data[button])
        assert "run was cancelled" in notice
        assert alert


async def test_quorum_is_met_by_two_chats(bot: Bot) -> None:
    await bot.link("anna", ANNA)
    await bot.link("ben", BEN)
    record = await make_pending(bot.wiring, ask(terms=RuleTerms(quorum=Quorum(approve=2))))
    cards = [await bot.show(record, chat) for chat in (ANNA, BEN)]
    notice, _ = await bot.press(cards[0], "Approve")
    assert "1 of 2 have approved" in notice
    assert "already decided" in (await bot.press(cards[0], "Approve"))[0]
    assert cards[0].data
    assert "approved" in (await bot.press(cards[1], "Approve"))[0]
    assert {one.by.id for one in (await bot.read(record)).items[0].decisions} == {"anna", "ben"}


async def test_chat_of_nobody_cannot_decide(bot: Bot) -> None:
    record = await make_pending(bot.wiring)
    message = await bot.show(record)
    assert "linked to no reviewer" in (await bot.press(message, "Approve"))[0]
    await bot.link("anna", ANNA)
    (contact,) = await bot.wiring.contacts.list_of("anna")
    await bot.press(message, "Deny…")
    prompt = bot.telegram.messages[-1].message_id
    await bot.wiring.contacts.unlink("anna", contact.id, "anna")
    assert "linked to no reviewer" in await bot.say(ANNA, "no", prompt)
    assert (await bot.read(record)).items[0].open


@pytest.mark.parametrize("fields", [{"chat": "group"}, {"by": BEN}])
async def test_press_outside_of_ones_own_chat_is_refused(bot: Bot, fields: dict[str, Any]) -> None:
    await bot.link("anna", ANNA)
    record = await make_pending(bot.wiring)
    notice, alert = await bot.press(await bot.show(record), "Approve", **fields)
    assert "in the private chat" in notice
    assert alert
    assert (await bot.read(record)).items[0].open


async def test_message_in_a_group_links_nothing(bot: Bot) -> None:
    code = (await bot.wiring.contacts.create_code("anna", "tg")).code
    bot.telegram.say(ANNA, f"/start {code}", chat="group")
    assert "not valid" in await bot.say(BEN, "/start AAAAAAAA")
    assert await bot.wiring.contacts.find_person("tg", str(ANNA)) is None


async def test_data_of_another_digest_or_item_is_refused(bot: Bot) -> None:
    await bot.link("anna", ANNA)
    record = await make_pending(bot.wiring)
    message = await bot.show(record)
    data = message.data["Approve"]
    other = await make_pending(bot.wiring)
    foreign = data.replace(record.id.removeprefix("sus_"), other.id.removeprefix("sus_"))
    for wrong, notice in (
        (foreign, "has changed since this card"),
        (data[:-1] + ("A" if data[-1] != "A" else "B"), "has changed since this card"),
        (data[:-8], "has changed since this card"),
        (data.replace(".1.", ".9."), "i9"),
        ("anything", "belongs to no item"),
    ):
        assert notice in (await bot.press(message, "Approve", data=wrong))[0]
    assert (await bot.read(record)).items[0].open
    assert (await bot.read(other)).items[0].open


async def test_approve_that_the_card_does_not_offer_is_refused(bot: Bot) -> None:
    await bot.link("anna", ANNA)
    record = await make_pending(bot.wiring, ask(terms=RuleTerms(secrets=("order",))))
    message = await bot.show(record)
    assert list(message.data) == ["Deny…", "Request changes…", "Ask…"]
    forged = write_data(build_card(record, record.items[0], REFUND, ""), CardAction.APPROVE)
    notice, _ = await bot.press(message, "Deny…", data=forged)
    assert "does not offer 'approve'" in notice
    assert (await bot.read(record)).items[0].open


async def test_press_that_comes_twice_decides_once(bot: Bot) -> None:
    await bot.link("anna", ANNA)
    record = await make_pending(bot.wiring, ask(terms=RuleTerms(quorum=Quorum(approve=2))))
    message = await bot.show(record)
    press_id = bot.telegram.press(message, "Approve")
    (update,) = [one for one in bot.telegram.updates if one.get("callback_query", {}).get("id") == press_id]
    assert await asyncio.to_thread(bot.telegram.answered, press_id)
    await Inbox(bot.channel, bot.wiring).take(Update.model_validate(update))
    assert len((await bot.read(record)).items[0].decisions) == 1


async def test_question_is_asked_by_reply_and_answered(bot: Bot) -> None:
    await bot.link("anna", ANNA)
    record = await make_pending(bot.wiring)
    message = await bot.show(record)
    assert await bot.press(message, "Ask…") == ("Reply to the question below.", False)
    prompt = bot.telegram.messages[-1]
    assert prompt.text.startswith("What do you want to ask demo about refund(")
    assert "1 to 2000 characters, not 2001" in await bot.say(ANNA, "x" * 2001, prompt.message_id)
    assert "sent to demo" in await bot.say(ANNA, "Which <order>?", prompt.message_id)
    assert "has not answered" in await bot.say(ANNA, "And why?", prompt.message_id)
    found = await answer_question(bot.wiring, record, "A-4711")
    (inquiry,) = found.items[0].inquiries
    assert (inquiry.text, inquiry.by.id, inquiry.by.channel) == ("Which <order>?", "anna", "tg")
    assert "A-4711" in (await bot.show(found)).text


async def test_question_is_refused_where_cards_have_only_a_link(bot: Bot) -> None:
    await bot.link("anna", ANNA)
    record = await make_pending(bot.wiring)
    await bot.press(await bot.show(record), "Ask…")
    prompt = bot.telegram.messages[-1].message_id
    bot.channel.config = bot.channel.config.model_copy(update={"decide": False})
    assert "does not offer 'ask'" in await bot.say(ANNA, "Which order?", prompt)
    assert (await bot.read(record)).items[0].inquiries == ()
