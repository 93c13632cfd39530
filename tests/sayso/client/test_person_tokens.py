"""Tokens for the person an agent acts for travel in a header of their own."""

import httpx
import pytest

from sayso import gate
from sayso.client import Client
from sayso.errors import InvalidInput, InvalidPersonToken

TOKEN = "aGVhZA.Ym9keQ.c2ln"


def refuse(seen: list[str | None]) -> Client:
    """Return a client of a desk that notes each token and refuses it."""

    def respond(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("Sayso-On-Behalf-Of"))
        return httpx.Response(403, json={"type": "/problems/invalid-person-token", "detail": "The token has expired."})

    return Client("http://desk.test", "key", transport=httpx.MockTransport(respond))


def test_token_is_sent_with_calls_and_runs() -> None:
    seen: list[str | None] = []
    client = refuse(seen)
    with pytest.raises(InvalidPersonToken, match="has expired"):
        client.suspend({"calls": []}, on_behalf_of=TOKEN)
    with pytest.raises(InvalidPersonToken):
        client.start_run("demo", "Pay", on_behalf_of=TOKEN)
    with pytest.raises(InvalidPersonToken):
        client.start_run("demo", "Pay")
    assert seen == [TOKEN, TOKEN, None]


def test_gate_takes_a_token_or_a_function() -> None:
    seen: list[str | None] = []
    fresh = iter(["a.b.c", "d.e.f"])

    @gate(client=refuse(seen), on_behalf_of=lambda: next(fresh))
    def pay() -> None:
        """Pay a bill."""

    for _ in range(2):
        with pytest.raises(InvalidPersonToken):
            pay()
    assert seen == ["a.b.c", "d.e.f"]


@pytest.mark.parametrize("token", ["", "a.b", "a.b.c.d", "a.b.c\nX: y", "Bearer a.b.c"])
def test_text_that_is_no_token_is_not_sent(token: str) -> None:
    seen: list[str | None] = []
    with pytest.raises(InvalidInput, match="not a signed JWT") as caught:
        refuse(seen).suspend({"calls": []}, on_behalf_of=token)
    assert seen == []
    assert token not in str(caught.value) or not token
