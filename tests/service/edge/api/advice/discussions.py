"""Advice about runs, their calls and events, and what people attach to them."""

from typing import Any

from tests.service.edge.api.advice.people import add_key
from tests.service.edge.api.advice.steps import Case, Step, ask, call, see

TRAILS, EVENTS, AAP = "service/edge/api/trails.py", "service/core/store/runs/external_events.py", "service/edge/api/aap"
REGISTERED = {"tool": "refund", "args": {"order": "A-1", "amount": 1}}
UUID = "019aa4a2-f4a5-7c6d-8e9f-0a1b2c3d4e5f"
LONG = "x" * 60_000
METRICS = {"metrics_token": "m" * 40}


def cancel(who: str = "demo") -> Step:
    return Step(who, "POST", "runs/{run}/cancel")


def erase(reason: str = "Request of the customer") -> Step:
    return Step("root", "POST", "runs/{run}/erase", {"reason": reason})


def freeze(scope: str) -> Step:
    return Step("root", "POST", "freezes", {"scope": scope, "reason": "a test", "confirm": True})


def attach(content: str) -> Step:
    """Attach a file whose content is in base64."""
    body = {"name": "note.txt", "content": content}
    return Step("demo", "POST", "suspensions/{suspension}/items/i1/attachments", body)


def stream(**headers: str) -> Step:
    return Step("demo", "GET", "runs/{run}/events/stream", headers=headers)


def report(text: str, seq: int = 1, count: int = 1, source: str = "bot", times: int = 1) -> Step:
    event = {"type": "note", "data": {"text": text}}
    events = [{"seq": seq, "event": event} for seq in range(seq, seq + count)]
    body = {"source_format": "sayso", "source": source, "events": events}
    return Step("demo", "POST", "runs/{run}/events", body, times=times)


def request(tool: str = '"wire"', argument: str = "1", uuid: str = UUID, who: str = "@token") -> Step:
    """Ask over the AAP for a call."""
    body = f'{{"tool": {tool}, "arguments": {{"amount": {argument}}}, "timeout": "10m"}}'.encode()
    headers = {"Idempotency-Key": uuid, "Content-Type": "application/json"}
    return Step(who, "POST", "/api/aap/v1/requests", body, {"request": "id"}, headers)


def consume(body: Any = None) -> Step:
    return Step("@token", "POST", "/api/aap/v1/requests/{request}/consume", body, headers={"Idempotency-Key": "k"})


INSTANCE = (
    add_key("platform", kind="provisioner"),
    Step("@key", "POST", "/api/aap/v1/instances", {}, {"token": "credential.token"}, {"Idempotency-Key": UUID}),
)


def scrape(**headers: str) -> Step:
    return Step("", "GET", "/metrics", headers=headers)


CASES = [
    Case(
        "service/edge/api/calls.py",
        "Send a definition only with mode 'poll'",
        ask(call("refund", order="A-1", amount=1), mode="worker", agent="demo"),
        (ask(call("refund", order="A-1", amount=1)), ask(REGISTERED, mode="worker", agent="demo")),
    ),
    Case(
        "service/features/discussions/api.py",
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
        (ask(), cancel()),
    ),
    Case(
        TRAILS,
        "Send the number of the last received event, or remove Last-Event-ID to start with the first event",
        stream(**{"Last-Event-ID": "99"}),
        (stream(**{"Last-Event-ID": "1"}), stream()),
        (ask(), cancel()),
    ),
    Case("service/core/store/runs/erasures.py", "Cancel it first", erase(), (cancel(), erase()), (ask(),)),
    Case(
        EVENTS,
        "Send the same event under the same number, and a new one under the next number",
        report("two"),
        (report("one"), report("two", 2)),
        (ask(), report("one")),
    ),
    Case(
        "service/features/operate/metrics.py",
        "Send the token of",
        scrape(),
        (scrape(Authorization=f"Bearer {METRICS['metrics_token']}"),),
        rest=" SAYSO_METRICS_TOKEN as 'Authorization: Bearer",
        settings=METRICS,
    ),
    Case(
        "service/core/desk/second_look.py",
        "List the calls that wait",
        Step("anna", "POST", "second-looks/{run}/99", {"opinion": "agree"}),
        see("second-looks"),
        (ask(),),
    ),
    Case(
        "service/core/desk/freezing.py",
        "Unfreeze without letting them pass",
        Step("root", "POST", "freezes/tool:pay/unfreeze", {"deadlines": "pass"}),
        (Step("root", "POST", "freezes/tool:pay/unfreeze"),),
        (ask(), freeze("tool:pay")),
    ),
    Case(
        EVENTS,
        "Send fewer, such as whole messages instead of their fragments",
        report("x", count=100, source="b"),
        (report("x", count=50, source="b"),),
        (ask(), *(report("x", 1 + 450 * page, 450) for page in range(11))),
    ),
    Case(
        EVENTS,
        "Send fewer",
        report(LONG, count=4, source="b"),
        (report(LONG, source="b"),),
        (ask(), *(report(LONG, 1 + 4 * page, 4) for page in range(17))),
    ),
    Case(f"{AAP}/callers.py", "Send 'Authorization: Bearer <token>'", request(who=""), (request(),), INSTANCE),
    Case(
        f"{AAP}/models.py",
        "Send it as a string",
        request(argument=f"0.{10**40 + 1}"),
        (request(argument='"0.1"'),),
        INSTANCE,
    ),
    Case(
        f"{AAP}/requests.py",
        "Send none",
        consume({}),
        (consume(),),
        (*INSTANCE, request('"free"')),
    ),
]
