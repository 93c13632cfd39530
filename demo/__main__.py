"""`make demo`: do Sayso's whole job once, unattended, and show what happened.

Everything runs for real, in a home and on ports of its own: the server, the service, two workers, the clock, and a
model endpoint that replays recorded turns. An agent asks, a reviewer answers over the HTTP API; in the end the run's
timeline and what its tools did are printed and checked.
"""

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

from demo.checks import find_faults
from demo.clients import SuspensionSeen
from demo.effects import Effects
from demo.journeys import Journey, perform, request_text
from demo.stacks import running_stack
from demo.timelines import render_timeline
from launch.stops import heard_stops
from sayso.errors import SaysoError

TIMEOUT_S = 150


def main() -> int:
    """Return 0 when everything went as it has to, else 1; what it left behind is then kept."""
    home = Path(tempfile.mkdtemp(prefix="sayso-demo-"))
    try:
        with heard_stops():
            faults = _show(home)
    except KeyboardInterrupt:
        shutil.rmtree(home)
        return 130
    except TimeoutError:
        faults = [f"The run did not end within {TIMEOUT_S} s."]
    except SaysoError as error:
        faults = [error.message]
    if faults:
        print("\nThe demo went wrong:", *faults, f"Its data and logs are in {home}.", sep="\n  ", file=sys.stderr)
        return 1
    shutil.rmtree(home)
    print("\nThe demo went right: what was approved ran once, and nothing else did.")
    return 0


def _show(home: Path) -> list[str]:
    _say("Starting the server, the service, two workers, the clock and the recorded model.")
    with running_stack(home) as stack:
        _say(f"The agent is asked, all at once:\n\n{request_text()}\n")
        journey = asyncio.run(asyncio.wait_for(perform(stack, _describe_pause), TIMEOUT_S))
        effects = Effects(home).read()
    _print_timeline(journey)
    print("\nWhat the tools did:\n")
    for effect in effects:
        print(f"  {effect.tool} {effect.args}")
    return find_faults(journey.run.status, journey.trail, effects)


def _describe_pause(paused: SuspensionSeen) -> None:
    _say(f"The run waits for: {', '.join(item.tool.name for item in paused.items)}.")


def _print_timeline(journey: Journey) -> None:
    print(f"\nThe timeline of {journey.run.id}:\n")
    for line in render_timeline(journey.trail):
        print(line)
    print(f"\nThe run ended {journey.run.status}: {journey.run.result or journey.run.error}")


def _say(words: str) -> None:
    print(words, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
