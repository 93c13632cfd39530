"""Previews show a rule's card as each channel renders it, without a desk."""

import json
from pathlib import Path
from typing import Any

import pytest

from sayso.core.policy.files.reading import parse_rulebook
from sayso.core.text.redaction import MASK
from sayso.errors import InvalidInput, NotFound
from service.channels.base import Channel
from service.channels.config import ChannelConfig
from service.channels.kinds import ChannelKind
from service.channels.previews import build_sample_card, preview, read_sample, render_previews
from service.core.settings.receivers import Secret
from tests.channels import MemoryChannel
from tests.sayso.samples import T0

RULES = """\
version: 1
default: deny
rules:
  - id: refunds
    tool: refund
    when: args.amount > 100
    action: request_approval
    reason: Refunds need a person
    terms: {reviewers: [anna], secrets: [token]}
  - id: never
    tool: drop
    action: deny
"""
CALL: dict[str, Any] = {"tool": "refund", "args": {"amount": 5, "token": "s3cret-canary"}}


class MemoryConfig(ChannelConfig):
    password: Secret


def open_memory(config: MemoryConfig) -> Channel:
    return MemoryChannel(name=config.name)


KINDS = {"memory": ChannelKind(MemoryConfig, open_memory, sample={"password": "sample"})}


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    rules, call = tmp_path / "rules.yaml", tmp_path / "call.json"
    rules.write_text(RULES)
    call.write_text(json.dumps(CALL))
    return [str(rules), "--rule", "refunds", "--call", str(call)]


def card(rule_id: str = "refunds", **call: Any) -> Any:
    sample = read_sample(json.dumps({**CALL, **call}).encode(), "call.json")
    return build_sample_card(
        parse_rulebook(RULES.encode(), file="rules.yaml"), rule_id, sample, T0, "https://x.example"
    )


def test_card_has_the_terms_of_the_rule_although_its_condition_fails() -> None:
    found = card()
    assert dict(found.facts)["Reviewers"] == "anna, except sample-owner, who requested it"
    assert dict(found.facts)["Reason"] == "Refunds need a person"
    assert found.args == {"amount": 5, "token": MASK}
    assert found.live


def test_schema_of_the_call_marks_secrets() -> None:
    schema = {"type": "object", "properties": {"amount": {"type": "integer", "writeOnly": True}}}
    assert card(parameters=schema).args["amount"] == MASK


@pytest.mark.parametrize(
    ("rule_id", "error", "sentence"), [("none", NotFound, "Rules that ask: refunds"), ("never", InvalidInput, "nobody")]
)
def test_rule_that_asks_nobody_is_refused(rule_id: str, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        card(rule_id)


@pytest.mark.parametrize("raw", [b"{", b"[]", b'{"tool": ""}', b'{"tool": "a", "toll": 1}'])
def test_malformed_call_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"call\.json"):
        read_sample(raw, "call.json")


def test_previews_are_the_channels_own_rendering() -> None:
    (one, two) = render_previews([MemoryChannel(name="b"), MemoryChannel(name="a")], card(args={"amount": 5}))
    assert (one.channel, two.channel) == ("a", "b")
    assert one.rendered == MemoryChannel().render(card(args={"amount": 5}))
    assert one.actions == ("open", "approve", "ask", "changes", "deny", "edit")


def test_command_shows_every_kind_and_no_secret(files: list[str]) -> None:
    printed = preview(files, KINDS)
    assert "== memory (memory), incomplete: it does not show everything" in printed
    assert "it does not show everything that would run; controls: open, ask, changes, deny" in printed
    assert '"amount": 5' in printed
    assert "s3cret" not in printed


def test_command_shows_the_channels_of_a_file(files: list[str], tmp_path: Path) -> None:
    channels = tmp_path / "channels.yaml"
    channels.write_text("channels:\n  ops:\n    kind: memory\n    password: p4ss-canary\n")
    printed = preview([*files, "--channels", str(channels)], KINDS)
    assert printed.startswith("== ops (memory)")
    assert "p4ss" not in printed
