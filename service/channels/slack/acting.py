"""What people do in Slack: press buttons, submit modals, link their account and open the Home tab."""

import asyncio
from dataclasses import dataclass
from typing import NamedTuple

import structlog

from sayso.core.clock import now_ms
from sayso.core.records.decisions import Actor, DecisionRequest
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.sentences.items import describe_ineligibility
from sayso.core.transitions.deadlines import mark_seen, needs_sight
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.deliveries import is_live
from sayso.errors import InvalidInput, NotAllowed, SaysoError
from service.channels.base import CardAction, DeliveryFailed
from service.channels.cards import Card, describe_closing
from service.channels.deciding import CardRef, ask_on_card, decide_on_card, read_card, undo_on_card
from service.channels.slack import blocks as kit
from service.channels.slack import limits, views
from service.channels.slack.blocks import Block
from service.channels.slack.members import find_reviewer
from service.channels.slack.outbound import SlackChannel
from service.channels.slack.payloads import BlockActions, Command, Presser, ViewSubmission
from service.channels.slack.views import CALLBACK, FORMS, Origin
from service.core.store.suspensions.reading import split_readable
from service.core.wiring import Wiring
from service.forms.answers import Forms, make_forms

_LOG = structlog.get_logger(__name__)
BROKEN = "Something broke in Sayso. Open the item's page to see whether your decision was recorded."
_USAGE = "Type `/sayso link CODE` with a code from your account page in Sayso."


class Found(NamedTuple):
    """An item as it is now."""

    record: SuspensionRecord
    item: Item
    card: Card
    forms: Forms

    @property
    def live(self) -> bool:
        return is_live(self.record, self.item)


@dataclass(frozen=True)
class SlackDesk:
    """What people of one workspace do."""

    channel: SlackChannel
    parts: Wiring

    async def press(self, sent: BlockActions) -> None:
        """Take the press of a button; the result is shown later."""
        action = _action_of(sent.actions[0].action_id)
        if action is None or action is CardAction.OPEN:
            return
        try:
            origin = views.read_reference(sent.actions[0].value)
            origin = origin._replace(channel=sent.container.channel_id, ts=sent.container.message_ts)
            by = await self._identify(sent.user)
            if action is CardAction.APPROVE:
                key = f"{sent.user.id}:{sent.actions[0].action_ts}"
                async with self.channel.background.turns:
                    request = DecisionRequest(action="approve", digest=origin.digest)
                    try:
                        reference = CardRef(origin.suspension_id, origin.item_id)
                        done = await decide_on_card(self.parts, self.channel, reference, request, by, key)
                    except SaysoError as error:
                        self.channel.background.later(self.say(sent.response_url, await self._explain(origin, error)))
                        self.channel.background.later(self._refresh(origin))
                    else:
                        self._note_decision(sent.user, by, origin)
                        if done.item.open:
                            self.channel.background.later(self.say(sent.response_url, done.sentence))
                        self.channel.background.later(self._refresh(origin, done.record))
            elif action is CardAction.UNDO:
                async with self.channel.background.turns:
                    undone = await undo_on_card(self.parts, CardRef(origin.suspension_id, origin.item_id), by)
                self.channel.background.later(self.say(sent.response_url, undone))
            else:
                await self._open(action, origin, by, sent)
        except SaysoError as error:
            self.channel.background.later(self.say(sent.response_url, error.message))
        except Exception:  # an unforeseen fault is said to the person, and raised again for the log
            self.channel.background.later(self.say(sent.response_url, BROKEN))
            raise

    async def submit(self, sent: ViewSubmission) -> Block | None:
        """Take a submitted modal; return what Slack shows next, None to close it."""
        action = _action_of(sent.view.callback_id)
        if action is None or action not in FORMS:
            return None
        try:
            origin = views.read_origin(sent.view.private_metadata)
            by = await self._identify(sent.user)
            if action is CardAction.ASK:
                return _show(await self._ask(origin, by, sent))
            context = await self._find(origin)
        except SaysoError as error:
            return _show(error.message)
        values = sent.view.state.get("values")
        limit_bytes = self.parts.settings.body_limit_bytes
        try:
            request = await asyncio.to_thread(views.read_submission, action, context.forms, origin, values, limit_bytes)
            reference = CardRef(origin.suspension_id, origin.item_id)
            key = f"{sent.user.id}:{sent.view.id}"
            done = await decide_on_card(self.parts, self.channel, reference, request, by, key)
        except SaysoError as error:
            args = (action, context.forms, origin, values, error, context.item.target_arg)
            problems = await asyncio.to_thread(views.list_problems, *args) if isinstance(error, InvalidInput) else {}
            if problems:
                return {"response_action": "errors", "errors": dict(problems)}
            return _show(await self._explain(origin, error))
        self._note_decision(sent.user, by, origin)
        self.channel.background.later(self._refresh(origin, done.record))
        return None if not done.item.open else _show(done.sentence)

    async def run_command(self, sent: Command) -> str:
        """Carry out `/sayso …`; return the sentence for the person who typed it."""
        verb, _, code = sent.text.strip().partition(" ")
        if verb != "link" or not code.strip():
            return _USAGE
        try:
            await self.channel.members.check(sent.user_id, now_ms())
            linked = await self.parts.contacts.redeem_code(
                self.channel.name, code.strip(), sent.user_id, sent.user_name or sent.user_id
            )
        except SaysoError as error:
            return error.message
        self.channel.background.later(self.show_home(sent.user_id))
        return f"Linked to {linked.person}. You can now decide here."

    async def show_home(self, user_id: str) -> None:
        try:
            by = await self._identify(Presser(id=user_id))
            ids = await self.parts.runs.inbox(0, 200)
            records, _ = split_readable(await self.parts.desk.suspensions.read_page(ids))
            view = views.build_home(by.id, views.list_pending(records, by), self.parts.settings.public_url)
        except SaysoError as error:
            view = views.notice_home(error.message)
        await self.channel.api.call(lambda web: web.views_publish(user_id=user_id, view=view))

    async def replace_modal(self, view_id: str, text: str) -> None:
        """Show the result of a submission that took longer than Slack waits."""
        await self.channel.api.call(lambda web: web.views_update(view_id=view_id, view=views.result_modal(text)))

    async def _identify(self, user: Presser) -> Actor:
        name = await find_reviewer(self.parts.contacts, self.channel.members, self.channel.name, user.id, now_ms())
        made = await self.parts.contacts.find_made(self.channel.name, user.id)
        return await self.parts.reviewers.find_actor(name, self.channel.name, made)

    async def _ask(self, origin: Origin, by: Actor, sent: ViewSubmission) -> str:
        reference, key = CardRef(origin.suspension_id, origin.item_id), f"{sent.user.id}:{sent.view.id}"
        question = views.read_question(sent.view.state.get("values"))
        try:
            return await ask_on_card(self.parts, self.channel, reference, question, by, key)
        except SaysoError as error:
            return await self._explain(origin, error)

    async def _open(self, action: CardAction, origin: Origin, by: Actor, sent: BlockActions) -> None:
        """Open the modal of an action, unless the item is closed or its card does not offer the action."""
        context = await self._find(origin)
        if not context.live:
            self.channel.background.later(self._refresh(origin))
            raise NotAllowed(describe_closing(context.record, context.item))
        if problem := describe_ineligibility(context.record, context.item, by):
            raise NotAllowed(problem)
        rendered = await asyncio.to_thread(self.channel.render, context.card)
        if action not in rendered.actions or context.item.digest != origin.digest:
            self.channel.background.later(self._refresh(origin))
            raise NotAllowed("This card cannot do that any more. Use its current version, or open the item's page.")
        view = await asyncio.to_thread(views.build_modal, action, context.card, context.forms, origin)
        try:
            await self.channel.api.call(lambda web: web.views_open(trigger_id=sent.trigger_id, view=view))
        except DeliveryFailed as failure:
            raise InvalidInput(f"The form did not open: {failure.reason} Press again.") from failure
        if needs_sight(context.record, context.item) or mark_seen(context.item, by, 0) is not context.item:
            self.channel.background.later(self._note_seen(origin, by))

    async def _note_seen(self, origin: Origin, by: Actor) -> None:
        await self.parts.desk.see(origin.suspension_id, origin.item_id, by)

    async def _find(self, origin: Origin) -> Found:
        record = await self._read(origin)
        item = find_item(record, origin.item_id)
        definition = await self.parts.runs.definition(item.tool.definition)
        card = await read_card(self.parts, record, item)
        return Found(record, item, card, await asyncio.to_thread(make_forms, item, definition))

    async def _read(self, origin: Origin) -> SuspensionRecord:
        return (await self.parts.desk.suspensions.read(origin.suspension_id)).record

    async def _explain(self, origin: Origin, error: SaysoError) -> str:
        """Return why a decision was refused; for a closed item, who was first."""
        try:
            record = await self._read(origin)
            item = find_item(record, origin.item_id)
        except SaysoError:
            return error.message
        if is_live(record, item):
            return error.message
        return f"{describe_closing(record, item)} Nothing was changed."

    async def _refresh(self, origin: Origin, record: SuspensionRecord | None = None) -> None:
        """Replace the pressed card of a closed item, also where no delivery knows the message.

        An open item changes on: an update here could overtake a later one, so the notifier alone sends those.
        """
        if not (origin.channel and origin.ts):
            return
        async with self.channel.background.turns:
            record = record or await self._read(origin)
            item = find_item(record, origin.item_id)
            if is_live(record, item):
                return
            body = await self.channel.write(await read_card(self.parts, record, item))
        await self.channel.api.call(
            lambda web: web.chat_update(
                channel=origin.channel, ts=origin.ts, text=body["text"], blocks=body["blocks"], parse="none"
            )
        )

    async def say(self, url: str, text: str) -> None:
        await self.channel.api.respond(url, kit.escape(limits.cut(text, limits.SECTION_CHARS)))

    def _note_decision(self, user: Presser, by: Actor, origin: Origin) -> None:
        """Log who pressed for whom; the decision's idempotency key keeps the same for the audit."""
        facts = {"suspension": origin.suspension_id, "item": origin.item_id, "channel": self.channel.name}
        _LOG.info("decided_in_slack", reviewer=by.id, submitter=user.id, **facts)


def _action_of(name: str) -> CardAction | None:
    word = name.removeprefix(CALLBACK)
    return CardAction(word) if name.startswith(CALLBACK) and word in list(CardAction) else None


def _show(text: str) -> Block:
    return {"response_action": "update", "view": views.result_modal(text)}
