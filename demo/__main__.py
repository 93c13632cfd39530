"""`make demo`: runs Sayso's main job once, unattended, and shows the result.

Everything is real, in a home and on ports of its own: the server, the service, two workers and the clock. A model
endpoint replays recorded turns. An agent starts a run, and a reviewer decides over the HTTP API. At the end the demo
prints and checks the run's timeline and the effects of its tools.
"""

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

from demo.agents import Effects
from demo.checks import find_faults, render_timeline
from demo.clients import SuspensionSeen
from demo.journeys import Journey, request_text, run_demo
from demo.stacks import running_stack
from launch.stops import catch_stop_signals
from sayso.errors import SaysoError

TIMEOUT_S = 150


def main() -> int:
    """Return 0 if all went as expected, else 1. The home is kept after a failure."""
    home = Path(tempfile.mkdtemp(prefix="sayso-demo-"))
    try:
        with catch_stop_signals():
            faults = _run(home)
    except KeyboardInterrupt:
        shutil.rmtree(home)
        return 130
    except TimeoutError:
        faults = [f"The run did not end within {TIMEOUT_S} s."]
    except SaysoError as error:
        faults = [error.message]
    if faults:
        print("\nThe demo failed:", *faults, f"Data and logs: {home}", sep="\n  ", file=sys.stderr)
        return 1
    shutil.rmtree(home)
    print("\nThe demo succeeded: every approved call ran exactly once, and no other call ran.")
    return 0


def _run(home: Path) -> list[str]:
    _print("Starting the server, the service, two workers, the clock and the recorded model...")
    with running_stack(home) as stack:
        _print(f"The agent gets five requests at once:\n\n{request_text()}\n")
        journey = asyncio.run(asyncio.wait_for(run_demo(stack, _describe_suspension), TIMEOUT_S))
        effects = Effects(home).read()
    _print_timeline(journey)
    print("\nEffects of the tools:\n")
    for effect in effects:
        print(f"  {effect.tool} {effect.args}")
    return find_faults(journey.run.status, journey.trail, effects)


def _describe_suspension(suspension: SuspensionSeen) -> None:
    _print(f"Suspended. Waiting for decisions on: {', '.join(item.tool.name for item in suspension.items)}.")


def _print_timeline(journey: Journey) -> None:
    print(f"\nTimeline of {journey.run.id}:\n")
    for line in render_timeline(journey.trail):
        print(line)
    result = journey.run.result
    text = result["text"] if isinstance(result, dict) else journey.run.error
    print(f"\nRun {journey.run.status}: {text}")


def _print(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
