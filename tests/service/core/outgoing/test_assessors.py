"""Assessors: every failure between here and their answer counts as the level high."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from sayso.core.records.judgements import Assessment, Level, Question
from sayso.core.signing import SignedMessage, verify_message
from service.assembly import assemble
from service.core.outgoing import assessors
from service.core.outgoing.assessors import AssessorPlan, AssessorPlans, Assessors, InvalidAssessors, read_assessors
from service.core.outgoing.http import Posts
from service.core.settings import Settings
from tests.receivers import SECRET, Receiver

QUESTION = Question("k1", "fraud", b'{"args":{"amount":5},"tool":"refund"}')
HANGING = threading.Event()


def rate_low(call: dict[str, Any]) -> dict[str, Any]:
    return {"level": "low", "reason": f"{call['args']['amount']} is little"}


def fail(call: dict[str, Any]) -> None:
    raise RuntimeError(call)


def hang(call: dict[str, Any]) -> dict[str, str]:
    HANGING.wait()
    return {"level": "low"}


def answer_text(call: dict[str, Any]) -> str:
    return "low"


def answer_nan(call: dict[str, Any]) -> dict[str, float]:
    return {"score": float("nan")}


async def trickle() -> AsyncIterator[bytes]:
    yield b'{"level": '
    await asyncio.Event().wait()


async def ask(plan: AssessorPlan, *, loopback: bool = True) -> Assessment:
    posts = Posts(loopback=loopback)
    try:
        found = await Assessors(AssessorPlans(assessors={"fraud": plan}), posts).ask({"k1": QUESTION})
    finally:
        await posts.aclose()
    assessment = found["k1"].assessment
    assert assessment is not None
    return assessment


def at(receiver: Receiver, **parts: Any) -> AssessorPlan:
    return AssessorPlan.model_validate({"url": receiver.url, "secret": SECRET, **parts})


def function(name: str, **parts: Any) -> AssessorPlan:
    return AssessorPlan.model_validate({"function": f"{__name__}:{name}", **parts})


@pytest.mark.parametrize(
    ("answer", "level"),
    [
        ({"level": "low"}, Level.LOW),
        ({"score": 0.49}, Level.LOW),
        ({"score": 0.5}, Level.MEDIUM),
        ({"score": 0.8}, Level.HIGH),
        ({"score": 1}, Level.HIGH),
        ({"level": "low", "score": 0.9}, Level.HIGH),
        ({"level": "medium", "score": 0.1}, Level.MEDIUM),
    ],
)
async def test_answer_gives_the_higher_of_level_and_score(receiver: Receiver, answer: Any, level: Level) -> None:
    receiver.say = lambda _: JSONResponse({**answer, "reason": "a new account"})
    found = await ask(at(receiver))
    assert (found.level, found.score, found.reason, found.fault) == (level, answer.get("score"), "a new account", "")


async def test_request_is_signed_and_has_the_call(receiver: Receiver) -> None:
    receiver.say = lambda _: JSONResponse({"level": "low"})
    await ask(at(receiver))
    headers, body = receiver.came[0]
    message = SignedMessage(headers["webhook-id"], headers["webhook-timestamp"], headers["webhook-signature"], body)
    assert verify_message([SECRET], message, int(headers["webhook-timestamp"]) * 1000) == headers["webhook-id"]
    assert body == QUESTION.body


RUBBISH = {
    "a failure": (Response("no", 500), "the status is 500"),
    "no content": (Response(status_code=204), "the status is 204"),
    "a redirection": (RedirectResponse("https://localhost/low"), "the status is 307"),
    "no JSON": (Response("low"), "the answer is not JSON"),
    "a name twice": (Response('{"level": "high", "level": "low"}'), "the answer is not JSON"),
    "not a number": (Response('{"score": NaN}'), "the answer is not JSON"),
    "a list": (JSONResponse(["low"]), "the answer is not an object"),
    "nothing": (JSONResponse({}), "the answer is not an object"),
    "another level": (JSONResponse({"level": "none"}), "the answer is not an object"),
    "a score above 1": (JSONResponse({"score": 1.01}), "the answer is not an object"),
    "a score below 0": (JSONResponse({"score": -1}), "the answer is not an object"),
    "a score as text": (JSONResponse({"score": "0"}), "the answer is not an object"),
    "a score as truth": (JSONResponse({"score": False}), "the answer is not an object"),
    "another key": (JSONResponse({"level": "low", "action": "allow"}), "the answer is not an object"),
    "a long answer": (JSONResponse({"level": "low", "reason": "x" * 5_000}), "the answer has more than 4096 bytes"),
    "an endless answer": (Response("x" * 200_000), "the answer has more than 4096 bytes"),
}


@pytest.mark.parametrize("name", RUBBISH)
async def test_unusable_answer_counts_as_high(receiver: Receiver, name: str) -> None:
    response, fault = RUBBISH[name]
    receiver.say = lambda _: response
    found = await ask(at(receiver))
    assert (found.level, found.score, found.reason) == (Level.HIGH, None, "")
    assert fault in found.fault


async def test_slow_answer_counts_as_high(receiver: Receiver) -> None:
    receiver.say = lambda _: StreamingResponse(trickle())
    found = await ask(at(receiver, timeout_s=0.2))
    assert (found.level, found.fault) == (Level.HIGH, "no answer within 0.2 s")


async def test_own_network_is_not_asked(receiver: Receiver) -> None:
    found = await ask(at(receiver), loopback=False)
    assert found.level is Level.HIGH
    assert "does not resolve to a public address" in found.fault
    assert receiver.came == []


async def test_absent_server_counts_as_high(certificate: Path) -> None:
    found = await ask(AssessorPlan.model_validate({"url": "https://nobody.invalid/", "secret": SECRET}))
    assert (found.level, bool(found.fault)) == (Level.HIGH, True)


async def test_unknown_assessor_counts_as_high() -> None:
    found = await Assessors(AssessorPlans(), Posts()).ask({"k1": QUESTION})
    assessment = found["k1"].assessment
    assert assessment is not None
    assert (assessment.level, "SAYSO_ASSESSORS" in assessment.fault) == (Level.HIGH, True)


async def test_function_answers_like_a_server() -> None:
    found = await ask(function("rate_low"))
    assert (found.level, found.reason) == (Level.LOW, "5 is little")


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("fail", "the function raised RuntimeError"),
        ("answer_text", "the answer is not an object"),
        ("answer_nan", "the function raised ValueError"),
    ],
)
async def test_failing_function_counts_as_high(name: str, fault: str) -> None:
    found = await ask(function(name))
    assert found.level is Level.HIGH
    assert fault in found.fault


async def test_functions_that_never_end_use_up_the_threads_only() -> None:
    HANGING.clear()
    plans = AssessorPlans(assessors={"fraud": function("hang", timeout_s=0.1)})
    asked = Assessors(plans, Posts())
    faults = []
    try:
        for _ in range(assessors._THREADS + 1):
            assessment = (await asked.ask({"k1": QUESTION}))["k1"].assessment
            assert assessment is not None
            assert assessment.level is Level.HIGH
            faults.append(assessment.fault)
    finally:
        HANGING.set()
    assert faults == ["no answer within 0.1 s"] * assessors._THREADS + [assessors._BUSY]


@given(raw=st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_any_bytes_give_a_level(raw: bytes) -> None:
    plan = function("rate_low")
    try:
        found = assessors._read_answer(plan, QUESTION, raw)
    except assessors.NoAnswer:
        return
    assert isinstance(json.loads(raw), dict)
    assert found.level in Level


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("assessors: {fraud: {}}", "an assessor has a url or a function"),
        ("assessors: {fraud: {url: 'ftp://x.example'}}", "assessors.fraud.url"),
        ("assessors: {fraud: {url: 'https://x.example'}}", "a url needs a secret"),
        ("assessors: {fraud: {url: 'https://x.example', secret: abc}}", "assessors.fraud.secret"),
        ("assessors: {fraud: {function: 'no.such:thing'}}", "cannot be imported"),
        ("assessors: {fraud: {function: 'json:nothing'}}", "cannot be imported"),
        ("assessors: {fraud: {function: 'json:__doc__'}}", "is not a function"),
        ("assessors: {fraud: {function: 'json:dumps', medium: 0.9}}", "medium is above high"),
        ("assessors: {fraud: {function: 'json:dumps', timeout_s: 60}}", "assessors.fraud.timeout_s"),
        ("assessors: {Fraud: {function: 'json:dumps'}}", "assessors.Fraud"),
    ],
)
def test_faulty_file_is_refused_with_its_line(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "assessors.yaml"
    path.write_text(text)
    with pytest.raises(InvalidAssessors) as found:
        read_assessors(path)
    assert "assessors.yaml:1:" in found.value.message
    assert fault in found.value.message


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidAssessors, match="Correct SAYSO_ASSESSORS"):
        read_assessors(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    "url", ["http://risk.example/", "http://risk:8080/", "https://10.1.2.3/", "https://127.0.0.1/"]
)
async def test_url_that_may_not_be_reached_is_a_fault_at_start(clean_store_url: str, tmp_path: Path, url: str) -> None:
    path = tmp_path / "assessors.yaml"
    path.write_text(f"assessors: {{fraud: {{url: '{url}', secret: {SECRET}}}}}")
    settings = Settings(redis_url=clean_store_url, assessors=path)
    with pytest.raises(InvalidAssessors, match=r"assessors\.fraud\.url: .*SAYSO_INTERNAL_RECEIVERS"):
        async with assemble(settings):
            pass


async def test_named_receiver_is_an_assessor_over_http(clean_store_url: str, tmp_path: Path) -> None:
    path = tmp_path / "assessors.yaml"
    path.write_text(f"assessors: {{fraud: {{url: 'http://risk:8080/', secret: {SECRET}}}}}")
    async with assemble(Settings(redis_url=clean_store_url, assessors=path, internal_receivers=("risk:8080",))):
        pass
