"""Advice about runs, their calls and events, and what people attach to them."""

from typing import Any

from tests.service.api.advice.steps import Case, Step, ask, call, see

TRAILS, EVENTS, AAP = "service/api/trails.py", "service/store/runs/external_events.py", "service/api/aap/callers.py"
REGISTERED = {"tool": "refund", "args": {"order": "A-1", "amount": 1}}
CANCEL = Step("demo", "POST", "runs/{run}/cancel")
ERASE = Step("root", "POST", "runs/{run}/erase", {"reason": "Request of the customer"})
METRICS = {"metrics_token": "m" * 40}


def attach(content: str) -> Step:
    body = {"name": "note.txt", "content": content}
    return Step("demo", "POST", "suspensions/{suspension}/items/i1/attachments", body)


def stream(**headers: str) -> Step:
    return Step("demo", "GET", "runs/{run}/events/stream", headers=headers)


def report(text: str, seq: int = 1, times: int = 1) -> Step:
    events: list[Any] = [{"seq": seq, "event": {"type": "note", "data": {"text": text}}}]
    body = {"source_format": "sayso", "source": "bot", "events": events}
    return Step("demo", "POST", "runs/{run}/events", body, times=times)


def scrape(**headers: str) -> Step:
    return Step("", "GET", "/metrics", headers=headers)


CASES = [
    Case(
        "service/api/calls.py",
        "Send a definition only with mode 'poll'",
        ask(call("refund", order="A-1", amount=1), mode="worker", agent="demo"),
        (ask(call("refund", order="A-1", amount=1)), ask(REGISTERED, mode="worker", agent="demo")),
    ),
    Case(
        "service/api/discussions/attachments.py",
        "Encode the bytes of the file, and send them again",
        attach("%%%"),
        (attach("aGVsbG8="),),
        (ask(),),
    ),
    Case(
        TRAILS,
        "Remove it to start with the first event",
        stream(**{"Last-Event-ID": "x"}),
        (stream(),),
        (ask(), CANCEL),
    ),
    Case(
        TRAILS,
        "Send the number of the last received event, or remove Last-Event-ID to start with the first event",
        stream(**{"Last-Event-ID": "99"}),
        (stream(**{"Last-Event-ID": "1"}), stream()),
        (ask(), CANCEL),
    ),
    Case("service/store/runs/erasures.py", "Cancel it first", ERASE, (CANCEL, ERASE), (ask(),)),
    Case(
        EVENTS,
        "Send the same event under the same number, and a new one under the next number",
        report("two"),
        (report("one"), report("two", 2)),
        (ask(), report("one")),
    ),
    Case(
        "service/api/operations/metrics.py",
        "Send the token of",
        scrape(),
        (scrape(Authorization=f"Bearer {METRICS['metrics_token']}"),),
        rest=" SAYSO_METRICS_TOKEN as 'Authorization: Bearer",
        settings=METRICS,
    ),
    Case(
        "service/desk/second_look.py",
        "List the calls that wait",
        Step("anna", "POST", "second-looks/{run}/99", {"opinion": "agree"}),
        see("second-looks"),
        (ask(),),
    ),
    Case(
        "service/desk/freezing.py",
        "Unfreeze without letting them pass",
        Step("root", "POST", "freezes/tool:pay/unfreeze", {"deadlines": "pass"}),
        (Step("root", "POST", "freezes/tool:pay/unfreeze"),),
        (ask(), Step("root", "POST", "freezes", {"scope": "tool:pay", "reason": "a test"})),
    ),
]
