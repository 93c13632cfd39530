"""Compare a provider's log of cards and presses with the trail: who was notified of what, and which buttons stayed."""

from collections.abc import Iterator

from sayso.core.clock import iso_utc
from sayso.core.records.deliveries import DeliveryState
from tests.chaos.checking.executions import SLACK_MS
from tests.chaos.checking.history import Closing, History, TrailItem
from tests.chaos.evidence.provider_log import CHANNEL, ProviderLine
from tests.chaos.workload.plans import NOTIFIED

NOTIFIED_WITHIN_MS = 60_000
"""An item that closes sooner may not have been sent: clocks killed while a provider hangs take this long under load."""

_DECIDES = ("approve", "deny")


def count_late(history: History) -> int:
    """Count the presses after their items were closed."""
    return sum(_is_late(history, line) for line in history.presses)


def find_silent_refusals(history: History) -> Iterator[str]:
    """A press after the item was closed is answered with who was first, and decides nothing."""
    decided = {decision.decision_id for decision in history.index.decisions}
    for line in history.presses:
        first = _first_of(history, line)
        if first is None or not _is_late(history, line):
            continue
        about = f"{line.person} pressed a button of {line.item_id} at {iso_utc(line.at_ms)}, after it was closed,"
        answers = history.answers_to(line)
        if not answers:
            yield f"{about} and got no answer"
        elif not any(sign in answer for answer in answers for sign in first[1]):
            yield f"{about} and was not told '{first[1][0]}', but {answers}"
        if line.decision_id in decided:
            yield f"{about} and the trail has that as a decision"


def find_armed_cards(history: History) -> Iterator[str]:
    """A card of a closed item has no button and says who decided.

    Cards that had to be pressed before they lost their buttons are those that Sayso could not know.
    """
    for card in history.cards:
        last = history.versions_of(card)[-1]
        first = _first_of(history, card)
        if first is None:
            continue
        about = f"the card {card.message_id} of {card.item_id} in the chat of {card.person}"
        if last.buttons:
            yield f"{about} still has {list(last.buttons)}, although the item is closed"
        elif not any(sign in last.text for sign in first[1]):
            yield f"{about} does not say '{first[1][0]}'"
    for line in history.left:
        latest = [card for card in history.cards if _about(card) == _about(line)][-1]
        if latest.message_id == line.message_id and _is_proven(history, line):
            yield f"the card {line.message_id} of {line.item_id} lost its buttons only when {line.person} pressed one"


def find_unpressed_decisions(history: History) -> Iterator[str]:
    """A decision from the channel has exactly one press behind it, by that person, on that item, to that effect."""
    for decision in history.index.decisions:
        if decision.channel != CHANNEL:
            continue
        about = f"the decision {decision.decision_id} of {decision.by} over {CHANNEL}"
        presses = [line for line in history.presses if line.decision_id == decision.decision_id]
        if len(presses) != 1:
            yield f"{about} has {len(presses)} presses behind it"
            continue
        line = presses[0]
        made = (line.person, line.suspension_id, line.item_id, line.action, line.text or None)
        recorded = (decision.by, decision.suspension_id, decision.item_id, decision.action, decision.message)
        if made != recorded:
            yield f"{about} is {recorded}, but its press was {made}"
        if line.at_ms > decision.entry.at_ms + SLACK_MS:
            yield f"{about} was recorded at {iso_utc(decision.entry.at_ms)}, before the press"
    recorded_ids = {decision.decision_id for decision in history.index.decisions}
    for line in history.presses:
        confirmed = any("Your decision is recorded" in answer for answer in history.answers_to(line))
        if confirmed and line.action in _DECIDES and line.decision_id not in recorded_ids:
            yield f"the press {line.key} of {line.person} was confirmed, but the trail does not have its decision"


def find_lost_cards(history: History) -> Iterator[str]:
    """Every item whose rule names the channel was sent, or failed with a reason; what was sent is at the provider."""
    sent = {_about(card) for card in history.cards}
    for key, item in history.index.items.items():
        if item.tool not in NOTIFIED or item.is_in_doubt:
            continue
        found = [one for one in history.trail.deliveries if (one.suspension_id, one.item_id) == key]
        about = f"the item {item.item_id} of {item.tool} in {item.suspension_id}"
        if not any(one.channel == CHANNEL for one in found):
            yield f"{about} has no delivery over {CHANNEL}"
        for one in found:
            if one.proven and (one.person, *key) not in sent:
                yield f"{about} is {one.state} to {one.person}, but the provider has no card"
            if one.state is DeliveryState.FAILED and not one.reason:
                yield f"{about} failed for {one.person} without a reason"
            if one.state is DeliveryState.QUEUED and _open_ms(history, item) > NOTIFIED_WITHIN_MS:
                yield f"{about} was open for {_open_ms(history, item)} ms, but its card is still queued: {one.reason}"


def _is_late(history: History, line: ProviderLine) -> bool:
    first = _first_of(history, line)
    return first is not None and line.at_ms > first[0] + SLACK_MS


def _first_of(history: History, line: ProviderLine) -> tuple[int, tuple[str, ...]] | None:
    """Return when the item of a line was closed, and the words of which one says who did that; None if it is open."""
    item = history.index.items.get((line.suspension_id, line.item_id))
    closing = history.index.closing_of(item) if item is not None else None
    if closing is not None:
        return closing.entry.at_ms, _words_of(closing)
    cancelled = history.index.cancelled
    return (cancelled.at_ms, ("run was cancelled",)) if cancelled is not None else None


def _words_of(closing: Closing) -> tuple[str, ...]:
    if closing.decision is not None:
        return (f"{closing.decision.by} {closing.verdict} this",)
    return ("nobody answered in time", f"timeout {closing.verdict} this")


def _is_proven(history: History, line: ProviderLine) -> bool:
    return any(
        one.proven and (one.person, one.suspension_id, one.item_id) == _about(line) for one in history.trail.deliveries
    )


def _open_ms(history: History, item: TrailItem) -> int:
    closing = history.index.closing_of(item)
    end = closing.entry if closing is not None else history.entries[-1]
    return end.at_ms - history.suspended_at_ms(item)


def _about(line: ProviderLine) -> tuple[str, str, str]:
    return line.person, line.suspension_id, line.item_id
