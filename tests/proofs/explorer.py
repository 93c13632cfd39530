"""Walk every interleaving of the actors around one run, and say which of the things that must always hold breaks.

The store is one record a suspension, changed by compare-and-swap alone. Every actor looks, applies its verb to what it
saw, and commits if nobody was faster; else it looks again. Between any two of these steps every other actor may act,
time may pass, and an actor may crash: it forgets what it knew, or the reply to its commit is lost.

Times are kept relative to now, versions as "has anybody committed since this look", attempts as "is this still the
lease": so the states are finite and each is visited once. The verbs are the real ones; only what they are given is made
here. A record that stands the same but for the absolute time is one *stand*, and every verb is applied to it once.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from sayso import deadlines, pauses, resumptions
from sayso.canonical import canonical_json
from sayso.decisions import ActorKind, Decision, DecisionAction
from sayso.errors import AlreadyDecided, SaysoError
from sayso.events import EventType
from sayso.requests import Ask, Item
from sayso.resumptions import Fence, approved_args
from sayso.states import seal_state
from sayso.suspensions import LEGAL, Change, Intent, RunEnd, RunStatus, Status, SuspensionRecord
from tests.proofs.invariants import find_breach
from tests.sayso.records import T0, draft, person

LEASE_MS = 4_000
ENDED = (Status.RESUMED, Status.CANCELLED, Status.FAILED)
STATES = {phase: seal_state(canonical_json({"phase": phase})) for phase in ("ask", "call", "act", "end")}
PHASES = {state.ref.digest: phase for phase, state in STATES.items()}
MOST_REDRIVES = 2
"""The delay between two re-drives grows to ten steps; two are enough to see that it grows."""
