import pytest

from service.core.settings import Settings
from tests.service.edge.web.sites import CSRF, OWN, Visit, visit
from tests.service.edge.web.stories import asked

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:8321"},
        {"Sec-Fetch-Site": ""},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://127.0.0.1:8321.evil.example"},
        {"Origin": "ftp://127.0.0.1:8321"},
        {"Origin": "https://127.0.0.1:8321"},
        {"Origin": "http://127.0.0.1:8321/path"},
        {"Origin": "http://anna@127.0.0.1:8321"},
        {"Origin": "http://127.0.0.1:8321\\@evil.example"},
        {"Origin": "http://127.0.0.1:port"},
    ],
)
@pytest.mark.parametrize("place", ["/sign-in", "/sign-out", "/items/sus_1/i1", "/runs/run_1/cancel"])
async def test_form_from_another_site_is_refused(settings: Settings, headers: dict[str, str], place: str) -> None:
    async with visit(settings) as anna:
        response = await anna.client.post(place, data={"csrf": CSRF}, headers=headers)
        assert response.status_code == 403
        assert "another site" in response.text


@pytest.mark.parametrize(
    "headers",
    [{}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {"Origin": "http://127.0.0.1:8321"}],
)
async def test_form_from_the_same_site_is_accepted(settings: Settings, headers: dict[str, str]) -> None:
    async with visit(settings) as anna:
        response = await anna.client.post("/sign-out", data={"csrf": CSRF}, headers=headers)
        assert response.status_code == 303


@pytest.mark.parametrize(
    ("public", "host", "origin"),
    [
        ("http://desk.example", "desk.example", "http://desk.example:80"),
        ("http://desk.example", "desk.example:80", "http://desk.example"),
        ("http://desk.example", "DESK.example.", "http://desk.EXAMPLE"),
        ("http://bücher.example", "xn--bcher-kva.example", "http://xn--bcher-kva.example"),
        ("http://[::1]:8321", "[0:0:0:0:0:0:0:1]:8321", "http://[::1]:8321"),
    ],
)
async def test_form_origin_is_compared_as_parsed(settings: Settings, public: str, host: str, origin: str) -> None:
    async with visit(settings.model_copy(update={"public_url": public})) as anna:
        headers = [(b"Origin", origin.encode()), (b"Host", host.encode())]
        response = await anna.client.post(f"{settings.public_url}/sign-out", data={"csrf": CSRF}, headers=headers)
        assert response.status_code == 303, response.text


async def test_form_origin_may_be_the_public_url(settings: Settings) -> None:
    async with visit(settings.model_copy(update={"allowed_hosts": ("inner",)})) as anna:
        headers = {"Origin": settings.public_url, "Host": "inner:1234"}
        response = await anna.client.post("/sign-out", data={"csrf": CSRF}, headers=headers)
        assert response.status_code == 303


@pytest.mark.parametrize("csrf", ["", "d" * 64, CSRF[:-1], CSRF + "c", "ü" * 64])
async def test_form_of_another_session_is_refused(settings: Settings, csrf: str) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        digest = record.items[0].digest
        await anna.send(f"/items/{record.id}/i1", 403, csrf=csrf, answer="approve", digest=digest)
        await refused(anna, record.id)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"csrf=%ff", FORM),
        (b"csrf=\xff", FORM),
        (b"csrf=a&csrf=b", FORM),
        (b"&".join(b"f%d=1" % place for place in range(2100)), FORM),
        (b'{"csrf": "x"}', {"Content-Type": "application/json"}),
        (b"csrf=" + CSRF.encode(), {"Content-Type": "text/plain"}),
        (b"csrf=" + CSRF.encode(), {}),
    ],
)
async def test_body_that_is_no_form_is_refused(settings: Settings, body: bytes, headers: dict[str, str]) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        response = await anna.client.post(f"/items/{record.id}/i1", content=body, headers={**headers, **OWN})
        assert response.status_code == 422
        await refused(anna, record.id)


async def refused(anna: Visit, suspension_id: str) -> None:
    found = await anna.wiring.desk.suspensions.read(suspension_id)
    assert found.record is not None
    assert found.record.items[0].decisions == ()


async def test_long_form_is_parsed_like_a_short_one(settings: Settings) -> None:
    async with visit(settings) as anna:
        body = b"csrf=" + CSRF.encode() + b"&note=" + b"%0D%0A" * 40_000
        response = await anna.client.post("/sign-out", content=body, headers=FORM)
        assert response.status_code == 303
