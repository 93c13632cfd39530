"""Admins add people, reset passwords and deactivate; a password is shown once."""

import re

from sayso.core.records.terms import Quorum, RuleTerms
from service.core.settings import Settings
from tests.service.edge.web.sites import CSRF, OWN, PASSWORD, add_people, visit
from tests.service.edge.web.stories import asked, make_ask
from tests.service.edge.web.test_freezes import make_admin

PEOPLE_POLICY = """\
version: 1
default: deny
rules:
  - id: large
    tool: refund_payment
    action: request_approval
    terms: {reviewers: [ben, "group:payments"]}
"""


async def test_reviewer_cannot_manage_people(settings: Settings) -> None:
    async with visit(settings) as anna:
        await anna.read("/people", 403)
        await anna.send("/people", 403, name="carla")
        await anna.send("/people/ben", 403, act="password")
        assert await anna.wiring.reviewers.find("carla") is None


async def test_added_person_signs_in_with_the_password_shown_once(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        answer = await anna.client.post("/people", data={"csrf": CSRF, "name": "carla"}, headers=OWN)
        (password,) = re.findall(r'id="secret">([\w-]{20})<', answer.text)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
        assert "carla is added" in answer.text
        assert password not in await anna.read("/people")
        assert "There is already a reviewer named carla" in await anna.send("/people", 409, name="carla")
        await anna.send("/people", 422, name="Not A Name")
        await anna.send("/people", 403, name="dora", csrf="x")
        carla = await anna.wiring.reviewers.sign_in("carla", password)
        assert carla.session.roles == ("reviewer",)


async def test_reset_password_replaces_the_old_one(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        await add_people(anna.wiring, "ben")
        page = await anna.send("/people/ben", 200, act="password")
        (password,) = re.findall(r'id="secret">([\w-]{20})<', page)
        assert not await anna.wiring.reviewers.has_password("ben", PASSWORD)
        assert await anna.wiring.reviewers.has_password("ben", password)
        await anna.send("/people/nobody", 404, act="password")
        await anna.send("/people/ben", 422, act="promote")


async def test_deactivation_names_items_without_a_quorum(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        await add_people(anna.wiring, "ben", "carla")
        both = RuleTerms(quorum=Quorum(approve=2), reviewers=("ben", "carla"))
        short = await asked(anna.wiring, make_ask(terms=both.model_dump()))
        await asked(anna.wiring)
        page = await anna.send("/people/ben", 200, act="ask")
        assert re.findall(r'href="/items/(\w+)/i1"', page) == [short.id]
        assert "1 approval too few" in page
        assert await anna.send("/people/ben", act="deactivate") == "/people?done=deactivate"
        assert "deactivated" in await anna.read("/people?done=deactivate")
        assert "Every open item keeps enough people" in await anna.send("/people/ben", 200, act="ask")
        await anna.send("/people/ben", act="activate")
        ben = await anna.wiring.reviewers.find("ben")
        assert ben is not None
        assert ben.active


async def test_last_admin_cannot_be_deactivated(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        assert "You cannot deactivate yourself" in await anna.send("/people/anna", 409, act="deactivate")
        page = await anna.read("/people")
        assert 'value="ask"' not in page


async def test_people_are_listed_with_rules_and_last_seen(settings: Settings) -> None:
    assert settings.policy is not None
    settings.policy.write_text(PEOPLE_POLICY)
    async with visit(settings) as anna:
        await make_admin(anna)
        await add_people(anna.wiring, "ben", "carla")
        await anna.wiring.groups.create("payments", ("carla",), (), "anna", None)
        rows = re.findall(r"<tr>\s*<th scope=\"row\">(\w+)(.*?)</tr>", await anna.read("/people"), re.DOTALL)
        seen = {name: "never" not in rest for name, rest in rows}
        asks = {name: "large" in rest for name, rest in rows}
        assert seen == {"anna": True, "ben": False, "carla": False}
        assert asks == {"anna": False, "ben": True, "carla": True}


async def test_admin_sets_a_manager_on_the_page(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        await add_people(anna.wiring, "ben", "carla")
        assert await anna.send("/people/ben", act="manager", manager="carla") == "/people?done=manager"
        page = await anna.read("/people?done=manager")
        assert "Runs that have begun keep the earlier one" in page
        assert '<option value="carla" selected>' in page
        assert "cannot manage themselves" in await anna.send("/people/ben", 422, act="manager", manager="ben")
        await anna.send("/people/ben", act="manager", manager="")
        ben = await anna.wiring.reviewers.find("ben")
        assert ben is not None
        assert ben.manager is None
