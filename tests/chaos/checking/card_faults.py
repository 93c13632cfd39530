"""Faults of cards, of presses and of the answers to them."""

from collections.abc import Callable

from sayso.core.records.deliveries import DeliveryState
from sayso.core.records.events import EventType, TrailEntry
from tests.chaos.checking.history import History, RecordedDecision
from tests.chaos.checking.tampering import Evidence
from tests.chaos.evidence.provider_log import CHANNEL, ProviderLine
from tests.chaos.evidence.trails import DeliveryLine


def late_press_not_told_who(evidence: Evidence) -> None:
    key = _find_late(evidence).key
    _change(evidence, lambda line: _is_answer_to(line, key), text="Try again.")


def late_press_without_answer(evidence: Evidence) -> None:
    key = _find_late(evidence).key
    evidence.provider = [line for line in evidence.provider if not _is_answer_to(line, key)]


def late_press_decides(evidence: Evidence) -> None:
    decision = _find_decision(evidence)
    _change(evidence, lambda line: _is_press_of(line, decision), at_ms=decision.entry.at_ms + 60_000)


def card_keeps_its_buttons(evidence: Evidence) -> None:
    place = max(place for place, line in enumerate(evidence.provider) if line.what == "updated")
    _replace(evidence, place, buttons=("Approve",))


def card_without_the_decider(evidence: Evidence) -> None:
    place = max(place for place, line in enumerate(evidence.provider) if line.what == "updated")
    _replace(evidence, place, text="This item is closed.")


def known_card_had_to_be_pressed(evidence: Evidence) -> None:
    proven = {(one.suspension_id, one.item_id, one.person) for one in _list_deliveries(evidence) if one.proven}
    sent = [line for line in evidence.provider if line.what == "sent"]
    last = next(one for one in reversed(sent) if (one.suspension_id, one.item_id, one.person) in proven)
    evidence.provider.append(last.model_copy(update={"what": "left", "buttons": (), "text": ""}))


def decision_without_press(evidence: Evidence) -> None:
    decision = _find_decision(evidence)
    evidence.provider = [line for line in evidence.provider if not _is_press_of(line, decision)]


def decision_by_two_presses(evidence: Evidence) -> None:
    decision = _find_decision(evidence)
    evidence.provider += [line for line in evidence.provider if _is_press_of(line, decision)]


def decision_unlike_its_press(evidence: Evidence) -> None:
    decision = _find_decision(evidence)
    _change(evidence, lambda line: _is_press_of(line, decision), action="deny")


def confirmed_press_is_lost(evidence: Evidence) -> None:
    late = _find_late(evidence)
    answer = {"what": "answered", "action": "", "text": "Your decision is recorded."}
    evidence.provider.append(late.model_copy(update=answer))


def item_without_delivery(evidence: Evidence) -> None:
    _change_deliveries(evidence, lambda _: [])


def delivery_without_card(evidence: Evidence) -> None:
    one = next(one for one in _list_deliveries(evidence) if one.proven)
    evidence.provider = [
        line for line in evidence.provider if line.what != "sent" or line.suspension_id != one.suspension_id
    ]


def failure_without_reason(evidence: Evidence) -> None:
    _change_deliveries(evidence, lambda one: [one.model_copy(update={"state": DeliveryState.FAILED, "reason": None})])


def card_forgotten(evidence: Evidence) -> None:
    def delay(entry: TrailEntry) -> list[TrailEntry]:
        before = entry.type in (EventType.RUN_STARTED, EventType.RUN_PAUSED)
        return [entry if before else entry.model_copy(update={"at_ms": entry.at_ms + 90_000})]

    place = next(place for place, trail in enumerate(evidence.trails) if trail.deliveries)
    evidence.rewrite(place, delay)
    _change_deliveries(evidence, lambda one: [one.model_copy(update={"state": DeliveryState.QUEUED, "reason": None})])


def card_of_unknown_suspension(evidence: Evidence) -> None:
    evidence.provider.append(evidence.provider[0].model_copy(update={"suspension_id": "sus_unheard_of"}))


def _find_decision(evidence: Evidence) -> RecordedDecision:
    """Return an approval that was pressed and closed its item."""
    for history in evidence.histories():
        for one in history.index.decisions:
            if one.channel == CHANNEL and one.action == "approve" and one.verdict is not None:
                return one
    raise LookupError("nobody decided over the channel")


def _find_late(evidence: Evidence) -> ProviderLine:
    """Return the press of Approve that came last: long after its item was closed."""
    for history in evidence.histories():
        for line in reversed(history.presses):
            if line.action == "approve" and _is_late(history, line):
                return line
    raise LookupError("nobody pressed late")


def _is_late(history: History, line: ProviderLine) -> bool:
    closings = history.index.closings.get((line.suspension_id, line.item_id), [])
    return bool(closings) and line.at_ms > closings[0].entry.at_ms + 100


def _is_press_of(line: ProviderLine, decision: RecordedDecision) -> bool:
    return line.what == "pressed" and line.decision_id == decision.decision_id


def _is_answer_to(line: ProviderLine, key: str) -> bool:
    return line.key == key and line.what in ("answered", "refused")


def _list_deliveries(evidence: Evidence) -> list[DeliveryLine]:
    return [one for trail in evidence.trails for one in trail.deliveries]


def _change(evidence: Evidence, wanted: Callable[[ProviderLine], bool], **update: object) -> None:
    for place, line in enumerate(evidence.provider):
        if wanted(line):
            _replace(evidence, place, **update)


def _replace(evidence: Evidence, place: int, **update: object) -> None:
    evidence.provider[place] = evidence.provider[place].model_copy(update=update)


def _change_deliveries(evidence: Evidence, change: Callable[[DeliveryLine], list[DeliveryLine]]) -> None:
    """Change all deliveries of the first run that has any."""
    place, trail = next((place, trail) for place, trail in enumerate(evidence.trails) if trail.deliveries)
    changed = tuple(new for one in trail.deliveries for new in change(one))
    evidence.trails[place] = trail.model_copy(update={"deliveries": changed})
