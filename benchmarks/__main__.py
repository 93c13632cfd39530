"""Measure Sayso beside two floors and Restate: `make bench`, or `python -m benchmarks --scale 0.02`.

Each round measures each system once, so a drift of the machine's speed affects all of them. Figures are medians of the
rounds. `benchmarks/latest.json` has them; read the ratios. Below a scale of 0.15, fewer runs are suspended than the
bounds name.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

from benchmarks import archive, load, memory, primaries, replays, soak
from benchmarks.channels import deliveries, slack, webhooks
from benchmarks.desk import main as desk
from benchmarks.holds import main as holds
from benchmarks.peers.restate import find_missing
from benchmarks.speed import main as speed
from benchmarks.speed.rounds import PARTS, Extent


def main() -> int:
    """Measure, write and print; return 1 if a bound is not met."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of each measurement to do")
    parser.add_argument("--fsync", choices=["always", "everysec"], default="always")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure")
    parser.add_argument("--systems", nargs="+", choices=speed.SYSTEMS, default=speed.SYSTEMS, help="what to compare")
    parser.add_argument("--plots", action="store_true", help="draw the plots of docs/performance.md")
    parser.add_argument("--holds", action="store_true", help="measure how long hostile requests hold the event loop")
    parser.add_argument("--slack", action="store_true", help="measure Slack's answers while the store restarts")
    parser.add_argument("--webhooks", action="store_true", help="measure 100 endpoints of which 30 misbehave")
    parser.add_argument("--deliveries", action="store_true", help="measure escalation while providers fail")
    parser.add_argument("--desk", action="store_true", help="measure the pages with 100,000 items waiting")
    parser.add_argument("--replay", action="store_true", help="measure a replay of 100,000 recorded calls")
    parser.add_argument("--memory", action="store_true", help="measure what rules that remember cost a call")
    parser.add_argument("--archive", action="store_true", help="measure memory and disk of runs, and an archive")
    parser.add_argument("--turns", type=Path, help="with --desk: a file of real calls, as JSON lines")
    parser.add_argument("--load", type=float, metavar="MINUTES", help="measure a company's load, and several programs")
    parser.add_argument("--primaries", action="store_true", help="measure tenants in clusters of 1 and 3 primaries")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="measure the memory of a service that refuses")
    options = parser.parse_args()
    own: dict[str, Callable[[], int]] = {
        "holds": holds.main,
        "slack": lambda: slack.main(options.scale),
        "webhooks": lambda: webhooks.main(options.rounds, options.scale),
        "deliveries": lambda: deliveries.main(options.scale),
        "desk": lambda: desk.main(options.scale, options.turns),
        "replay": lambda: replays.main(options.scale),
        "memory": lambda: memory.main(options.scale),
        "archive": lambda: archive.main(options.scale),
        "load": lambda: load.main(options.load, options.scale),
        "primaries": lambda: primaries.main(options.scale),
        "soak": lambda: soak.main(options.soak),
    }
    for name, run in own.items():
        if getattr(options, name):
            return run()
    systems = [name for name in speed.SYSTEMS if name in options.systems]
    if "restate" in systems and (missing := find_missing()):
        print(missing)
        systems.remove("restate")
    return speed.main(options.rounds, Extent(options.scale, options.fsync, options.parts, systems), options.plots)


if __name__ == "__main__":
    raise SystemExit(main())
