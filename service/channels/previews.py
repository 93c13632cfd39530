"""Messages that ask nobody: previews of cards, test cards, and notices to one person about their account.

A preview shows what a rule and a sample call would show on each channel; nothing is sent or saved.
`python -m service.channels.previews RULES --rule ID --call CALL.json` prints them without a desk. Notices go over every
channel that the person has linked.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sayso.core.canonical_json import JsonObject, parse_json
from sayso.core.clock import iso_utc, new_id, now_ms
from sayso.core.policy.decisions import build_item
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.files.reading import load_rulebook
from sayso.core.policy.rules import ASKING, Mode, PolicyRule, RuleCondition
from sayso.core.records.suspensions import RunRef, Status, SuspensionRecord, Who
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.core.text.invisible import write_signs
from sayso.core.transitions.deciding import suspend
from sayso.errors import InvalidInput, NotFound, SaysoError
from service.channels.base import Channel, DeliveryFailed, Recipient, Rendered
from service.channels.cards import Card, Line, build_card
from service.channels.config import read_channels
from service.channels.kinds import KINDS, ChannelKind, Channels
from service.core.store.attempts import Allowance
from service.core.wiring import Wiring

ATTEMPT_S = 15.0
_CLOSING = "This is a test card. Nobody needs to decide anything, and nothing runs."


class Answer(NamedTuple):
    """The provider's answer at one address: its id of the message, or the reason of the failure."""

    accepted: bool
    text: str


def build_test_card(channel: str, person: str, by: str, at_ms: int, public_url: str) -> Card:
    """Return a card that is marked as a test and has no control but the link."""
    facts = (Line("Test for", person or channel), Line("Sent by", by), Line("Sent at", iso_utc(at_ms)))
    return build_plain_card("test", f"Test card of {channel}", facts, _CLOSING, f"{public_url}/me", {"test": True})


def build_plain_card(
    kind: str, headline: str, facts: tuple[Line, ...], closing: str, link: str, args: JsonObject | None = None
) -> Card:
    """Return a card that is about no item: it decides nothing and has no control but the link."""
    return Card(
        suspension_id=f"sus_{kind}",
        item_id=kind,
        version=kind,
        headline=headline,
        tool=kind,
        agent="Sayso",
        facts=facts,
        args=args or {},
        closing=closing,
        ended=closing,
        link=link,
    )


async def send_test_card(parts: Wiring, channels: Channels, name: str, person: str, by: str) -> tuple[Answer, ...]:
    """Send a test card to every address of a person, or to the channel's own destination for an empty name.

    Raises `NotFound` for an unknown channel, `InvalidInput` without an address, and `TooManyRequests` over the
    channel's limit.
    """
    channel = channels.find(name)
    if channel is None:
        known = ", ".join(sorted(channels.by_name)) or "none"
        raise NotFound(f"There is no channel {name!r}. Configured channels: {known}.")
    places = await _find_places(parts, channel, person)
    card = build_test_card(name, person, by, await parts.schedule.now_ms(), parts.settings.public_url)
    return tuple([await send_card(parts, channel, to, card, new_id("test")) for to in places])


async def _find_places(parts: Wiring, channel: Channel, person: str) -> list[Recipient]:
    if not person:
        if not channel.shared_address:
            raise InvalidInput(f"{channel.name} has no destination of its own. Name a person.")
        return [Recipient("", channel.shared_address)]
    addresses = await parts.contacts.addresses_of(person, channel.name)
    if not addresses:
        raise InvalidInput(
            f"{person} has no address on {channel.name}, or is deactivated. They link one on their account page."
        )
    return [Recipient(person, address) for address in addresses]


async def send_card(parts: Wiring, channel: Channel, to: Recipient, card: Card, message_id: str) -> Answer:
    """Send a card that is about no item; return the provider's answer. Raises `TooManyRequests` over the limit."""
    await parts.attempts.count(Allowance("channel", channel.per_minute, 60), channel.destination)
    try:
        async with asyncio.timeout(ATTEMPT_S):
            reference = await channel.send(to, card, message_id)
    except TimeoutError:
        return Answer(False, f"{channel.destination} did not respond within {ATTEMPT_S:g} s.")
    except DeliveryFailed as failure:
        return Answer(False, failure.reason)
    return Answer(True, reference)


class SampleCall(BaseModel):
    """A call to preview. `parameters` is the tool's JSON schema, which marks secrets and describes values."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: str = Field(min_length=1, max_length=200)
    args: JsonObject = Field(default_factory=dict)
    parameters: JsonObject = {"type": "object"}
    description: str = ""
    agent: str = "sample-agent"
    owner: str = "sample-owner"
    title: str = ""
    claimed: JsonObject = Field(default_factory=dict)


class Preview(NamedTuple):
    """A card as one channel shows it."""

    channel: str
    kind: str
    rendered: Rendered

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of its controls, `open` first."""
        return tuple(sorted(self.rendered.actions, key=lambda name: (name != "open", name)))


def read_sample(raw: bytes, source: str) -> SampleCall:
    """Return the sample call in a JSON text; raises `InvalidInput`."""
    try:
        return SampleCall.model_validate(parse_json(raw))
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        raise InvalidInput(
            f'{source} is not a call: {"; ".join(faults)}. Write it as {{"tool": "refund", "args": {{}}}}.'
        ) from error
    except SaysoError as error:
        raise InvalidInput(f"{source} is not strict JSON: {error.message}") from error


_NOBODY = Who(owner="owner", owner_manager="their manager", person="person", person_manager="their manager")
"""Who is behind a sample: a rule that asks a manager names none in particular."""


def build_sample_card(policy: Policy, rule_id: str, call: SampleCall, at_ms: int, public_url: str) -> Card:
    """Return the card of a call as if the rule applied to it; raises `NotFound` or `InvalidInput`."""
    record, definition = build_sample(policy, rule_id, call, at_ms)
    return build_card(record, record.items[0], definition, public_url)


def build_sample(policy: Policy, rule_id: str, call: SampleCall, at_ms: int) -> tuple[SuspensionRecord, ToolDefinition]:
    """Return a suspension as if the rule applied to the call; raises `NotFound` or `InvalidInput`."""
    rule = _find_rule(policy, rule_id)
    update = {"condition": RuleCondition(), "enabled": True, "mode": Mode.LIVE, "valid_from": None, "valid_until": None}
    always = rule.model_copy(update=update)
    event = PolicyEvent(run_id="run_sample", agent=call.agent, tool_name=call.tool, tool_args=call.args, who=_NOBODY)
    decision = Policy(rules=(always,), default=policy.default, terms=policy.terms).judge(event)
    definition = ToolDefinition(name=call.tool, description=call.description, parameters=call.parameters)
    sample = ToolCall(call_id="call_sample", index=0, name=call.tool, args=call.args)
    run = RunRef(
        id="run_sample", agent=call.agent, owner=call.owner, thread_id="", title=call.title, claimed=call.claimed
    )
    blank = SuspensionRecord(
        id="sus_sample", tenant="sample", status=Status.PENDING, created_at_ms=at_ms, updated_at_ms=at_ms, run=run
    )
    return suspend(blank, (build_item(definition, sample, decision),), at_ms).record, definition


def render_previews(channels: Iterable[Channel], card: Card) -> tuple[Preview, ...]:
    """Return the card on each channel, by name."""
    previews = (Preview(channel.name, channel.kind, channel.render(card)) for channel in channels)
    return tuple(sorted(previews, key=lambda preview: preview.channel))


def open_samples(kinds: Mapping[str, ChannelKind]) -> tuple[Channel, ...]:
    """Open a channel of each kind with the sample fields of its row. They render, but cannot send."""
    return tuple(
        row.open(row.config.model_validate({"name": kind.replace("_", "-"), "kind": kind, **row.sample}))
        for kind, row in sorted(kinds.items())
    )


def describe_preview(preview: Preview) -> str:
    """Return a preview as text: a heading, the card, and its controls."""
    complete = "complete" if preview.rendered.complete else "incomplete: it does not show everything that would run"
    head = f"== {preview.channel} ({preview.kind}), {complete}; controls: {', '.join(preview.actions)}"
    return f"{head}\n{write_signs(preview.rendered.text)}\n"


def _find_rule(policy: Policy, rule_id: str) -> PolicyRule:
    for rule in policy.rules:
        if rule.rule_id == rule_id:
            if rule.action not in ASKING:
                raise InvalidInput(
                    f"Rule {rule_id} has the action {rule.action}, which asks nobody. "
                    "Choose a rule with request_approval or request_user_input."
                )
            return rule
    known = ", ".join(rule.rule_id for rule in policy.rules if rule.action in ASKING) or "none"
    raise NotFound(f"There is no rule {rule_id!r}. Rules that ask: {known}.")


def preview(args: Sequence[str], kinds: Mapping[str, ChannelKind] = KINDS) -> str:
    """Return the previews that the command line asks for; raises `SaysoError`."""
    parser = argparse.ArgumentParser(prog="sayso channels preview", description="Show a rule's card on every channel.")
    parser.add_argument("rules", type=Path, help="the rules file")
    parser.add_argument("--rule", required=True, help="the id of the rule")
    parser.add_argument("--call", type=Path, required=True, help="a JSON file with tool, args and parameters")
    parser.add_argument("--channels", type=Path, help="the channels file; without it, every kind is shown")
    given: Any = parser.parse_args(args)
    try:
        call = read_sample(given.call.read_bytes(), str(given.call))
    except OSError as error:
        raise InvalidInput(f"{given.call} cannot be read: {error.strerror}. Check its path.") from error
    card = build_sample_card(load_rulebook(given.rules), given.rule, call, now_ms(), "https://sayso.example")
    configs = read_channels(given.channels, {kind: row.config for kind, row in kinds.items()})
    opened = [kinds[config.kind].open(config) for config in configs] if given.channels else open_samples(kinds)
    return "\n".join(map(describe_preview, render_previews(opened, card))) or "No channel is configured."


def main() -> int:
    """Print the previews; return 1 after an error."""
    try:
        print(preview(sys.argv[1:]))
    except SaysoError as error:
        print(write_signs(error.message), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())


_NOTICE_CLOSING = "This is a notice about your account. Nothing waits for a decision."
_LOG = structlog.get_logger(__name__)


async def reset_password(parts: Wiring, channels: Channels, name: str, password: str, by: str) -> None:
    """Set a person's password and tell them over every channel that they have linked; raises `NotFound`."""
    await parts.reviewers.set_password(name, password, by)
    if by != name:
        text = f"{by} set your Sayso password. If you did not ask for that, tell another admin."
        channels.notices.later(send_notices(parts, channels, name, text))


def build_notice(text: str, at_ms: int, public_url: str) -> Card:
    """Return a card that says something about an account and has no control but the link to it."""
    return build_plain_card("notice", text, (Line("At", iso_utc(at_ms)),), _NOTICE_CLOSING, f"{public_url}/me")


async def send_notices(parts: Wiring, channels: Channels, person: str, text: str) -> None:
    """Send a notice to every address of a person; failures are logged, and stop no other."""
    contacts = await parts.contacts.list_of(person)
    card = build_notice(text, await parts.schedule.now_ms(), parts.settings.public_url)
    linked = [(contact, channel) for contact in contacts if (channel := channels.find(contact.channel)) is not None]
    sending = (
        send_card(parts, channel, Recipient(person, contact.address), card, new_id("ntc"))
        for contact, channel in linked
    )
    answers = await asyncio.gather(*sending, return_exceptions=True)
    for (contact, _), answer in zip(linked, answers, strict=True):
        accepted = not isinstance(answer, BaseException) and answer.accepted
        why = "" if accepted else str(answer) if isinstance(answer, BaseException) else answer.text
        _LOG.info("account_notice", person=person, channel=contact.channel, accepted=accepted, why=why)
