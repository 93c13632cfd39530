"""Measure Sayso and both floors and print the table: `make bench`, or `python -m benchmarks --scale 0.05`.

Each round measures each peer once, so a drift of the machine's speed affects all of them. Figures are medians of the
rounds. `benchmarks/latest.json` has them beside the floors'; read the ratios.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from statistics import median

import uvloop

from benchmarks import holds, memory, replays
from benchmarks.channels import deliveries, slack, webhooks
from benchmarks.clients import Stamps
from benchmarks.desk import main as desk
from benchmarks.rounds import Figures, measure_floor_a, measure_floor_b, measure_sayso

LATEST = Path(__file__).with_name("latest.json")
_UNITS = {"_ms": "ms", "_us": "µs", "_s": "s", "_per_s": "1/s", "_run": "bytes", "_bytes": "bytes", "_16": "1/s"}


def main() -> int:
    """Measure, write and print; return 1 if a hostile request held the event loop too long."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of each measurement to do")
    parser.add_argument("--fsync", choices=["always", "everysec"], default="always")
    parser.add_argument("--holds", action="store_true", help="measure how long hostile requests hold the event loop")
    parser.add_argument("--slack", action="store_true", help="measure Slack's answers while the store restarts")
    parser.add_argument("--webhooks", action="store_true", help="measure 100 endpoints of which 30 misbehave")
    parser.add_argument("--deliveries", action="store_true", help="measure escalation while providers fail")
    parser.add_argument("--desk", action="store_true", help="measure the pages with 100,000 items waiting")
    parser.add_argument("--replay", action="store_true", help="measure a replay of 100,000 recorded calls")
    parser.add_argument("--memory", action="store_true", help="measure what rules that remember cost a call")
    parser.add_argument("--turns", type=Path, help="with --desk: a file of real calls, as JSON lines")
    options = parser.parse_args()
    own: dict[str, Callable[[], int]] = {
        "holds": holds.main,
        "slack": lambda: slack.main(options.scale),
        "webhooks": lambda: webhooks.main(options.rounds, options.scale),
        "deliveries": lambda: deliveries.main(options.scale),
        "desk": lambda: desk.main(options.scale, options.turns),
        "replay": lambda: replays.main(options.scale),
        "memory": lambda: memory.main(options.scale),
    }
    for name, run in own.items():
        if getattr(options, name):
            return run()
    rows = uvloop.run(measure(options.rounds, options.scale, options.fsync))
    LATEST.write_text(json.dumps(rows, indent=2) + "\n")
    print_table(rows)
    return 0


async def measure(rounds: int, scale: float, fsync: str) -> dict[str, dict[str, object]]:
    """Return each measure with its value, its unit and the floors' values."""
    stamps = Stamps()
    await stamps.listen()
    ours: list[Figures] = []
    floors_a: list[Figures] = []
    floors_b: list[Figures] = []
    for number in range(rounds):
        floors_a.append(await measure_floor_a(stamps, fsync, scale))
        ours.append(await measure_sayso(stamps, fsync, scale))
        floors_b.append(await measure_floor_b(stamps, fsync, scale))
        print(json.dumps({"round": number + 1, "sayso": ours[-1], "floor_a": floors_a[-1], "floor_b": floors_b[-1]}))
    return {
        name: {
            "value": _median(ours, name),
            "unit": _unit(name),
            "floor_a": _median(floors_a, name),
            "floor_b": _median(floors_b, name),
        }
        for name in ours[0]
    }


def print_table(rows: dict[str, dict[str, object]]) -> None:
    """Print the measures as a Markdown table."""
    print("\n| measure | Sayso | floor A | ratio | floor B |\n| --- | --- | --- | --- | --- |")
    for name, row in rows.items():
        value, floor = row["value"], row["floor_a"]
        ratio = f"{value / floor:.2f}" if isinstance(value, int | float) and isinstance(floor, float) and floor else ""
        print(f"| {name} ({row['unit']}) | {_show(value)} | {_show(floor)} | {ratio} | {_show(row['floor_b'])} |")


def _median(rounds: list[Figures], name: str) -> float | None:
    values = [figures[name] for figures in rounds if name in figures]
    return median(values) if values else None


def _unit(name: str) -> str:
    stem = name.partition("_at_")[0]
    return next(
        (unit for ending, unit in sorted(_UNITS.items(), key=lambda pair: -len(pair[0])) if stem.endswith(ending)),
        "ratio",
    )


def _show(value: object) -> str:
    return f"{value:,.2f}" if isinstance(value, int | float) else ""


if __name__ == "__main__":
    raise SystemExit(main())
