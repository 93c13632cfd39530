"""Advice about versions of the rules, candidates in shadow, replays, grants and mandates."""

from typing import Any

from tests.service.edge.api.advice.people import add_key, add_person
from tests.service.edge.api.advice.steps import Case, Step, ask, call, decide, read_digest, see, sign_in

SHADOWS, VERSIONS = "service/features/whatif/shadows.py", "service/features/rulebook/versions.py"
MANDATES, GRANTS = "service/features/permissions/api.py", "service/features/permissions/desk.py"
STRICT, LAX = (f"version: 1\ndefault: {one}\nrules: []\n" for one in ("deny", "allow"))
LIVE = Step("root", "GET", "policy/versions", keep={"live": "versions.0.version"})
RULES: dict[str, Any] = {"text": STRICT, "file": "new.yaml"}


def attest(text: str = STRICT) -> Step:
    return Step("root", "POST", "policy/attestations", {**RULES, "text": text}, {"new": "version"})


def shadow(text: str = STRICT) -> Step:
    return Step("root", "POST", "policy/shadow", {**RULES, "text": text}, {"new": "version"})


def shadow_version(version: str) -> Step:
    return Step("root", "POST", "policy/shadow", {"version": version})


def promote(version: str = "{new}") -> Step:
    return Step("root", "POST", f"policy/shadow/{version}/promote", {"replaces": "{live}"})


def restore(version: str, replaces: str) -> Step:
    return Step("root", "POST", f"policy/versions/{version}/restore", {"replaces": replaces})


def replay(first: int, last: int) -> Step:
    times = {"from": f"2026-01-{first:02}T00:00:00Z", "to": f"2026-01-{last:02}T00:00:00Z"}
    return Step("root", "POST", "policy/replays", {**RULES, **times})


def plan(*tools: dict[str, Any], **fields: Any) -> Step:
    body = {"title": "Pay", "for_s": 3600, "count": 5, "tools": list(tools) or [{"tool": "wire"}], **fields}
    return Step("demo", "POST", "mandates", body, {"mandate": "id", "suspension": "suspension_id"})


def wire(**fields: Any) -> dict[str, Any]:
    return {"tool": "wire", "definition": {}, **fields}


def grant(who: str, **fields: Any) -> Step:
    return decide(who, grant={"for_s": 3600}, **fields)._replace(keep={"grant": "decision.grant_id"})


WIRE, EXECUTION = ask(call("wire", amount=1)), "service/core/desk/client_execution.py"
REDEEM = Step("demo", "POST", "suspensions/{suspension}/items/i1/redeem", headers={"Idempotency-Key": "k"})
CASES = [
    Case("service/features/whatif/replays.py", "Let it end after it begins", replay(9, 2), (replay(2, 9),)),
    Case(
        SHADOWS,
        "Choose another one",
        shadow_version("{live}"),
        (shadow_version("{new}"),),
        (LIVE, attest()),
    ),
    Case(
        SHADOWS,
        "Put it there first, or move its file over the one in use",
        promote(),
        (shadow_version("{new}"), promote()),
        (LIVE, attest()),
    ),
    Case(
        "service/features/whatif/store.py",
        "End it first",
        shadow(LAX),
        (Step("root", "POST", "policy/shadow/{new}/end"), shadow(LAX)),
        (shadow(),),
    ),
    Case(
        VERSIONS,
        "Choose an earlier one",
        restore("{new}", "{new}"),
        (restore("{live}", "{new}"),),
        (LIVE, attest(), shadow(), promote()),
    ),
    Case(
        "service/core/store/rules.py",
        "Read the versions again",
        restore("{live}", "{live}x"),
        (*see("policy/versions"), restore("{live}", "{new}")),
        (LIVE, attest(), shadow(), promote()),
    ),
    Case(
        MANDATES,
        "Correct run_id",
        plan(wire(), run_id="{run}"),
        (ask(), plan(wire(), run_id="{run}")),
        (ask(), Step("demo", "POST", "runs/{run}/cancel")),
    ),
    Case(
        MANDATES,
        "Deny its item instead",
        Step("anna", "POST", "mandates/{mandate}/revoke"),
        (read_digest(), decide("anna", "deny")),
        (plan(wire()),),
    ),
    Case(
        MANDATES,
        "Send definitions only for calls that you run yourself",
        plan(wire(), agent="other"),
        (plan(wire()),),
    ),
    Case(
        "service/features/permissions/desk.py",
        "List the mandates to see their ids",
        Step("anna", "POST", "mandates/{mandate}/revoke"),
        see("mandates"),
        (plan(wire()), read_digest(), decide("anna", "deny")),
    ),
    Case(
        MANDATES,
        "Name fewer calls, or shorter values",
        plan(*[wire(equal={f"args.a{number}": "x" * 200 for number in range(20)})] * 5),
        (plan(wire(equal={f"args.a{number}": "x" * 200 for number in range(20)})),),
    ),
    Case(
        GRANTS,
        "Ask one of them",
        Step("root", "POST", "grants/{grant}/confirm"),
        (add_person("ben"), sign_in("ben"), Step("@ben", "POST", "grants/{grant}/confirm")),
        (ask(call("payout")), grant("anna")),
    ),
    Case(
        "service/core/desk/reviewing.py",
        "Approve them first, and grant like calls then",
        grant("anna", args={"amount": 500}),
        (decide("anna", args={"amount": 500}), read_digest(), grant("root")),
        (ask(call("wire", amount=1)),),
    ),
    Case(
        EXECUTION,
        "Suspend it again with a new key",
        REDEEM,
        (WIRE, read_digest(), decide("anna"), REDEEM),
        (WIRE, grant("anna"), WIRE, Step("anna", "POST", "grants/{grant}/revoke")),
    ),
    Case(
        EXECUTION,
        "Suspend it again with a new key",
        REDEEM,
        (add_key("demo"), ask(who="@key"), decide("anna"), REDEEM._replace(who="@key")),
        (add_key("demo"), ask(who="@key"), decide("anna"), Step("root", "POST", "keys/{id}/revoke")),
    ),
]
