"""Tests of the chat-completions client."""

import asyncio
import json
from typing import Any

import pytest

from sayso.adapters.chat_completions import ChatCompletionsModel, choose_wait_s, read_turn
from sayso.core.records.tools import ToolDefinition
from sayso.errors import InvalidInput, ModelError
from sayso.runner.models import ChatMessage, RequestedCall
from tests.sayso.adapters.endpoints import Answer, endpoint

ASKED: list[ChatMessage] = [{"role": "user", "content": "Hello"}]
LOOK = ToolDefinition(name="look", description="Look.", parameters={"type": "object", "properties": {}})
KEY = "sk-very-secret"


def completion(message: Any, **rest: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return json.dumps({"id": "x", "object": "chat.completion", "choices": [choice], **rest}).encode()


HELLO = Answer(body=completion({"content": "Hello!"}))


def model(url: str, **changes: Any) -> ChatCompletionsModel:
    return ChatCompletionsModel(url, "tiny", **{"api_key": KEY, "backoff_s": 0, "timeout_s": 10, **changes})


async def test_complete_sends_transcript_tools_and_key() -> None:
    async with endpoint([HELLO]) as heard:
        asked = model(f"{heard.url}/", options={"temperature": 0})
        turn = await asked.complete(ASKED, [LOOK])
        await asked.aclose()
    assert (turn.text, turn.finish_reason) == ("Hello!", "stop")
    assert heard.heads[0].startswith("POST /v1/chat/completions HTTP/1.1\r\n")
    assert f"authorization: bearer {KEY}" in heard.heads[0].lower()
    function = {"name": "look", "description": "Look.", "parameters": LOOK.parameters}
    assert heard.bodies == [
        {"model": "tiny", "messages": ASKED, "tools": [{"type": "function", "function": function}], "temperature": 0}
    ]


async def test_complete_omits_missing_tools_and_key() -> None:
    async with endpoint([HELLO]) as heard:
        await model(heard.url, api_key=None).complete(ASKED, [])
    assert "authorization" not in heard.heads[0].lower()
    assert heard.bodies == [{"model": "tiny", "messages": ASKED}]


@pytest.mark.parametrize("trouble", [Answer(None), *(Answer(status) for status in (408, 429, 500, 502, 503, 529))])
async def test_complete_retries_a_temporary_error(trouble: Answer) -> None:
    async with endpoint([trouble, trouble, HELLO]) as heard:
        assert (await model(heard.url).complete(ASKED, [])).text == "Hello!"
    assert len(heard.heads) == 3


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 422])
async def test_complete_does_not_retry_a_permanent_error(status: int) -> None:
    answer = Answer(status, b'{"error": "no"}', ("location: http://127.0.0.1:1/",))
    async with endpoint([answer]) as heard:
        with pytest.raises(ModelError) as failed:
            await model(heard.url).complete(ASKED, [])
    assert failed.value.message.startswith(f'The model endpoint 127.0.0.1 answered {status}: {{"error": "no"}} ')
    assert failed.value.facts == {"status": status, "attempts": 1}
    assert len(heard.heads) == 1


async def test_complete_raises_after_the_last_attempt() -> None:
    async with endpoint([Answer(503, b"busy")]) as heard:
        with pytest.raises(ModelError, match="answered 503 after 3 attempts: busy"):
            await model(heard.url).complete(ASKED, [])
    assert len(heard.heads) == 3


async def test_complete_reports_an_unreachable_endpoint() -> None:
    async with endpoint([HELLO]) as heard:
        pass
    with pytest.raises(ModelError, match=r"could not be reached: .* after 2 attempts") as failed:
        await model(heard.url, max_attempts=2).complete(ASKED, [])
    assert failed.value.facts == {"status": None, "attempts": 2}


async def test_complete_times_out_without_a_response() -> None:
    async with endpoint([Answer(silent=True)]) as heard:
        with pytest.raises(ModelError, match=r"did not respond within 0\.05 s"):
            await model(heard.url, timeout_s=0.05, max_attempts=1).complete(ASKED, [])


async def test_complete_hides_the_key_in_errors() -> None:
    async with endpoint([Answer(401, f"bad key {KEY} {'x' * 1000}".encode())]) as heard:
        with pytest.raises(ModelError) as failed:
            await model(heard.url).complete(ASKED, [])
    assert KEY not in failed.value.message
    assert "bad key [key]" in failed.value.message
    assert len(failed.value.message) < 500


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<html>", "It is not JSON"),
        (b"\xff", "It is not JSON"),
        (b"[" * 100_000, "nested too deep"),
        (b"[]", "The body: Input should be"),
        (b"{}", "choices: Field required"),
        (b'{"choices": []}', "choices: List should have at least 1 item"),
        (b'{"choices": [{"message": null}]}', "choices.0.message"),
        (b'{"choices": [{"message": {"content": 5}}]}', "choices.0.message.content"),
        (b'{"choices": [{"message": {"tool_calls": [{}]}}]}', "choices.0.message.tool_calls.0.function"),
        (b" " * (1024 * 1024 + 1), "more than 1048576 bytes"),
    ],
)
async def test_complete_refuses_an_invalid_completion(body: bytes, words: str) -> None:
    async with endpoint([Answer(body=body)]) as heard:
        with pytest.raises(ModelError) as failed:
            await model(heard.url).complete(ASKED, [])
    assert words in failed.value.message
    assert len(heard.heads) == 1


def test_read_turn_keeps_calls_as_written() -> None:
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}', "more": 1}},
        {"id": None, "function": {"name": None, "arguments": None}},
        {"function": {"name": "look", "arguments": {"a": 1}}},
    ]
    turn = read_turn(completion({"content": None, "tool_calls": calls}))
    assert turn.text == ""
    assert turn.calls == (
        RequestedCall(call_id="c1", name="look", args_json='{"a": 1}'),
        RequestedCall(),
        RequestedCall(name="look", args_json='{"a": 1}'),
    )


def test_read_turn_returns_a_refusal_as_text() -> None:
    assert read_turn(completion({"content": None, "refusal": "I would rather not."})).text == "I would rather not."


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5, "details": {}}, [3, 2, 5]),
        ({"prompt_tokens": -1, "completion_tokens": 2**60, "total_tokens": True}, []),
        ({"prompt_tokens": "3"}, []),
        (None, []),
        ("much", []),
    ],
)
def test_read_turn_keeps_only_valid_usage(usage: Any, read: list[int]) -> None:
    assert list(read_turn(completion({"content": ""}, usage=usage)).usage.values()) == read


@pytest.mark.parametrize(
    ("attempt", "header", "wait_s"),
    [
        (1, None, 0.5),
        (2, None, 1.0),
        (9, None, 30.0),
        (1, "7", 7.0),
        (1, "86400", 30.0),
        (1, "0", 0.0),
        (3, "soon", 2.0),
        (3, "²", 2.0),
        (1, "Tue, 14 Nov 2023 22:13:25 GMT", 5.0),
        (1, "Tue, 14 Nov 2023 22:13:15 GMT", 0.0),
        (2, "Tue, 99 Nov 2023 22:13:15 GMT", 1.0),
    ],
)
def test_choose_wait_s_follows_the_header_or_doubles(attempt: int, header: str | None, wait_s: float) -> None:
    assert choose_wait_s(attempt, header, 0.5, 1_700_000_000_000) == wait_s


async def test_complete_waits_for_retry_after() -> None:
    async with endpoint([Answer(429, headers=("retry-after: 0",)), HELLO]) as heard:
        assert (await model(heard.url, backoff_s=1000).complete(ASKED, [])).text == "Hello!"


def test_complete_works_in_several_event_loops() -> None:
    async def ask(asked: ChatCompletionsModel | None = None, port: int = 0) -> tuple[ChatCompletionsModel, int]:
        async with endpoint([HELLO], port) as heard:
            asked = asked or model(heard.url)
            assert (await asked.complete(ASKED, [])).text == "Hello!"
            await asked.aclose()
            return asked, int(heard.url.split(":")[2].partition("/")[0])

    asyncio.run(ask(*asyncio.run(ask())))


@pytest.mark.parametrize("url", ["", "api.example.com/v1", "ftp://example.com", "http://", "http://[::1"])
def test_init_refuses_an_invalid_address(url: str) -> None:
    with pytest.raises(InvalidInput, match="https://host/v1"):
        ChatCompletionsModel(url, "tiny")


@pytest.mark.parametrize("key", ["", "a b", "a\nb", "é"])
def test_init_refuses_a_key_that_no_header_can_hold(key: str) -> None:
    with pytest.raises(InvalidInput, match="printable ASCII"):
        ChatCompletionsModel("http://localhost/v1", "tiny", key)
