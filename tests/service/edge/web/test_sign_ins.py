import re
from pathlib import Path

from service.core.settings import Settings
from service.edge.http.assets import unmask_token
from tests.service.edge.web.sites import CSRF, OWN, PASSWORD, TOKEN, add_people, settings_for, visit
from tests.service.edge.web.stories import asked, begin


async def test_pages_without_a_session_redirect_to_sign_in(settings: Settings) -> None:
    async with visit(settings, None) as guest:
        for place in ("/", "/history", "/runs", "/runs/run_1", "/items/sus_1/i1", "/?q=x", "/live"):
            response = await guest.client.get(place)
            assert response.status_code == 303, place
            assert response.headers["location"].startswith("/sign-in")
        response = await guest.client.get("/runs?status=failed&skip=25")
        assert response.headers["location"] == "/sign-in?next=/runs%3Fstatus%3Dfailed%26skip%3D25"


async def test_sign_in_opens_a_new_session_and_redirects(settings: Settings) -> None:
    async with visit(settings, None) as guest:
        await add_people(guest.wiring, "carla")
        form = {"name": " carla ", "password": PASSWORD, "next": "/runs"}
        first = await guest.client.post("/sign-in", data=form, headers=OWN)
        assert (first.status_code, first.headers["location"]) == (303, "/runs")
        cookie = first.headers["set-cookie"]
        assert cookie.startswith("sayso_session_8321=")
        assert all(word in cookie for word in ("HttpOnly", "SameSite=lax", "Path=/"))
        assert "carla" in await guest.read("/runs")
        before = guest.client.cookies["sayso_session_8321"]
        await guest.client.post("/sign-in", data=form, headers=OWN)
        assert guest.client.cookies["sayso_session_8321"] != before
        guest.client.cookies.clear()
        left = await guest.client.get("/", headers={"Cookie": f"sayso_session_8321={before}"})
        assert left.status_code == 303, "the session before is over"


async def test_sign_in_with_a_wrong_password_keeps_the_name(settings: Settings) -> None:
    async with visit(settings, None) as guest:
        await add_people(guest.wiring, "carla")
        for name in ("carla", "nobody", 'x"><script>'):
            form = {"name": name, "password": "wrong password", "next": "//evil.example"}
            response = await guest.client.post("/sign-in", data=form, headers=OWN)
            assert response.status_code == 401
            assert "do not go together" in response.text
            assert 'name="next" value="/"' in response.text
            assert "<script>" not in response.text.replace("<script src", "")
            assert "set-cookie" not in response.headers


async def test_sign_in_is_limited_after_many_attempts(settings: Settings) -> None:
    async with visit(settings, None) as guest:
        form = {"name": "carla", "password": "wrong password"}
        response = await guest.client.post("/sign-in", data=form, headers=OWN)
        for _ in range(30):
            if response.status_code != 401:
                break
            response = await guest.client.post("/sign-in", data=form, headers=OWN)
        assert response.status_code == 429
        assert int(response.headers["retry-after"]) > 0
        assert "Too many attempts" in response.text
        assert 'value="carla"' in response.text


async def test_sign_in_page_redirects_a_signed_in_reviewer(settings: Settings) -> None:
    async with visit(settings) as anna:
        response = await anna.client.get("/sign-in?next=/runs")
        assert (response.status_code, response.headers["location"]) == (303, "/runs")


async def test_sign_out_ends_the_session_at_once(settings: Settings) -> None:
    async with visit(settings) as anna:
        token = anna.client.cookies["sayso_session_8321"]
        await anna.read("/")
        response = await anna.client.post("/sign-out", data={"csrf": CSRF}, headers=OWN)
        assert response.headers["location"] == "/sign-in"
        assert 'sayso_session_8321=""' in response.headers["set-cookie"]
        assert "Max-Age=0" in response.headers["set-cookie"]
        response = await anna.client.get("/", headers={"Cookie": f"sayso_session_8321={token}"})
        assert response.status_code == 303


async def test_sign_out_needs_the_csrf_token(settings: Settings) -> None:
    async with visit(settings) as anna:
        await anna.send("/sign-out", 403, csrf="d" * 64)
        await anna.read("/")


async def test_reason_survives_the_end_of_its_session(settings: Settings) -> None:
    async with visit(settings, None) as guest:
        await guest.wiring.reviewers.add("carla", PASSWORD, ("reviewer", "operator"))
        run = (await begin(guest.wiring)).run
        for place, typed in (
            (f"/runs/{run.id}/cancel", {"reason": "It loops"}),
            ("/operate", {"kind": "agent", "named": "support", "reason": "It loops"}),
        ):
            page = await guest.send(place, 401, **typed)
            assert "to continue with your input" in page
            form = {"name": "carla", "password": PASSWORD, "next": place, **typed}
            response = await guest.client.post("/sign-in", data=form, headers=OWN)
            assert (response.status_code, response.headers["location"]) == (307, place)
            response = await guest.client.post(place, data=form, headers=OWN)
            assert response.status_code == 403
            assert "Nothing was changed. Check your input below" in response.text
            if place != "/operate":
                assert "It loops</textarea>" in response.text
            guest.client.cookies.clear()
        assert (await guest.wiring.runs.read(run.id)).status == "running"


async def test_two_services_on_one_host_keep_separate_sessions(clean_store_url: str, tmp_path: Path) -> None:
    names: set[str] = set()
    for url in ("http://box:8321", "http://box:8400", "http://box"):
        settings = settings_for(clean_store_url, tmp_path, public_url=url)
        async with visit(settings, None) as guest:
            await add_people(guest.wiring, "carla" + str(len(names)))
            form = {"name": f"carla{len(names)}", "password": PASSWORD}
            response = await guest.client.post("/sign-in", data=form, headers=OWN)
            names.add(response.headers["set-cookie"].partition("=")[0])
    assert names == {"sayso_session_8321", "sayso_session_8400", "sayso_session_80"}


async def test_agent_key_opens_no_pages(settings: Settings) -> None:
    async with visit(settings, None) as guest:
        _, key = await guest.wiring.api_keys.create("demo")
        response = await guest.client.get("/", headers={"Cookie": f"sayso_session_8321={key}"})
        assert response.status_code == 303
        headers = {"Cookie": f"sayso_session_8321={key}", **OWN}
        response = await guest.client.post("/items/sus_1/i1", data={"csrf": ""}, headers=headers)
        assert response.status_code == 303


async def test_cookie_is_host_bound_over_https(clean_store_url: str, tmp_path: Path) -> None:
    settings = settings_for(clean_store_url, tmp_path, public_url="https://sayso.example")
    async with visit(settings, None) as guest:
        await add_people(guest.wiring, "carla")
        response = await guest.client.post("/sign-in", data={"name": "carla", "password": PASSWORD}, headers=OWN)
        cookie = response.headers["set-cookie"]
        assert cookie.startswith("__Host-sayso=")
        assert "Secure" in cookie
        assert "Domain" not in cookie


async def test_forms_carry_the_csrf_token(settings: Settings) -> None:
    async with visit(settings) as anna:
        sent = [re.findall(r'name="csrf" value="([0-9a-f]+)"', await anna.read("/"))[0] for _ in range(2)]
        assert {unmask_token(one) for one in sent} == {TOKEN}
        assert sent[0] != sent[1], "a compressed page must not tell it by its length"


async def test_input_survives_a_sign_in(settings: Settings) -> None:
    async with visit(settings, None) as guest:
        await add_people(guest.wiring, "carla")
        typed = {"answer": "edit", "f0": "x" * 12_000}
        page = await guest.client.post("/items/sus_1/i1", data=typed, headers=OWN)
        assert typed["f0"] in page.text
        form = typed | {"name": "carla", "password": PASSWORD, "next": "/items/sus_1/i1"}
        signed_in = await guest.client.post("/sign-in", data=form, headers=OWN)
        assert (signed_in.status_code, signed_in.headers["location"]) == (307, "/items/sus_1/i1")


async def test_long_input_survives_a_sign_in_in_another_tab(settings: Settings) -> None:
    """A stranger's long form is not read; the browser keeps it, and sends it again when its page is reloaded."""
    async with visit(settings, None) as guest:
        await add_people(guest.wiring, "carla")
        record = await asked(guest.wiring)
        place = f"/items/{record.id}/i1"
        typed = {
            "answer": "deny",
            "digest": record.items[0].digest,
            "message": "late " + "x" * 1_900,
            "f0": "x" * 200_000,
        }
        refused = await guest.client.post(place, data=typed, headers=OWN)
        assert (refused.status_code, "sign in in another tab, then reload this page" in refused.text) == (413, True)
        form = {"name": "carla", "password": PASSWORD}
        assert (await guest.client.post("/sign-in", data=form, headers=OWN)).status_code == 303
        reloaded = await guest.client.post(place, data=typed, headers=OWN)
        assert (reloaded.status_code, typed["message"] in reloaded.text) == (403, True)
