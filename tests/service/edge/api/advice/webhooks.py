"""Advice about endpoints that receive events, and senders that decide."""

from tests.service.edge.api.advice.steps import Case, Step

ENDPOINTS, SENDERS = "service/features/webhooks/endpoints.py", "service/features/webhooks/endpoints.py"


def add_endpoint(times: int = 1) -> Step:
    body = {"url": "https://1.1.1.1/{n}"}
    return Step("demo", "POST", "webhooks/endpoints", body, {"endpoint": "id"}, times=times)


def add_sender(name: str, times: int = 1, reviewer: str = "anna") -> Step:
    body = {"name": name, "reviewer": reviewer}
    return Step("root", "POST", "webhooks/senders", body, {"sender": "id"}, times=times)


REVOKE = Step("root", "POST", "webhooks/senders/{sender}/revoke")
CASES = [
    Case(
        ENDPOINTS,
        "Delete one first",
        add_endpoint(),
        (Step("demo", "DELETE", "webhooks/endpoints/{endpoint}"), add_endpoint()),
        (add_endpoint(20),),
    ),
    Case(SENDERS, "Choose another name", add_sender("A B"), (add_sender("a-b"),)),
    Case(
        SENDERS,
        "Register a new one",
        Step("root", "POST", "webhooks/senders/{sender}/rotate"),
        (add_sender("a"),),
        (add_sender("a"), REVOKE),
    ),
    Case(SENDERS, "Revoke one first", add_sender("a"), (REVOKE, add_sender("a")), (add_sender("s{n}", 200),)),
]
