from sayso.core.clock import DAY_MS
from sayso.core.records.decisions import Actor, ActorKind, Verdict
from service.edge.web.content.cards import describe_finished
from tests.sayso.core.sentences.samples import NOW, make_item, make_outcome, make_record


def test_describe_finished_counts_the_decisions_of_people_today() -> None:
    decided = make_item().model_copy(update={"outcome": make_outcome(Verdict.DENIED)})
    records = [make_record(decided, created_at_ms=NOW - wait_ms) for wait_ms in (1000, 9000, 60_000)]
    assert describe_finished(records, NOW, cut=False) == "3 decided today, median 9 s."
    assert describe_finished(records, NOW, cut=True) == "3+ decided today, median 9 s."
    assert describe_finished(records, NOW + DAY_MS, cut=False) == ""


def test_describe_finished_leaves_out_open_items_and_fallbacks() -> None:
    clock = Actor(id="clock", kind=ActorKind.TIMEOUT)
    late = make_item().model_copy(update={"outcome": make_outcome(Verdict.DENIED, by=clock)})
    assert describe_finished([make_record(make_item()), make_record(late)], NOW, cut=False) == ""
