"""The recordings can be read, and a request is answered by those it contains."""

from demo.turns import Turn, load_turns, plan_turns

TURNS = load_turns()


def short_ids(turns: tuple[Turn, ...]) -> list[str]:
    return [turn.id.rpartition("_")[2] for turn in turns]


def test_the_slice_holds_the_five_turns_of_the_demo() -> None:
    assert short_ids(TURNS) == ["27", "193", "142", "57", "117"]


def test_every_call_is_to_a_tool_that_was_offered() -> None:
    for turn in TURNS:
        assert {call.name for call in turn.calls} <= {tool.name for tool in turn.tools}


def test_the_requests_in_a_text_are_planned_in_the_order_they_appear_there() -> None:
    text = "\n\n".join(["Hello.", TURNS[3].request, "and then", TURNS[0].request, "Thanks."])

    assert short_ids(plan_turns(text, TURNS)) == ["57", "27"]


def test_a_text_with_no_recorded_request_plans_nothing() -> None:
    assert plan_turns("Write a poem.", TURNS) == ()


def test_no_two_recorded_calls_have_the_same_id() -> None:
    ids = [turn.call_id(index) for turn in TURNS for index, _ in enumerate(turn.calls)]

    assert len(set(ids)) == len(ids) == 11
