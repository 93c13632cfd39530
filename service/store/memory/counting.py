"""What a commit writes to the counters of rules."""

from sayso.core.policy.counters.charging import Counted, find_counted, list_limits
from sayso.core.policy.rule_keys import MOST_SAMPLES
from sayso.core.records.charges import MAX_TOTAL, Charge, find_slot, find_window, first_slot
from service.store.connection.commits import Commit, Update
from service.store.keys import TenantKeys
from service.store.memory.granting import note_grants


def note_memory(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Count what a change adds to counters and takes back, and save the grants that it makes and uses."""
    counted = find_counted(update.before, update.change)
    count_charges(commit, keys, counted, update.at_ms)
    note_grants(commit, keys, counted, update.change, update.at_ms)


def count_charges(commit: Commit, keys: TenantKeys, counted: Counted, now_ms: int) -> None:
    """Add the guards and writes of the charges; without charges there are none."""
    for counter, (charge, room) in list_limits(counted.added).items():
        window = find_window(charge.per_s)
        slots = (window.back, charge.slot, window.slot_ms)
        commit.expect_total(keys.counter(counter), MAX_TOTAL if room is None else room, slots)
    for charge in counted.added:
        _add(commit, keys.counter(charge.counter), charge)
    for charge in counted.removed:
        _remove(commit, keys.counter(charge.counter), charge, now_ms)


def _add(commit: Commit, key: str, charge: Charge) -> None:
    window = find_window(charge.per_s)
    if charge.sample:
        commit.write("RPUSH", key, _write_sample(charge))
        commit.write("LTRIM", key, -MOST_SAMPLES, -1)
        commit.write("PEXPIRE", key, window.kept_ms)
    else:
        commit.write("COUNT", key, charge.slot, charge.amount, charge.slot - window.back, window.kept_ms)


def _remove(commit: Commit, key: str, charge: Charge, now_ms: int) -> None:
    if charge.sample:
        commit.write("LREM", key, -1, _write_sample(charge))
    elif charge.slot >= first_slot(charge.per_s, find_slot(charge.per_s, now_ms)):
        commit.write_if(key, "HINCRBY", key, charge.slot, -charge.amount)


def _write_sample(charge: Charge) -> str:
    return f"{charge.slot}|{charge.amount}"
