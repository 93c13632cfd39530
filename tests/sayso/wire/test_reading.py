"""A client reads responses of older and newer desks; the desk's own views stay strict."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_core import to_json

from sayso.client.administration import change_group, save_preferences
from sayso.wire.administration import KeyView, ReviewerView, SessionView
from sayso.wire.channels import EventList
from sayso.wire.models import View, read_view
from sayso.wire.people import GroupView, Preferences
from sayso.wire.rulebook import ReplayStatus, ReplayView
from sayso.wire.suspensions import EventView, RedeemedItem, RunRefView, RunView, SuspensionPage, SuspensionView
from tests.sayso.views import view

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)

RUN: dict[str, Any] = {
    "id": "run_1",
    "agent": "demo",
    "owner": "bot",
    "thread_id": "run_1",
    "claimed_title": "Pay",
    "tags": ["bank"],
    "status": "suspended",
    "state": "suspended",
    "suspension_id": "sus_1",
    "created_at": "2026-11-21T12:03:04.120Z",
    "updated_at": "2026-11-21T12:03:05Z",
}


def test_fields_and_values_of_a_newer_desk_are_no_error() -> None:
    run = read_view(RunView, to_json(RUN | {"status": "asleep", "mood": "good"}))
    assert (run.status, run.ended) == ("asleep", True)
    assert not hasattr(run, "mood")


def test_what_is_null_or_later_may_be_missing_in_an_older_response() -> None:
    run = read_view(RunView, to_json(RUN))
    assert (run.result, run.error, run.erasure) == (None, None, None)
    started = {name: RUN[name] for name in ("id", "agent", "owner", "thread_id", "claimed_title", "tags")}
    facts = {"context": {}, "claimed_context": {}, "started_at": RUN["created_at"]}
    ref = read_view(RunRefView, to_json(started | facts))
    assert (ref.key_maker, ref.environment, ref.key_id, ref.who) == ("", "", None, None)


def test_keys_and_people_of_the_first_version_are_read() -> None:
    key = {"id": "key_1", "name": "bot", "kind": "robot", "created_at": RUN["created_at"], "context": {}}
    read = read_view(KeyView, to_json(key))
    assert (read.kind, read.owner, read.created_by, read.listed, read.last_used_at) == ("robot", None, "", True, None)
    person = {"name": "anna", "roles": ["reviewer"], "active": True, "created_at": RUN["created_at"]}
    reviewer = read_view(ReviewerView, to_json(person))
    session = read_view(
        SessionView, to_json(person | {"token": "t", "expires_at": RUN["created_at"], "idle_timeout_s": 1})
    )
    assert (reviewer.manager, reviewer.password_by, session.password_by) == (None, "", "")


def test_values_of_a_newer_desk_are_sent_back_as_they_were() -> None:
    hours = {"time_zone": "Mars/Olympus", "hours": {"start": "24:30", "end": "08:00", "weekdays": ["sol"]}}
    sent = {"time_zone": "Mars/Olympus", "digest": "weekly", "working_hours": hours}
    body = save_preferences(None, read_view(Preferences, to_json(sent))).body
    places = {"country": "", "subdivision": ""}
    assert body == {
        "quiet_hours": None,
        "cap_per_hour": None,
        "language": "en",
        **sent,
        "working_hours": hours | places,
    }
    group = {"name": "night", "members": [], "editors": [], "working_hours": hours, "created_at": RUN["created_at"]}
    body = change_group(read_view(GroupView, to_json(group)), ["anna"], []).body
    assert body == {"members": ["anna"], "editors": [], "working_hours": hours | places}


def test_an_event_of_a_newer_desk_keeps_its_name_as_text() -> None:
    schemas = {"item.created": {"type": "object"}, "item.forgotten": {}}
    assert read_view(EventList, to_json({"events": schemas})).events == schemas


def test_a_replay_is_read_by_the_names_that_the_desk_sends() -> None:
    shown = view(ReplayView, id="rpl_1", status=ReplayStatus.DONE, since=AT, until=AT, started_at=AT)
    assert read_view(ReplayView, shown.model_dump_json(by_alias=True).encode()) == shown
    with pytest.raises(ValidationError, match="from"):
        read_view(ReplayView, shown.model_dump_json().encode())


@pytest.mark.parametrize("model", [RunView, SuspensionView, SuspensionPage, EventView, RedeemedItem])
def test_a_response_without_what_every_desk_sends_is_refused(model: type[View]) -> None:
    with pytest.raises(ValidationError):
        read_view(model, b"{}")


def test_a_call_without_arguments_in_the_response_is_refused() -> None:
    call = {"suspension_id": "s", "item_id": "i", "tool": "t", "idempotency_key": "k", "attempt": 1}
    with pytest.raises(ValidationError, match="args"):
        read_view(RedeemedItem, to_json(call | {"report_by": RUN["created_at"]}))


def test_what_the_desk_writes_reads_back_as_the_same_view() -> None:
    written = RunView.model_validate(
        {**RUN, "title": "Pay", "created_at_ms": 1_763_726_584_120, "updated_at_ms": 0, "result": 1, "error": None}
    )
    assert written.created_at == datetime(2025, 11, 21, 12, 3, 4, 120_000, UTC)
    assert read_view(RunView, written.model_dump_json().encode()) == written


def test_the_desk_refuses_a_view_that_leaves_something_out() -> None:
    with pytest.raises(ValidationError, match="created_at_ms"):
        RunView.model_validate({**RUN, "title": "Pay", "result": 1, "error": None})
