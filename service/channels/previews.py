"""Previews of cards: what a rule and a sample call would show on each channel. Nothing is sent or saved.

`python -m service.channels.previews RULES --rule ID --call CALL.json` prints them without a desk.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sayso.core.canonical_json import JsonObject, parse_json
from sayso.core.clock import now_ms
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
from service.channels.base import Channel, Rendered
from service.channels.cards import Card, build_card
from service.channels.config import read_channels
from service.channels.table import KINDS, ChannelKind

_URL = "https://sayso.example"


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


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}. Check its path.") from error


def _open(path: Path | None, kinds: Mapping[str, ChannelKind]) -> Sequence[Channel]:
    if path is None:
        return open_samples(kinds)
    configs = read_channels(path, {kind: row.config for kind, row in kinds.items()})
    return [kinds[config.kind].open(config) for config in configs]


def preview(args: Sequence[str], kinds: Mapping[str, ChannelKind] = KINDS) -> str:
    """Return the previews that the command line asks for; raises `SaysoError`."""
    parser = argparse.ArgumentParser(prog="sayso channels preview", description="Show a rule's card on every channel.")
    parser.add_argument("rules", type=Path, help="the rules file")
    parser.add_argument("--rule", required=True, help="the id of the rule")
    parser.add_argument("--call", type=Path, required=True, help="a JSON file with tool, args and parameters")
    parser.add_argument("--channels", type=Path, help="the channels file; without it, every kind is shown")
    given: Any = parser.parse_args(args)
    call = read_sample(_read_file(given.call), str(given.call))
    card = build_sample_card(load_rulebook(given.rules), given.rule, call, now_ms(), _URL)
    previews = render_previews(_open(given.channels, kinds), card)
    return "\n".join(map(describe_preview, previews)) or "No channel is configured."


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
