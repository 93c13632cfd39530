"""Fixtures of the notifier's tests: one channel, and the people whom it reaches."""

import pytest

from service.channels.kinds import Channels
from service.core.wiring import Wiring
from tests.channels import Book, MemoryChannel
from workers.notify.attempts import Gate
from workers.notify.notifier import Notifier

PEOPLE = Book({"anna": ("A1",), "ben": ("B1", "B2"), "demo": ("D1",)}, {"group:ops": ("anna", "ben")})


@pytest.fixture
def channel() -> MemoryChannel:
    return MemoryChannel()


@pytest.fixture
def notifier(wiring: Wiring, channel: MemoryChannel) -> Notifier:
    return Notifier(wiring, Channels({"memory": channel}), PEOPLE, Gate(wiring.attempts))
