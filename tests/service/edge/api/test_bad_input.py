"""Bad requests are refused with a sentence that says what to do, and change nothing but the log of refusals."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from sayso.core.records.items import ItemKind
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import RuleTerms
from tests.builders import PASSWORD, approve, ask, make_pending
from tests.service.damages import KEYS as STORED
from tests.service.worlds import World, read_store

RUNS = "/api/v1/runs"
SUSPENSIONS = "/api/v1/suspensions"
DECISION = "/api/v1/suspensions/{pending}/items/i1/decision"
VALUE = "/api/v1/suspensions/{input}/items/i1/decision"
REDEEM = "/api/v1/suspensions/{decided}/items/i1/redeem"
OUTCOME = "/api/v1/suspensions/{decided}/items/i1/outcome"
EVENTS = "/api/v1/runs/{run}/events"
CANCEL = "/api/v1/runs/{run}/cancel"
SESSIONS = "/api/v1/sessions"
REVIEWERS = "/api/v1/reviewers"
KEYS = "/api/v1/keys"
NO = {"action": "deny", "digest": "0" * 64}
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Bad:
    """One bad request and its expected problem."""

    what: str
    path: str
    status: int
    says: str
    body: Any = None
    who: str = "anna"
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=dict)
    logged: tuple[str, str, str] | None = None
    """The act, the caller and the target in the activity log, if the refusal is an entry there."""

    @property
    def content(self) -> bytes | None:
        if self.body is None:
            return None
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def run(what: str, status: int, says: str, body: Any, **more: Any) -> Bad:
    return Bad(f"run: {what}", RUNS, status, says, body, **more)


def decision(what: str, status: int, says: str, **fields: Any) -> Bad:
    """A decision on the pending item; a field of None is left out."""
    sent = {"action": "approve", "digest": "<pending>", **fields}
    return Bad(f"decision: {what}", DECISION, status, says, {k: v for k, v in sent.items() if v is not None})


def on(what: str, path: str, status: int, says: str, body: Any, **more: Any) -> Bad:
    return Bad(what, path, status, says, body, **more)


def by_root(what: str, path: str, status: int, says: str, body: Any) -> Bad:
    return Bad(what, path, status, says, body, who="root")


def yes(record: str) -> dict[str, str]:
    return {"action": "approve", "digest": f"<{record}>"}


def raw(what: str, status: int, says: str, body: bytes, **headers: str) -> Bad:
    return Bad(f"raw: {what}", RUNS, status, says, body, headers=headers)


def get(what: str, path: str, status: int, says: str, who: str = "demo", **headers: str) -> Bad:
    return Bad(f"get: {what}", path, status, says, who=who, method="GET", headers=headers)


def deep(levels: int) -> bytes:
    return b'{"agent":"demo","input":"x","context":{"a":' + b"[" * levels + b"]" * levels + b"}}"


def event_at(at: object) -> dict[str, Any]:
    return {"source_format": "sayso", "events": [{"seq": 1, "at": at, "event": {"type": "message"}}]}


SAYS_YES = {"tool": "refund", "definition": {"idempotent": "yes"}}
START = {"agent": "demo", "input": "Refund A-1"}
MANY = {f"k{n}": 0 for n in range(1_000)}
TABLE = [
    # A context that every rule would read for every call, and faults without end.
    run("a context of many values", 422, "has more than 1000 values", {**START, "context": MANY}),
    run("a long context", 422, "the limit is 32768", {**START, "context": {"a": "x" * 32_768}}),
    on(
        "asks: a context of many values",
        SUSPENSIONS,
        422,
        "more than 1000 values",
        {"calls": [SAYS_YES], "context": MANY},
    ),
    on("asks: faults without end", SUSPENSIONS, 422, "too many to list", {f"k{n}": 0 for n in range(1_001)}),
    # What is no JSON, or not the one JSON.
    raw("no JSON at all", 400, "not JSON", b"{{{"),
    raw("an empty body", 400, "body is empty", b""),
    raw("text behind the value", 400, "not JSON", b'{"agent":"demo","input":"x"} x'),
    raw("a duplicate key", 400, "twice", b'{"agent":"demo","agent":"other","input":"x"}'),
    raw("a duplicate key deep inside", 400, "twice", b'{"agent":"demo","input":"x","context":{"a":{"b":1,"b":2}}}'),
    raw("a duplicate key, once escaped", 400, "twice", b'{"agent":"demo","\\u0061gent":"demo","input":"x"}'),
    raw("NaN", 400, "NaN is not JSON", b'{"agent":"demo","input":"x","context":{"a":NaN}}'),
    raw("Infinity", 400, "Infinity is not JSON", b'{"agent":"demo","input":"x","context":{"a":-Infinity}}'),
    raw("a number that overflows", 400, "finite", b'{"agent":"demo","input":"x","context":{"a":1e999}}'),
    raw("a number of 4001 digits", 400, "digits", b'{"agent":"demo","input":"x","context":{"a":' + b"9" * 4001 + b"}}"),
    raw("a number of 5000 digits", 400, "digits", b'{"agent":"demo","input":"x","context":{"a":' + b"9" * 5000 + b"}}"),
    raw("a lone surrogate", 400, "surrogate", b'{"agent":"demo","input":"\\ud800"}'),
    raw("a lone surrogate in a key", 400, "surrogate", b'{"agent":"demo","input":"x","context":{"\\udc00":1}}'),
    raw("bytes that are no UTF-8", 400, "UTF-8", b'{"agent":"demo","input":"\xff"}'),
    raw("UTF-16", 400, "UTF-8", '{"agent":"demo"}'.encode("utf-16")),
    raw("a byte order mark", 400, "not JSON", b'\xef\xbb\xbf{"agent":"demo","input":"x"}'),
    raw("a control character in a string", 400, "not JSON", b'{"agent":"demo","input":"a\nb"}'),
    raw("single quotes", 400, "not JSON", b"{'agent':'demo'}"),
    raw("33 levels", 413, "nested deeper", deep(33)),
    raw("100000 levels", 413, "nested deeper", deep(100_000)),
    raw("30000 values", 413, "values", b'{"agent":"demo","input":"x","context":{"a":[' + b"0," * 30_000 + b"0]}}"),
    raw("300 kB", 413, "over 262144 bytes", b'{"agent":"demo","input":"' + b"x" * 300_000 + b'"}'),
    # What is JSON, sent as something else.
    raw("as text", 415, "application/json", b'{"agent":"demo","input":"x"}', **{"Content-Type": "text/plain"}),
    raw("as a form", 415, "application/json", b"a=1", **{"Content-Type": "application/x-www-form-urlencoded"}),
    raw("as some other JSON", 415, "application/json", b"{}", **{"Content-Type": "application/merge-patch+json"}),
    raw("in latin-1", 415, "UTF-8", b"{}", **{"Content-Type": "application/json; charset=latin-1"}),
    raw("without a media type", 415, "application/json", b"{}", **{"Content-Type": ""}),
    raw("packed", 415, "encoding", b"\x1f\x8b", **{"Content-Encoding": "gzip"}),
    # What is JSON of the wrong shape.
    run("a list", 422, "not an object", [START]),
    run("null", 422, "$", b"null"),
    run("a string", 422, "not an object", '"demo"'),
    run("nothing in it", 422, "$.agent is missing", {}),
    run("no input", 422, "$.input is missing", {"agent": "demo"}),
    run("an empty input", 422, "$.input", {**START, "input": ""}),
    run("an input of the wrong type", 422, "$.input", {**START, "input": 7}),
    run("an endless input", 422, "$.input", {**START, "input": "x" * 100_001}),
    run("an unknown field", 422, "$.agnet is not known here", {**START, "agnet": "demo"}),
    run("a field of ours", 422, "$.owner is not known here", {**START, "owner": "other"}),
    run("a context that is a list", 422, "$.context", {**START, "context": []}),
    run("a tag that is a number", 422, "$.tags[0]", {**START, "tags": [1]}),
    run("an empty tag", 422, "$.tags[1]", {**START, "tags": ["a", ""]}),
    run("too many tags", 422, "$.tags", {**START, "tags": ["a"] * 21}),
    run("an endless title", 422, "$.title", {**START, "title": "x" * 201}),
    run("an empty thread", 422, "$.thread_id", {**START, "thread_id": ""}),
    run("an agent nobody knows", 422, "Registered are: demo", {**START, "agent": "nobody"}),
    run("an agent with a NUL in its name", 422, "no agent named", {**START, "agent": "demo\0"}),
    # What is no key.
    run("an empty key", 400, "Idempotency-Key", START, headers={"Idempotency-Key": ""}),
    run("a key with a space", 400, "Idempotency-Key", START, headers={"Idempotency-Key": "a b"}),
    run("a key of 201 characters", 400, "Idempotency-Key", START, headers={"Idempotency-Key": "k" * 201}),
    run("a key that is not ASCII", 400, "Idempotency-Key", START, headers={"Idempotency-Key": "k\xe9"}),
    # Decisions that cannot be taken.
    decision("no action", 422, "$.action is missing", action=None),
    decision("an unknown action", 422, "'approve', 'deny' or 'value'", action="allow"),
    decision("the fallback's own action", 422, "'approve', 'deny' or 'value'", action="fail"),
    decision("an action in capitals", 422, "$.action", action="APPROVE"),
    decision("no digest", 422, "$.digest is missing", digest=None),
    decision("a digest that is none", 422, "$.digest", digest="abc"),
    decision("a digest in capitals", 422, "$.digest", digest="A" * 64),
    decision("a digest and a line break", 422, "$.digest", digest="a" * 64 + "\n"),
    decision("another digest", 409, "send its current digest", digest="0" * 64),
    decision("an endless message", 422, "$.message", message="x" * 2001),
    decision("arguments that are a list", 422, "$.args", args=[1]),
    decision(
        "arguments with a denial", 422, "args are accepted only with approve", action="deny", args={"order": "A-1"}
    ),
    decision("a value with an approval", 422, "value is accepted only with", value=7),
    decision("an action value without its value", 422, "add it as value", action="value"),
    decision("a value that is not requested", 422, "send approve or deny", action="value", value=7),
    decision("arguments without what is required", 422, "amount", args={"order": "A-1"}),
    decision("arguments of the wrong type", 422, "args.amount:", args={"order": "A-1", "amount": "100"}),
    decision(
        "an argument the tool does not have", 422, "currency", args={"order": "A-1", "amount": 1, "currency": "EUR"}
    ),
    decision("arguments the rules deny", 403, "too-much denies refund", args={"order": "A-1", "amount": 501}),
    decision("a decision in somebody's name", 422, "$.by is not known here", by="root"),
    Bad("value: approved", VALUE, 422, "Choose value, deny", {"action": "approve", "digest": "<input>"}),
    Bad("value: of the wrong type", VALUE, 422, "amount", {"action": "value", "digest": "<input>", "value": "x"}),
    Bad("value: beyond the limit", VALUE, 422, "1000", {"action": "value", "digest": "<input>", "value": 1001}),
    Bad("value: null", VALUE, 422, "amount", {"action": "value", "digest": "<input>", "value": None}),
    # Things that are elsewhere, over, or somebody else's.
    on("a missing item", DECISION.replace("i1", "i2"), 404, "no item 'i2'", NO),
    on("a missing suspension", DECISION.format(pending="sus_0"), 404, "no suspension", NO),
    on("a decided item", DECISION.replace("pending", "decided"), 409, "root approved this at", NO),
    on("an expired item", DECISION.replace("pending", "expired"), 409, "timeout denied this at", NO),
    on("one's own call", DECISION.replace("pending", "own"), 403, "ask another reviewer", yes("own")),
    on("somebody else's item", DECISION.replace("pending", "bens"), 403, "Only ben can decide this item", yes("bens")),
    on("an agent that decides", DECISION, 403, "needs a reviewer", yes("pending"), who="demo"),
    on("a foreign run, cancelled", CANCEL, 404, "no run", None, who="other"),
    on("a reason that is too long", CANCEL, 422, "$.reason", {"reason": "x" * 2001}),
    on("a reason in an unknown field", CANCEL, 422, "$.why is not known", {"why": "x"}),
    get("a foreign run", RUNS + "/{run}", 404, "no run", who="other"),
    get("a foreign suspension", SUSPENSIONS + "/{pending}", 404, "no suspension", who="other"),
    get("foreign events", RUNS + "/{run}/events", 404, "no run", who="other"),
    get("a run by a suspension's id", RUNS + "/{pending}", 404, "no run"),
    get("an id with a NUL", RUNS + "/run%00", 422, "control characters"),
    get("an id with half a surrogate pair", RUNS + "/run%ED%A0%80", 422, "control characters"),
    get("an endless id", RUNS + "/" + "r" * 101, 422, "path.run_id"),
    get("an unknown status", RUNS + "?status=paused", 422, "query.status"),
    get("a NUL in a query", RUNS + "?status=%00", 422, "control characters"),
    get("a status in capitals", SUSPENSIONS + "?status=PENDING", 422, "query.status"),
    get("a page before the first", RUNS + "?skip=-1", 422, "query.skip"),
    get("a page too far", RUNS + "?skip=10001", 422, "query.skip"),
    get("a page of none", RUNS + "?limit=0", 422, "query.limit"),
    get("a page of thousands", RUNS + "?limit=1000", 422, "query.limit"),
    get("a limit that is a text", RUNS + "?limit=all", 422, "query.limit"),
    get("a limit that is endless", RUNS + "?limit=" + "9" * 5000, 422, "query.limit"),
    get("an unknown parameter", RUNS + "?staus=running", 422, "Known parameters: limit, skip, status"),
    get("a parameter where there are none", "/api/v1/agents?limit=1", 422, "has no parameters"),
    get("a parameter twice", RUNS + "?limit=1&limit=2", 422, "twice"),
    get("a wait of an hour", RUNS + "/{run}?wait=3600s", 422, "0 to 60"),
    get("a wait in minutes", RUNS + "/{run}?wait=1m", 422, "0 to 60"),
    get("a negative wait", SUSPENSIONS + "/{pending}?wait=-1", 422, "0 to 60"),
    get("events after a text", RUNS + "/{run}/events?after=end", 422, "query.after"),
    get("a malformed last event", RUNS + "/{run}/events/stream", 400, "Last-Event-ID", **{"Last-Event-ID": "x"}),
    get("a last event below zero", RUNS + "/{run}/events/stream", 400, "Last-Event-ID", **{"Last-Event-ID": "-1"}),
    get("a missing path", "/api/v1/run", 404, "Nothing exists at this path"),
    get("a path with an extra slash", RUNS + "/", 404, "Nothing exists at this path"),
    Bad("an unsupported method", RUNS, 405, "it accepts GET, POST.", method="PUT"),
    Bad("options of a path", "/readyz", 405, "it accepts GET, HEAD.", method="OPTIONS"),
    get(
        "after an event that does not exist",
        RUNS + "/{run}/events/stream",
        400,
        "no event 9",
        **{"Last-Event-ID": "9"},
    ),
    # What could be taken for something else.
    on("yes for true", SUSPENSIONS, 422, "$.calls[0].definition.idempotent", {"mode": "poll", "calls": [SAYS_YES]}),
    on("true for a number", REDEEM, 422, "$.report_within_s", {"report_within_s": True}, who="demo"),
    on("a text for a number", REDEEM, 422, "$.report_within_s", {"report_within_s": "60"}, who="demo"),
    on("a text for false", OUTCOME, 422, "$.success", {"success": "false"}, who="demo"),
    on("a text for a time", f"{KEYS}/key_0/rotate", 422, "$.overlap_s", {"overlap_s": "0"}, who="root"),
    on("a number for a time", EVENTS, 422, "2026-11-21T12:00:00Z", event_at(1_795_304_811), who="demo"),
    on("a number in a text for a time", EVENTS, 422, "2026-11-21T12:00:00Z", event_at("1795304811"), who="demo"),
    # People and keys.
    on(
        "a wrong password",
        SESSIONS,
        401,
        "do not go together",
        {"name": "anna", "password": "wrong words"},
        logged=("signed_in", "", "anna"),
    ),
    on("a name of the wrong type", SESSIONS, 422, "$.name", {"name": ["anna"], "password": PASSWORD}),
    on(
        "a reviewer who adds people",
        REVIEWERS,
        403,
        "role admin",
        {"name": "x", "password": PASSWORD},
        logged=("person_added", "anna", ""),
    ),
    by_root("a short password", REVIEWERS, 422, "8 to 1024", {"name": "x", "password": "short"}),
    by_root("a name with a space", REVIEWERS, 422, "A name is", {"name": "a b", "password": PASSWORD}),
    by_root("a name of Sayso's own", REVIEWERS, 422, "reserved for Sayso", {"name": "policy", "password": PASSWORD}),
    by_root("a key of a name of Sayso's own", KEYS, 422, "reserved for Sayso", {"name": "Timeout"}),
    by_root(
        "a freeze of nothing", "/api/v1/freezes", 422, "write all, agent:<name> or tool:<name>", {"scope": "refund"}
    ),
    by_root(
        "a role nobody has",
        REVIEWERS,
        422,
        "Roles are reviewer, rule_author",
        {"name": "x", "password": PASSWORD, "roles": ["boss"]},
    ),
    by_root("a name that is taken", REVIEWERS, 409, "already a reviewer", {"name": "anna", "password": PASSWORD}),
    by_root("a password for nobody", f"{REVIEWERS}/nobody/password", 404, "no reviewer", {"password": PASSWORD}),
    by_root("deactivating an unknown reviewer", f"{REVIEWERS}/nobody/deactivate", 404, "no reviewer", None),
    by_root("a missing key", f"{KEYS}/key_0/revoke", 404, "no API key", None),
    by_root("a key for a name with a space", KEYS, 422, "without spaces", {"name": "a b"}),
    by_root("a key of one's own choice", KEYS, 422, "$.key is not known", {"name": "a", "key": "x" * 32}),
]


def test_table_has_unique_rows() -> None:
    assert len(TABLE) >= 60
    assert len({bad.what for bad in TABLE}) == len(TABLE)


@pytest.mark.parametrize("bad", TABLE, ids=lambda bad: bad.what)
async def test_bad_request_is_refused_and_changes_nothing(world: World, clean_store_url: str, bad: Bad) -> None:
    records = await make_records(world)
    ids = {name: record.id for name, record in records.items()} | {"run": records["pending"].run.id}
    content = bad.content
    for name, record in records.items():
        content = content and content.replace(f"<{name}>".encode(), record.items[0].digest.encode())
    before = await read_store(clean_store_url)
    async with world.client(bad.who) as client:
        headers = {**(JSON if content is not None else {}), **bad.headers}
        encoded = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
        answer = await client.request(bad.method, bad.path.format(**ids), content=content, headers=encoded)
    problem = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (bad.status, "application/problem+json"), problem
    assert bad.says in problem["detail"]
    assert problem["detail"].endswith(".")
    assert problem["status"] == bad.status
    assert problem["type"].startswith("/problems/")
    assert len(answer.content) < 10_000
    entries = (await world.wiring.activity.read_page(0, 10)).entries
    said = [(one.act, one.by, one.target, one.outcome, one.times, one.data) for one in entries]
    assert said == ([(*bad.logged, "refused", 1, {"why": problem["detail"]})] if bad.logged else [])
    after = await read_store(clean_store_url)
    changed = {name.decode() for name in {*before, *after} if before.get(name) != after.get(name)}
    hour_free = {re.sub(r":[0-9]+$", ":0", name) for name in changed}
    assert hour_free == ({STORED.activity, STORED.refusals(0)} if bad.logged else set())


async def make_records(world: World) -> dict[str, SuspensionRecord]:
    """Make one suspension of each kind in the table."""
    wiring = world.wiring
    return {
        "pending": await make_pending(wiring),
        "input": await make_pending(wiring, ask(kind=ItemKind.INPUT)),
        "decided": await approve(wiring, await make_pending(wiring), by="root"),
        "expired": await expire(world, await make_pending(wiring, ask(terms=RuleTerms(timeout_s=1)), late_ms=1000)),
        "own": await make_pending(wiring, owner="anna"),
        "bens": await make_pending(wiring, ask(terms=RuleTerms(reviewers=("ben",)))),
    }


async def expire(world: World, record: SuspensionRecord) -> SuspensionRecord:
    """Return the suspension after its deadline."""
    return (await world.wiring.desk.tick(record.id)).record
