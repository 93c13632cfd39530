"""Every kind of channel opens with its sample fields and previews a card."""

import pytest

from service.channels.base import SendsDigests, SharedOnly
from service.channels.cards import build_card
from service.channels.kinds import KINDS
from service.channels.previews import open_samples
from tests.sayso.samples import pending


@pytest.mark.parametrize("kind", KINDS)
def test_sample_of_each_kind_renders_a_card(kind: str) -> None:
    (channel,) = open_samples({kind: KINDS[kind]})
    record = pending()
    rendered = channel.render(build_card(record, record.items[0], None, "https://sayso.example"))
    assert "refund" in rendered.text
    assert (channel.name, channel.kind) == (kind.replace("_", "-"), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_channel_with_addresses_of_people_sends_digests(kind: str) -> None:
    (channel,) = open_samples({kind: KINDS[kind]})
    assert isinstance(channel, SendsDigests) != isinstance(channel, SharedOnly)
