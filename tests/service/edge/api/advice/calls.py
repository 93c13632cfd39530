"""Advice about calls, their decisions and questions, and about working hours and replays."""

from base64 import b64encode
from typing import Any

from sayso.core.records.items import MOST_FORWARDS, MOST_INQUIRIES
from sayso.core.transitions.inquiring import MOST_NOTES
from tests.builders import PASSWORD as ANNAS
from tests.service.edge.api.advice.discussions import attach, cancel, erase, freeze
from tests.service.edge.api.advice.people import add_person
from tests.service.edge.api.advice.steps import Case, Step, ask, call, decide, see, sign_in

HOLIDAYS, CHECKS = "sayso/core/calendar.py", "sayso/core/transitions/decision_checks.py"
CREDENTIALS = "service/core/auth/credentials.py"
ATTACHING, FREEZING = "service/features/discussions/discussing.py", "service/core/desk/freezing.py"
SMALL = {"attachment_limit_bytes": 2000}
SUPERSEDING = "sayso/core/transitions/superseding.py"
INQUIRING, DELIVERING = "sayso/core/transitions/inquiring.py", "sayso/core/transitions/deliveries.py"
ITEMS = "suspensions/{suspension}/items"
POSITIVE = {"parameters": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}}
BOTH = (ask(call(n=1), call(n=2)), Step("demo", "GET", "suspensions/{suspension}", keep={"second": "items.1.digest"}))


def group(country: str, subdivision: str = "") -> Step:
    hours = {"country": country, "subdivision": subdivision}
    return Step("root", "POST", "groups", {"name": "payers", "members": ["anna"], "working_hours": hours})


def replay(path: str) -> Step:
    times = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
    rules = "version: 1\ndefault: deny\nrules: []\n"
    return Step("root", "POST", "policy/replays", {"text": rules, "sum": path, **times})


def start(item: str) -> Step:
    return Step("demo", "POST", f"{ITEMS}/{item}/redeem", headers={"Idempotency-Key": item})


def report(item: str) -> Step:
    return Step("demo", "POST", f"{ITEMS}/{item}/outcome", {"success": True}, headers={"Idempotency-Key": item})


def keyed(key: str, **args: Any) -> Step:
    return ask(call(**args))._replace(headers={"Idempotency-Key": key})


def inquire(text: str = "Why?", number: int = 0) -> Step:
    return Step("anna", "POST", f"{ITEMS}/i1/inquiries", {"text": text}, {"inquiry": f"items.0.inquiries.{number}.id"})


def note(who: str) -> Step:
    return Step(who, "POST", "runs/{run}/notes", {"text": "Use the other account."})


def forward(to: str, who: str = "anna") -> Step:
    return Step(who, "POST", f"{ITEMS}/i1/forward", {"to": to, "digest": "{digest}"})


def answer(inquiry: str = "{inquiry}") -> Step:
    return Step("demo", "POST", f"{ITEMS}/i1/inquiries/{inquiry}/answer", {"text": "It is due."})


def numbered(n: Any) -> Step:
    return ask({"tool": "pay", "args": {"n": n}, "definition": POSITIVE})


FIND = Step("demo", "GET", "suspensions/{suspension}", keep={"inquiry": "items.0.inquiries.0.id"})
BEN, EVE = ((add_person(name), sign_in(name)) for name in ("ben", "eve"))
IN_DOUBT = Step("demo", "POST", f"{ITEMS}/i1/in-doubt")
NOTED = (note("anna"),) * MOST_NOTES
MANY_FORWARDS = tuple(
    Step("anna", "POST", f"{ITEMS}/i1/forward", {"to": "ben", "digest": "{digest}", "note": f"No. {n}"})
    for n in range(MOST_FORWARDS)
)
ALL_ASKED = tuple(step for n in range(MOST_INQUIRIES) for step in (inquire(f"Why {n}?", n), answer()))

RETURN = decide("anna", "deny", message="Less.", changes={})
BEN_GOES = Step("root", "POST", "reviewers/ben/deactivate")


def absent(until: str) -> Step:
    return Step("@ben", "POST", "account/absences", {"starts_at": "2099-01-01T00:00:00Z", "ends_at": until})


def encode(content: bytes) -> str:
    return b64encode(content).decode()


CASES = [
    Case(SUPERSEDING, "Send other calls under another key", keyed("k", n=2), (keyed("l", n=2),), (keyed("k", n=1),)),
    Case(
        SUPERSEDING,
        "Ask without revises, or name the item of that call as SUSPENSION/ITEM",
        ask({**call(n=2), "revises": "sus_0/i1"}),
        (ask({**call(n=2), "revises": "{suspension}/i1"}),),
        (ask(call(n=1)), RETURN),
    ),
    Case(
        SUPERSEDING,
        "Repeat it with its own arguments for its result",
        keyed("k", n=2),
        (keyed("k", n=1),),
        (keyed("k", n=1), decide("anna"), start("i1")),
    ),
    Case(
        "service/edge/api/calls.py",
        "Send an Idempotency-Key and mode 'poll'",
        ask(call(), again=True),
        (ask(call(), again=True)._replace(headers={"Idempotency-Key": "k"}),),
    ),
    Case(
        "service/core/desk/client_execution.py",
        "Suspend it again with a new key",
        start("i1"),
        (keyed("k2"), decide("anna"), start("i1")),
        (*BEN, keyed("k1"), decide("@ben"), BEN_GOES),
    ),
    Case(
        "service/core/auth/duty.py", "Deactivate a reviewer who has left", absent("2100-06-01T00:00Z"), (BEN_GOES,), BEN
    ),
    Case(ATTACHING, "Attach one of them", attach(encode(b"\x00\xff")), (attach(encode(b"A note.")),), (ask(),)),
    Case(
        ATTACHING,
        "Attach a smaller one",
        attach(encode(b"x" * 2001)),
        (attach(encode(b"x" * 2000)),),
        (ask(),),
        settings=SMALL,
    ),
    Case(FREEZING, "Freeze each by its name, or everything", freeze("tool:re*"), (freeze("tool:refund"),)),
    Case(FREEZING, "Freeze each by its name, or everything", freeze("tool:*"), (freeze("all"),)),
    Case(
        "service/core/operations/runs.py",
        "Say why, without the data that you erase",
        erase("  "),
        (erase(),),
        (ask(), cancel()),
    ),
    Case(HOLIDAYS, "Give both, or neither", group("", "BY"), (group("DE", "BY"),)),
    Case(HOLIDAYS, "Give both, or neither", group("", "BY"), (group(""),)),
    Case(HOLIDAYS, "Use an ISO 3166 code such as DE, or omit it", group("XX"), (group("DE"),)),
    Case(HOLIDAYS, "Choose one of these or omit it:", group("DE", "XX"), (group("DE", "BY"),), rest=" BB, BE, BW, BY"),
    Case("sayso/features/whatif/matrix.py", "Write it as args", replay("amount"), (replay("args.amount"),)),
    Case("sayso/core/schemas/validators.py", "Correct it and send it again", numbered(0), (numbered(1),)),
    Case(
        "sayso/core/transitions/client_execution.py",
        "Run and report them first",
        IN_DOUBT,
        (start("i2"), report("i2"), IN_DOUBT),
        (
            *BOTH,
            decide("anna"),
            Step("anna", "POST", f"{ITEMS}/i2/decision", {"action": "approve", "digest": "{second}"}),
            start("i1"),
        ),
    ),
    Case(CREDENTIALS, "Sign in as a reviewer", decide("demo"), (sign_in("anna", ANNAS), decide("@anna")), (ask(),)),
    Case(
        "service/features/overrides/api.py",
        "Give one such as 2026-10-31",
        see("overrides?day=soon")[0],
        see("overrides?day=2026-10-31"),
    ),
    Case(CHECKS, "Decide without changes", RETURN, (decide("anna", "deny"),), (ask(call("enter", code=None)),)),
    Case(CHECKS, "Deny it without them", RETURN, (decide("anna", "deny"),), (ask(call("final")),)),
    Case(CHECKS, "Ask", cancel("@eve"), (cancel("@ben"),), (*BEN, *EVE, ask(call("payout"))), rest=" anna, ben, demo"),
    Case(CHECKS, "Ask", cancel("@eve"), (cancel("root"),), (*EVE, ask(call("payout"))), rest=" anna, ben, demo or an"),
    Case(
        "sayso/core/transitions/legal.py",
        "Read it again",
        start("i1"),
        (decide("anna"), *see("suspensions/{suspension}", "demo"), start("i1")),
        (ask(),),
    ),
    Case(
        DELIVERING,
        "Choose one of them",
        forward("@eve"),
        (forward("ben"),),
        (*BEN, *EVE, ask(call("payout"))),
    ),
    Case(DELIVERING, "Choose another", forward("demo"), (forward("ben"),), (*BEN, ask())),
    Case(DELIVERING, "Decide it", forward("ben", "@ben"), (decide("@ben"),), (*BEN, ask(call("payout")))),
    Case(
        DELIVERING,
        "Decide it, or choose another reviewer",
        forward("anna"),
        (forward("ben"), decide("anna")),
        (*BEN, ask()),
    ),
    Case(
        DELIVERING,
        "Decide it, or deny it with a reason",
        forward("ben"),
        (decide("anna"),),
        (*BEN, ask(), *MANY_FORWARDS),
    ),
    Case(INQUIRING, "Ask", note("@eve"), (note("@ben"),), (*BEN, *EVE, ask(call("payout"))), rest=" anna, ben"),
    Case(
        INQUIRING, "Decide, or cancel the run", note("anna"), (decide("anna"),), (ask(), *[note("anna")] * MOST_NOTES)
    ),
    Case(INQUIRING, "Ask again after that", inquire("When?", 1), (answer(), inquire("When?", 1)), (ask(), inquire())),
    Case(INQUIRING, "Read the suspension to see its inquiries", answer("none"), (FIND, answer()), (ask(), inquire())),
    Case(INQUIRING, "Decide it, or deny it with a reason", inquire(), (decide("anna"),), (ask(), *ALL_ASKED)),
    Case(
        INQUIRING,
        "Decide it, or deny it with a reason",
        inquire(),
        (decide("anna", "deny", message="Nobody knows why."),),
        (ask(), *ALL_ASKED),
    ),
]
