"""Texts of open items for the search: one hash beside each bucket, so that a search reads no records.

A text has the names and the arguments of an item as far as `MOST_CHARS`. An item with more is marked, and has a filter
of the rest: its record decides where the rest may have what is sought. Marks say whether an item has hidden or
look-alike characters; an item with much text of rare characters has none, and its record decides.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple
from zlib import crc32

from sayso.core.canonical_json import JsonObject
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.text.lookalikes import count_lookalikes
from sayso.core.text.redaction import redact
from sayso.core.text.summaries import list_texts, list_values
from sayso.core.text.suspicions import count_hidden
from service.core.store.connection.commits import Commit, Update
from service.core.store.connection.connecting import text
from service.core.store.connection.pipeline import Script
from service.core.store.keys import TenantKeys
from service.core.store.lua import read_script
from service.core.store.suspensions.facets import (
    Facets,
    OpenItem,
    list_places,
    name_bucket,
    name_member,
    read_member,
    write_facets,
)
from service.core.store.tenants import TenantStore

MOST_CHARS = 2_000
_MOST_FILTERED = 32_000  # bytes of a rest that has a filter
_MOST_GROUPS = 32  # of a sought part; more would find nothing more out
_BITS, _FIRST = 6, 48  # of a character of a filter
_MOST_CUT = 40  # characters of an argument that may be a number, which is never cut
_SLICE = 2_000  # texts that one script reads: some milliseconds of the store
_LINE, _PART = "\x1e", "\x1f"
_LONG, _RESEMBLING, _CHECKED, _LOOKALIKE, _HIDDEN = "+", "r", "c", "l", "h"
_MOST_CHECKED = 2_000  # characters of texts with rare ones: to check these takes some milliseconds
_RARE = re.compile(r"[^\t\n -~]")


class Probe(NamedTuple):
    """A test: `text` for a part of the text, `number` for an argument's number, `lookalike` and `hidden` for marks."""

    kind: str
    name: str = ""
    operator: str = ""
    number: str = ""


class Matches(NamedTuple):
    """The first items that fit, and the number of all: of those that fit, and of those whose record decides."""

    items: list[OpenItem]
    certain: int
    uncertain: int


def write_text(record: SuspensionRecord, item: Item) -> str:
    """Return the stored form: deadline, marks, and a line for each name and each argument, without secrets.

    A filter of what has no room follows the marks.
    """
    args = redact(item.tool.args, None, item.terms.secrets).args if item.terms.secrets else item.tool.args
    lines = [item.tool.name, record.run.agent, record.id, record.run.id]
    room = MOST_CHARS - sum(map(len, lines))
    marks = (_RESEMBLING if item.resembles else "") + _write_marks(item.tool.name, args)
    leaves = iter(list_values(args) if args else ())
    for leaf in leaves:
        line = f"{leaf.path}{_PART}{leaf.text}"
        if len(line) > room:
            lines.append(line[: max(room, 0)] if len(leaf.text) > _MOST_CUT else "")
            rest = (part.casefold() for later in chain((leaf,), leaves) for part in (later.path, later.text))
            marks += _LONG + _write_filter(rest)
            break
        lines.append(line)
        room -= len(line)
    return f"{item.terms.deadline_at_ms}{_PART}{marks}{_PART}{_LINE.join(lines).casefold()}"


def _write_marks(name: str, args: JsonObject) -> str:
    """Return the marks of hidden and look-alike characters; empty where to check these takes too long."""
    texts = [each for each in (name, *list_texts(args)) if _RARE.search(each)]
    if sum(map(len, texts)) > _MOST_CHECKED:
        return ""
    lookalike = _LOOKALIKE if any(map(count_lookalikes, texts)) else ""
    return _CHECKED + lookalike + (_HIDDEN if any(map(count_hidden, texts)) else "")


def _list_groups(part: str) -> list[int]:
    """Return the hashes of the first groups of three bytes; none of a part that is shorter."""
    data = part.encode("utf-8", "surrogatepass")
    return [crc32(data[at : at + 3]) for at in range(min(len(data) - 2, _MOST_GROUPS))]


def _write_filter(texts: Iterable[str]) -> str:
    """Return a filter that says which parts texts lack: a Bloom filter with one hash, one bit for each group.

    A group is three bytes. A part of a text has all its bits. Empty where texts are too long, or have no group.
    """
    parts, size = [], 0
    for each in texts:
        parts.append(each.encode("utf-8", "surrogatepass"))
        size += len(parts[-1])
        if size > _MOST_FILTERED:
            return ""
    data = [zip(part, part[1:], part[2:], strict=False) for part in parts]
    hashes = [crc32(bytes(group)) for group in {*chain.from_iterable(data)}]
    sextets = [0] * len(hashes)
    for value in hashes:
        place, bit = divmod(value % (len(hashes) * _BITS), _BITS)
        sextets[place] |= 1 << bit
    return "".join(chr(_FIRST + sextet) for sextet in sextets)


def file_items(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Move open items and their texts between buckets; a bucket that is empty afterwards is listed no more."""
    for before, after in update.pairs:
        earlier, now = list_places(before), list_places(after)
        leaving: dict[str, list[str]] = {}
        for member, place in earlier.items():
            if member not in now or now[member].facets != place.facets:
                leaving.setdefault(name_bucket(place.facets), []).append(member)
        entering: dict[Facets, list[str]] = {}
        for member, place in now.items():
            if earlier.get(member) != place:
                entering.setdefault(place.facets, []).append(member)
        for bucket, members in leaving.items():
            commit.write("ZREM", keys.bucket(bucket), *members)
            commit.write("HDEL", keys.texts(bucket), *members)
            commit.write_unless(keys.bucket(bucket), "HDEL", keys.buckets, bucket)
        for facets, members in entering.items():
            bucket, texts = name_bucket(facets), write_texts(after)
            commit.write("HSETNX", keys.buckets, bucket, write_facets(facets))
            commit.write(
                "ZADD", keys.bucket(bucket), *(part for name in members for part in (now[name].deadline_at_ms, name))
            )
            commit.write("HSET", keys.texts(bucket), *(part for name in members for part in (name, texts[name])))


def write_texts(record: SuspensionRecord) -> dict[str, str]:
    """Return the stored text of each open item by its member of the bucket."""
    return {name_member(record.id, item.item_id): write_text(record, item) for item in record.items if item.open}


class Texts:
    """The texts of one tenant's open items."""

    def __init__(self, store: TenantStore) -> None:
        self._keys = store.keys
        self._search = partial(store.connections.intake.run, Script(read_script("search")))

    async def find(
        self,
        wanted: Sequence[Facets],
        probes: Sequence[Probe],
        limit: int,
        after: OpenItem | None = None,
        until_ms: int | None = None,
    ) -> Matches:
        """Return the first items of these buckets that fit all probes, by deadline, behind `after`."""
        names = [self._keys.texts(name_bucket(facets)) for facets in wanted]
        begin: list[str | int] = (
            [after.deadline_at_ms, name_member(after.suspension_id, after.item_id)] if after else [0, ""]
        )
        tests = [word for probe in probes for word in (*probe, " ".join(map(str, _list_groups(probe.name))))]
        items: dict[tuple[str, str], OpenItem] = {}
        certain = uncertain = first = 0
        cursor = "0"
        while first < len(names):
            batch = names[first : first + _SLICE]
            args = [cursor, _SLICE, limit, *begin, until_ms if until_ms is not None else "inf", *tests]
            reply: list[Any] = await self._search(batch, args)
            passed, cursor = int(reply[0]), text(reply[1])
            first, certain, uncertain = first + passed, certain + int(reply[2]), uncertain + int(reply[3])
            for place in range(4, len(reply), 2):
                item = read_member(text(reply[place]), int(reply[place + 1]))
                items[item.suspension_id, item.item_id] = item
        return Matches(sorted(items.values())[:limit], certain, uncertain)
