"""A preview is stored with the item, its digest is part of what is approved, and a new one voids what saw the old."""

from typing import Any

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Actor, ActorKind, ConfirmRequest
from sayso.core.records.items import ItemDraft, ItemKind
from sayso.core.records.previews import Preview, put_preview
from sayso.core.records.suspensions import Change, ResumeSpec, SuspensionRecord
from sayso.core.sentences.outcomes import describe_voided
from sayso.core.transitions.deciding import ask_again, decide, suspend, void_decisions
from sayso.core.transitions.execution import WaitingWorker, hand_over
from sayso.core.transitions.inquiring import confirm, request_preview, store_preview
from sayso.core.transitions.permits import shows_effect
from sayso.errors import AlreadyDecided, Conflict, IllegalTransition, NotAllowed, SelfApproval, StaleDigest
from tests.sayso.samples import T0, ask, draft, pending, person, types_of, word

EDIT: JsonObject = {"order": "A-0", "amount": 99.0}
QUORUM = {"quorum": {"approve": 2, "deny": 1}}


def shown(content: str = "deletes 3 rows", **fields: Any) -> Preview:
    return Preview(content=content, digest=(content[-1:].encode().hex() * 32), at_ms=T0, **fields)


def previewed(*previews: Preview, **terms: Any) -> ItemDraft:
    asked = ask(**terms)
    tool = asked.tool.model_copy(update={"previews": True})
    return asked.model_copy(update={"tool": tool, "previews": previews})


def store(record: SuspensionRecord, preview: Preview, **request: Any) -> Change:
    wanted = request_preview(record, "i1", preview.args, person("ben"), T0 + 1).record
    return store_preview(wanted, "i1", preview, T0 + 2)


def test_suspension_waits_for_a_preview_that_it_came_without() -> None:
    (item,) = pending(previewed()).items
    assert item.preview_request is not None
    assert (item.preview_request.by, item.preview_request.args) == (None, None)
    assert pending(previewed(shown())).items[0].preview_request is None
    assert pending(ask()).items[0].preview_request is None
    by_client = suspend(draft(resume=ResumeSpec(mode="poll")), (previewed(),), T0).record
    assert by_client.items[0].preview_request is None


def test_value_plan_and_doubt_have_no_preview() -> None:
    asked = previewed()
    assert shows_effect(pending(asked).items[0])
    assert not shows_effect(pending(asked.model_copy(update={"kind": ItemKind.INPUT, "target_arg": "amount"})).items[0])
    assert not shows_effect(pending(ask()).items[0])


def test_stored_preview_changes_the_digest_of_the_item() -> None:
    record = pending(previewed())
    change = store_preview(record, "i1", shown(), T0 + 2)
    (before,), (item,) = record.items, change.record.items
    assert item.digest != before.digest
    assert (item.previews, item.preview_request) == ((shown(),), None)
    assert types_of(change) == ["preview_stored"]
    assert change.events[0].data == {
        "suspension_id": "sus_1",
        "item_id": "i1",
        "preview": shown().digest,
        "edited": False,
    }
    with pytest.raises(StaleDigest):
        decide(change.record, word(record), T0 + 3)
    assert decide(change.record, word(change.record), T0 + 3).record.items[0].outcome is not None


def test_preview_that_came_with_the_item_is_in_its_digest() -> None:
    digests = {pending(previewed(*previews)).items[0].digest for previews in ((), (shown(),), (shown("no 4"),))}
    assert len(digests) == 3


def test_same_preview_again_keeps_digest_and_approvals() -> None:
    record = pending(previewed(shown(), **QUORUM))
    approved = decide(record, word(record), T0).record
    change = store(approved, shown().model_copy(update={"at_ms": T0 + 2}))
    assert change.record.items[0].digest == record.items[0].digest
    assert [decision.by.id for decision in change.record.items[0].decisions] == ["ada"]
    assert change.record.items[0].previews[0].at_ms == T0 + 2


def test_other_preview_voids_approvals_and_keeps_denials() -> None:
    record = pending(previewed(shown(), quorum={"approve": 3, "deny": 2}))
    record = decide(record, word(record), T0).record
    record = decide(record, word(record, "deny", by="cleo"), T0).record
    record = decide(record, word(record, by="dan", args=EDIT), T0).record
    change = store(record, shown("deletes 4 rows, no 4"))
    (item,) = change.record.items
    assert types_of(change) == ["preview_stored", "decision_voided"]
    assert [decision.by.id for decision in item.decisions] == ["cleo", "dan"]
    assert [(gone.by.id, gone.retracted, gone.outdated) for gone in item.voided] == [("ada", False, True)]
    assert change.events[1].data["outdated"] is True
    assert describe_voided(item.voided[0]).endswith("which does not count: what the call would do has changed")
    edited = store(change.record, shown("deletes 9", args=EDIT))
    assert [decision.by.id for decision in edited.record.items[0].decisions] == ["cleo"]
    assert edited.record.items[0].digest != item.digest


def test_decision_of_who_was_deactivated_saw_no_other_preview() -> None:
    record = pending(previewed(shown(), **QUORUM))
    change = void_decisions(decide(record, word(record), T0).record, ("ada",), T0)
    assert (change.record.items[0].voided[0].outdated, "outdated" in change.events[0].data) == (False, False)


def test_other_preview_voids_a_decision_that_takes_effect_soon() -> None:
    record = pending(previewed(undo="5s"))
    record = decide(record, word(record), T0).record
    assert record.items[0].undoable is not None
    item = store_preview(record, "i1", shown(), T0 + 2).record.items[0]
    assert (item.undoable, item.voided[0].by.id, item.outcome) == (None, "ada", None)


def test_other_preview_voids_a_confirmation() -> None:
    record = pending(previewed(confirm_by="paul", quorum={"approve": 1}))
    request = ConfirmRequest(action="confirm", digest=record.items[0].digest)
    record = confirm(record, "i1", request, "conf_1", person("paul"), T0).record
    assert record.items[0].confirmation is not None
    change = store_preview(record, "i1", shown(), T0 + 2)
    assert change.record.items[0].confirmation is None
    assert types_of(change) == ["preview_stored", "decision_voided"]


def test_request_is_recorded_with_its_author() -> None:
    change = request_preview(pending(previewed(shown())), "i1", EDIT, person("ben"), T0 + 1)
    asked = change.record.items[0].preview_request
    assert asked is not None
    assert (asked.by and asked.by.id, asked.args, asked.at_ms) == ("ben", EDIT, T0 + 1)
    (event,) = change.events
    assert (event.type, event.data["by"]["id"], event.data["edited"]) == ("preview_requested", "ben", True)
    same = request_preview(change.record, "i1", ask().tool.args, person("ben"), T0 + 1).record.items[0].preview_request
    assert same is not None
    assert same.args is None


def test_request_needs_an_open_item_a_reviewer_and_a_worker() -> None:
    record = pending(previewed(shown(), reviewers=("ada",), no_self_approval=True))
    with pytest.raises(NotAllowed, match="ada"):
        request_preview(record, "i1", None, person("ben"), T0)
    with pytest.raises(NotAllowed, match="never decide"):
        request_preview(record, "i1", None, Actor(id="bot", kind=ActorKind.AGENT), T0)
    with pytest.raises(SelfApproval):
        request_preview(pending(previewed(no_self_approval=True)), "i1", None, person("bot"), T0)
    with pytest.raises(Conflict, match="No worker can preview refund"):
        request_preview(pending(ask()), "i1", None, person("ada"), T0)
    by_client = suspend(draft(resume=ResumeSpec(mode="poll")), (previewed(),), T0).record
    with pytest.raises(Conflict, match="No worker can preview refund"):
        request_preview(by_client, "i1", None, person("ada"), T0)
    decided = decide(record, word(record), T0).record
    with pytest.raises(AlreadyDecided):
        request_preview(decided, "i1", None, person("ada"), T0)


def test_preview_that_nobody_waits_for_changes_nothing() -> None:
    record = pending(previewed(shown()))
    assert store_preview(record, "i1", shown("no 5"), T0).record is record
    wanted = request_preview(record, "i1", EDIT, person("ben"), T0).record
    assert store_preview(wanted, "i1", shown("no 5"), T0).record is wanted
    waiting = pending(previewed())
    decided = decide(waiting, word(waiting), T0).record
    assert store_preview(decided, "i1", shown(), T0).record is decided


def test_failed_preview_keeps_the_item_open() -> None:
    change = store_preview(pending(previewed()), "i1", shown("", error="It took longer than 20 s."), T0)
    assert change.events[0].data["error"] == "It took longer than 20 s."
    assert decide(change.record, word(change.record), T0).record.items[0].outcome is not None


def test_two_previews_are_kept_at_most() -> None:
    own, edited = shown(), shown("x", args=EDIT)
    assert put_preview((edited,), own) == (own, edited)
    assert put_preview((own, edited), shown("y")) == (shown("y"), edited)
    assert put_preview((own, edited), shown("z", args={"order": "B"})) == (own, shown("z", args={"order": "B"}))


def test_item_that_is_asked_again_keeps_the_preview_of_the_edit() -> None:
    record = pending(previewed(shown()))
    again = previewed().model_copy(update={"tool": previewed().tool.model_copy(update={"args": EDIT})})
    edit = word(record, args=EDIT)
    bare = ask_again(record, edit, again, T0).record.items[0]
    assert (bare.previews, bare.preview_request is not None) == ((), True)
    record = store(record, shown("x", args=EDIT)).record
    kept = ask_again(record, word(record, args=EDIT), again, T0).record.items[0]
    assert (kept.previews, kept.preview_request) == ((shown("x"),), None)


def test_run_with_a_preview_is_handed_to_no_worker() -> None:
    worker = WaitingWorker("w1", 1000, "")
    plain, effect = pending(ask()), pending(previewed(shown()))
    assert hand_over(decide(plain, word(plain), T0), worker, T0).handed_to == worker.name
    assert not hand_over(decide(effect, word(effect), T0), worker, T0).handed_to


def test_preview_of_a_run_that_ended_is_not_stored() -> None:
    record = pending(previewed(), ask(1))
    cancelled = record.model_copy(update={"status": "cancelled"})
    with pytest.raises(IllegalTransition):
        store_preview(cancelled, "i1", shown(), T0)
