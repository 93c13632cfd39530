"""Models complete a transcript, and their output is normalised before it is saved."""

import pytest

from sayso.errors import ModelError
from sayso.runner.models import ChatMessage, ModelTurn, RequestedCall, ScriptedModel

SCRIPT = [ModelTurn(text="one"), ModelTurn(text="two")]


def transcript(answers: int) -> list[ChatMessage]:
    said: list[ChatMessage] = [{"role": "assistant", "content": "…"}, {"role": "tool", "content": "{}"}] * answers
    return [{"role": "system", "content": "x"}, {"role": "user", "content": "x"}, *said]


async def test_scripted_model_follows_the_transcript() -> None:
    for answers, turn in enumerate(SCRIPT):
        assert await ScriptedModel(SCRIPT).complete(transcript(answers), []) == turn


async def test_scripted_model_raises_after_its_last_turn() -> None:
    with pytest.raises(ModelError, match="All 2 turns"):
        await ScriptedModel(SCRIPT).complete(transcript(2), [])


def test_clean_text_replaces_lone_surrogates() -> None:
    turn = ModelTurn(text="a\ud800b 😀", calls=(RequestedCall(call_id="\udc00", name="é", args_json="{}"),))
    assert (turn.text, turn.calls[0].call_id, turn.calls[0].name) == ("a\ufffdb 😀", "\ufffd", "é")
    turn.model_dump_json()
