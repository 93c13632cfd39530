"""The Home tab lists what its reader may decide, within the limits of a view."""

import json

import pytest

from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.transitions.deciding import decide
from service.channels.slack.views import MOST_ITEMS, build_home, list_pending, notice_home
from tests.fakes.slack_blocks import find_view_faults
from tests.sayso.samples import T0, ask, pending, word
from tests.service.channels.conformance import URL

CAROL = Actor(id="carol", kind=ActorKind.HUMAN, channel="ops")


@pytest.mark.parametrize("count", [0, 1, MOST_ITEMS, MOST_ITEMS + 5])
def test_home_of_any_length_is_a_valid_view(count: int) -> None:
    found = list_pending([pending(ask()) for _ in range(count)], CAROL)
    view = build_home("carol", found, URL)
    assert find_view_faults(view) == []
    assert json.dumps(view).count('"Open"') == min(count, MOST_ITEMS)
    assert ("5 more are in the inbox" in json.dumps(view)) == (count > MOST_ITEMS)
    assert ("Nothing waits for you" in json.dumps(view)) == (count == 0)


def test_home_shows_no_arguments() -> None:
    view = build_home("carol", list_pending([pending(ask())], CAROL), URL)
    assert "A-0" not in json.dumps(view)
    assert f"{URL}/items/sus_1/i1" in json.dumps(view)


def test_home_lists_open_items_of_its_reader_only() -> None:
    record = pending(ask())
    closed = decide(record, word(record), T0 + 5).record
    theirs = pending(ask(reviewers=("dora",)))
    assert list_pending([closed, theirs], CAROL) == []
    assert len(list_pending([record], CAROL)) == 1


def test_notice_is_a_valid_view() -> None:
    assert find_view_faults(notice_home("Link your account.")) == []
