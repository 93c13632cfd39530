"""The count of what a reviewer can decide is that of the items whose decision the desk takes."""

from itertools import product
from typing import Any

import pytest

from sayso.core.records.decisions import Actor, ActorKind, Delegate, Represented
from sayso.core.sentences.items import describe_ineligibility
from sayso.core.transitions.deciding import decide
from service.core.operations.open_items import may_decide, show_count
from service.core.settings import Settings
from service.core.store.suspensions.facets import find_facets
from tests.sayso.samples import T0, ask, pending, person, word
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import asked, make_ask

PEOPLE = (
    person("ada"),
    person("ben", "ops"),
    person("bot"),
    Delegate(id="cleo", kind=ActorKind.HUMAN, represents=(Represented(person="ada"), Represented(person="bot"))),
    Actor(id="ada", kind=ActorKind.AGENT),
)
TERMS: tuple[dict[str, Any], ...] = (
    {},
    {"reviewers": ("ada",)},
    {"reviewers": ("group:ops", "ada")},
    {"no_self_approval": False},
)


@pytest.mark.parametrize(("terms", "decided"), [*product(TERMS, ("", "ada", "ben"))])
def test_may_decide_agrees_with_the_sentence_on_the_item(terms: dict[str, Any], decided: str) -> None:
    record = pending(ask(quorum={"approve": 3}, **terms))
    by = next((one for one in PEOPLE if one.id == decided), None)
    facets = find_facets(record, record.items[0])
    if by is not None and may_decide(facets, by):
        record = decide(record, word(record, by=by.id).model_copy(update={"by": by}), T0).record
    facets = find_facets(record, record.items[0])
    for reviewer in PEOPLE:
        if reviewer.kind is ActorKind.AGENT:
            assert not may_decide(facets, reviewer)
        else:
            assert may_decide(facets, reviewer) == (not describe_ineligibility(record, record.items[0], reviewer))


def test_large_counts_are_cut() -> None:
    assert [show_count(one) for one in (0, 999, 1000)] == ["0", "999", "999+"]


async def test_badge_counts_only_what_the_visitor_can_decide(settings: Settings) -> None:
    async with visit(settings) as anna:
        await asked(anna.wiring, make_ask(terms={"reviewers": ["ben"]}))
        assert "<title>Inbox · Sayso</title>" in await anna.read("/")
        await asked(anna.wiring, make_ask(), make_ask(index=1))
        page = await anna.read("/history")
        assert 'id="pending">2</span>' in page
        assert 'id="pending">2</span>' in await anna.read("/?q=is:mine")
