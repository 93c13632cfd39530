"""Measure the pages with many items waiting: `make bench ARGS=--desk`; with `--turns FILE`, also real calls."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path

import uvloop

from benchmarks.channels.installations import Row, report
from benchmarks.clients import Stamps
from benchmarks.desk.browsers import measure_pixels
from benchmarks.desk.items import fill_inbox, make_calls, read_turns
from benchmarks.desk.streams import measure_streams
from benchmarks.desk.visits import Timing, measure_first_view, measure_paths
from benchmarks.measures import quantile
from benchmarks.peers.processes import Running
from benchmarks.peers.sayso import running_sayso
from demo.stacks import find_ports

PENDING = 100_000
INBOXES, EVENTS_PER_S, SECONDS = 200, 10, 20.0
_REQUESTS, _DECISIONS, _TURNS = 100, 10, 2_000
_INBOX_MS, _FILTER_MS, _SEARCH_MS, _PIXEL_MS, _SHARE = 50.0, 100.0, 500.0, 500.0, 10.0
_INBOX_BYTES, _FIRST_BYTES = 25_000, 60_000
LATEST = Path(__file__).with_name("latest.json")

_SEARCHES = {
    "for me": "/?q=is:mine",
    "tool": "/?q=tool:refund_mail",
    "agent and tool": "/?q=agent:agent-3+tool:send",
    "risk": "/?q=is:unattended",
}
_TEXT_SEARCHES = {
    "amount": "/?q=amount%3E4990",
    "one text": "/?q=A-000077",
    "no match": "/?q=zebra",
}


def main(scale: float, turns: Path | None) -> int:
    """Measure, print and write; return 1 if a figure exceeds its bound."""
    with _running() as running:
        rows = uvloop.run(_measure(running, max(200, round(PENDING * scale)), scale))
        pixels = measure_pixels(running, max(3, round(_DECISIONS * scale)))
        rows.append(Row("decision to another browser's pixel, p50 (ms)", quantile(pixels, 0.5), _PIXEL_MS))
        rows.append(Row("decision to another browser's pixel, longest (ms)", max(pixels)))
    if turns is not None:
        with _running() as running:
            rows += uvloop.run(_measure_turns(running, turns, max(50, round(_TURNS * scale))))
    LATEST.write_text(json.dumps([row._asdict() for row in rows], indent=2) + "\n", encoding="utf-8")
    return report(rows)


@contextmanager
def _running() -> Iterator[Running]:
    stamps = Stamps()
    with (
        tempfile.TemporaryDirectory(prefix="sayso-desk-") as home,
        running_sayso(Path(home), find_ports(), stamps.path, "everysec") as running,
    ):
        yield running


async def _measure(running: Running, count: int, scale: float) -> list[Row]:
    requests = max(20, round(_REQUESTS * scale))
    empty_bytes = running.memory_bytes()
    await fill_inbox(running.url, make_calls(count))
    rows = [Row(f"{count:,} items wait: server memory an item (bytes)", (running.memory_bytes() - empty_bytes) / count)]
    inbox = await measure_paths(running, ["/"], requests)
    rows += [
        Row("inbox, p50 (ms)", inbox.p50_ms),
        Row("inbox, p95 (ms)", inbox.p95_ms, _INBOX_MS),
        Row("… processor time (ms)", inbox.cpu_ms),
        Row("inbox, 50 rows, compressed (bytes)", inbox.size, _INBOX_BYTES),
        Row("first view with scripts and styles (bytes)", await measure_first_view(running), _FIRST_BYTES),
    ]
    for name, path in (_SEARCHES | _TEXT_SEARCHES).items():
        found = await measure_paths(running, [path], requests)
        most_ms = _SEARCH_MS if name in _TEXT_SEARCHES else _FILTER_MS
        rows.append(Row(f"filter or search: {name}, p95 (ms)", found.p95_ms, most_ms))
        rows.append(Row("… processor time (ms)", found.cpu_ms))
    seconds = max(4.0, SECONDS * scale)
    for name, last_ms, bound in (("later than the page shows", 0.0, _SHARE), ("on every page", inf, None)):
        shares = await measure_streams(running, running.url, INBOXES, EVENTS_PER_S, seconds, last_ms)
        added = shares["busy"] - shares["nobody"]
        rows += [
            Row(f"{INBOXES} inboxes, {EVENTS_PER_S} new items a second {name}: core of the service (%)", added, bound),
            Row("… at rest (%)", shares["rest"]),
            Row("… events and reads of rows an inbox, in all", shares["events"] + shares["fetches"]),
        ]
    return rows


async def _measure_turns(running: Running, turns: Path, count: int) -> list[Row]:
    items = await fill_inbox(running.url, read_turns(turns, count))
    found: dict[str, Timing] = {
        "inbox": await measure_paths(running, ["/"], 50),
        "item": await measure_paths(running, items, len(items)),
        "history": await measure_paths(running, ["/history"], 50),
    }
    names = ((f"{name} of {len(items):,} real calls", one) for name, one in found.items())
    return [
        Row(f"{name}, {what} (ms)", value)
        for name, one in names
        for what, value in (("p50", one.p50_ms), ("p95", one.p95_ms), ("processor time", one.cpu_ms))
    ]
