"""Tests of the recorded model's endpoint."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from demo.model import NOTHING_RECORDED, Turn, create_app, load_turns

BANK, MAILS, ADDRESSES, HOTELS, TICKETS = load_turns()


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app("/v1", load_turns()))
    async with httpx.AsyncClient(transport=transport, base_url="http://model") as client:
        yield client


async def complete(client: httpx.AsyncClient, messages: list[dict[str, Any]]) -> dict[str, Any]:
    reply = await client.post("/v1/chat/completions", json={"model": "demo", "messages": messages, "tools": []})
    assert reply.status_code == 200
    return dict(reply.json())


def ask(*turns: Turn) -> list[dict[str, Any]]:
    text = "\n".join(turn.request for turn in turns)
    return [{"role": "system", "content": "Be kind."}, {"role": "user", "content": text}]


def results(message: dict[str, Any], *, denied: int = 0) -> list[dict[str, Any]]:
    contents = [{"success": False, "error": "Denied by reviewer"}] * denied
    contents += [{"success": True, "output": 1}] * (len(message["tool_calls"]) - denied)
    return [
        {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(content)}
        for call, content in zip(message["tool_calls"], contents, strict=True)
    ]


async def test_complete_replays_the_first_requested_turn(client: httpx.AsyncClient) -> None:
    reply = await complete(client, ask(BANK, MAILS))

    (choice,) = reply["choices"]
    assert choice["finish_reason"] == "tool_calls"
    calls = choice["message"]["tool_calls"]
    assert [call["function"]["name"] for call in calls] == ["bank_account.transfer", "bank_account.calculate_interest"]
    assert json.loads(calls[0]["function"]["arguments"]) == BANK.calls[0].arguments
    assert [call["id"] for call in calls] == ["call_parallel_multiple_27_0", "call_parallel_multiple_27_1"]


async def test_complete_is_deterministic(client: httpx.AsyncClient) -> None:
    first = await complete(client, ask(HOTELS))
    again = await complete(client, ask(HOTELS))

    assert first["choices"] == again["choices"]
    assert first["id"] != again["id"]


async def test_complete_replays_the_next_turn(client: httpx.AsyncClient) -> None:
    messages = ask(MAILS, TICKETS)
    first = (await complete(client, messages))["choices"][0]["message"]

    second = (await complete(client, [*messages, first, *results(first)]))["choices"][0]["message"]

    assert [call["function"]["name"] for call in second["tool_calls"]] == [call.name for call in TICKETS.calls]


async def test_complete_summarises_results_after_the_last_turn(client: httpx.AsyncClient) -> None:
    messages = ask(MAILS)
    first = (await complete(client, messages))["choices"][0]["message"]

    reply = await complete(client, [*messages, first, *results(first, denied=1)])

    (choice,) = reply["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"] == "1 of 2 calls succeeded. Not done: send_email (Denied by reviewer)."


async def test_complete_counts_an_invalid_result_as_failed(client: httpx.AsyncClient) -> None:
    messages = ask(ADDRESSES)
    first = (await complete(client, messages))["choices"][0]["message"]
    broken = [{"role": "tool", "tool_call_id": "?", "content": "not JSON"}]

    reply = await complete(client, [*messages, first, *broken])

    assert reply["choices"][0]["message"]["content"].startswith("0 of 1 calls succeeded.")


async def test_complete_answers_an_unknown_request_with_text(client: httpx.AsyncClient) -> None:
    reply = await complete(client, [{"role": "user", "content": "Write a poem."}])

    assert reply["choices"][0]["message"] == {"role": "assistant", "content": NOTHING_RECORDED}


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "not JSON",
        '{"model": "demo"}',
        '{"model": "demo", "messages": []}',
        '{"model": "demo", "messages": [{"role": "king", "content": "Hello"}]}',
        '{"model": "demo", "messages": [{"role": "user", "content": "Hello"}], "stream": true}',
    ],
)
async def test_complete_refuses_a_bad_request_in_protocol_form(client: httpx.AsyncClient, body: str) -> None:
    reply = await client.post("/v1/chat/completions", content=body)

    assert reply.status_code == 400
    error = reply.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"]


async def test_healthz_is_ok(client: httpx.AsyncClient) -> None:
    assert (await client.get("/healthz")).json() == {"status": "ok"}
