"""Tests of the recorded turns and their plan."""

from demo.model import Turn, load_turns, plan_turns

TURNS = load_turns()


def short_ids(turns: tuple[Turn, ...]) -> list[str]:
    return [turn.id.rpartition("_")[2] for turn in turns]


def test_load_turns_returns_the_five_recordings() -> None:
    assert short_ids(TURNS) == ["27", "193", "142", "57", "117"]


def test_recorded_calls_use_offered_tools() -> None:
    for turn in TURNS:
        assert {call.name for call in turn.calls} <= {tool.name for tool in turn.tools}


def test_plan_turns_keeps_the_order_of_the_text() -> None:
    text = "\n\n".join(["Hello.", TURNS[3].request, "and then", TURNS[0].request, "Thanks."])

    assert short_ids(plan_turns(text, TURNS)) == ["57", "27"]


def test_plan_turns_is_empty_for_an_unknown_request() -> None:
    assert plan_turns("Write a poem.", TURNS) == ()


def test_call_id_is_unique() -> None:
    ids = [turn.call_id(index) for turn in TURNS for index, _ in enumerate(turn.calls)]

    assert len(set(ids)) == len(ids) == 11
