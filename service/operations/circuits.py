"""Destinations that a process only probes because they keep failing: published for the diagnostics, for a while."""

from collections.abc import Sequence

from pydantic import TypeAdapter

from service.delivery.breakers import OpenCircuit
from service.store.channels.notes import ChannelNotes

KEPT_MS = 20_000
_NAME = "circuits"
_MOST = 20
_CIRCUITS = TypeAdapter(list[OpenCircuit])


async def save_circuits(notes: ChannelNotes, channel: str, circuits: Sequence[OpenCircuit]) -> None:
    """Save the open circuits of a channel, in place of earlier ones."""
    await notes.save(channel, _NAME, _CIRCUITS.dump_json([*circuits[:_MOST]]).decode(), KEPT_MS)


async def read_circuits(notes: ChannelNotes, channel: str) -> list[OpenCircuit]:
    """Return the open circuits of a channel as its process published them last."""
    note = await notes.read(channel, _NAME)
    return _CIRCUITS.validate_json(note) if note else []
