"""Advice of refusals that command lines, channels and other processes get, followed at the desk and over the API."""

import re
from pathlib import Path

import pytest

from sayso.core.policy.files.reading import parse_rulebook
from sayso.core.records.decisions import Actor, ActorKind
from sayso.errors import Conflict, InvalidInput, NotAllowed
from service.channels.mail import check_address
from service.channels.previews import build_sample_card, preview, read_sample
from service.core.settings import Settings
from service.features.permissions.desk import Granting
from tests.builders import make_person, person, register_agent
from tests.sayso.samples import T0
from tests.service.edge.api.advice.rulebook import LIVE, STRICT, attest, grant, promote, shadow
from tests.service.edge.api.advice.steps import POLICY, Kept, Step, ask, call, send
from tests.service.worlds import World
from tests.waits import until

CONTACTS, KEYS, PREVIEWS = (
    "service/core/auth/contacts.py",
    "service/core/auth/api_keys.py",
    "service/channels/previews.py",
)
FOLLOWED = [
    ("service/edge/api/dependencies.py", "Run the same version"),
    (KEYS, "Choose a longer, random one"),
    (KEYS, "Choose another one"),
    (CONTACTS, "Ask an admin"),
    ("service/core/auth/groups.py", "Make several groups"),
    ("service/core/auth/reviewers.py", "Add or activate another admin first"),
    ("service/channels/mail.py", "Write one such as anna@example"),
    (PREVIEWS, "Check its path"),
    (PREVIEWS, "Choose a rule with request_approval or request_user_input"),
    (PREVIEWS, "Write it as"),
    ("service/features/permissions/desk.py", "Sign in as a reviewer"),
    ("service/features/rulebook/versions.py", "Attest it"),
    ("service/core/store/directory.py", "Create a new one on your account page"),
]


@pytest.fixture
def settings(request: pytest.FixtureRequest, clean_store_url: str, tmp_path: Path) -> Settings:
    (tmp_path / "policy.yaml").write_text(POLICY)
    needed = getattr(request, "param", 0)
    return Settings(redis_url=clean_store_url, policy=tmp_path / "policy.yaml", policy_attestations=needed)


@pytest.mark.parametrize("settings", [1], indirect=True)
async def test_advice_about_a_candidate_leads_to_force(world: World) -> None:
    kept: Kept = {}
    assert (await send(world, attest(POLICY))).is_success
    await world.wiring.rules.compare("service")
    for step in (LIVE, shadow()):
        assert (await send(world, step, kept)).is_success
    refused = await send(world, promote(), kept)
    assert "Attest it" in refused.json()["detail"], refused.text
    assert (await send(world, attest(STRICT))).is_success
    assert (await send(world, promote(), kept)).json()["in_force"]


async def test_advice_about_an_agent_of_another_version_leads_to_a_run(world: World) -> None:
    start = Step("demo", "POST", "runs", {"agent": "bot", "input": "x"})
    await world.wiring.runs.save_agent("bot", '{"of": "another version"}')
    refused = await send(world, start)
    assert "Run the same version" in refused.json()["detail"], refused.text
    await register_agent(world.wiring, "bot")

    async def starts() -> bool:
        return (await send(world, start)).is_success

    await until(starts)


async def test_advice_about_a_large_group_leads_to_groups(world: World) -> None:
    names = [f"p{number}" for number in range(501)]
    for name in names:
        await make_person(world.wiring, name)
    with pytest.raises(InvalidInput, match="Make several groups"):
        await world.wiring.groups.create("a", tuple(names), (), "root")
    for name, members in (("a", names[:500]), ("b", names[500:])):
        assert (await send(world, Step("root", "POST", "groups", {"name": name, "members": members}))).is_success


async def test_advice_about_a_code_leads_to_a_contact(world: World) -> None:
    contacts, kept = world.wiring.contacts, Kept()
    create = Step("anna", "POST", "account/contacts/codes", {"channel": "ops"}, {"code": "code"})
    with pytest.raises(InvalidInput, match="Create a new one on your account page"):
        await contacts.redeem_code("ops", "AAAA-AAAA", "A1")
    assert (await send(world, create, kept)).is_success
    await send(world, Step("root", "POST", "reviewers/anna/deactivate"))
    with pytest.raises(InvalidInput, match="Ask an admin"):
        await contacts.redeem_code("ops", kept["code"], "A1")
    assert (await send(world, Step("root", "POST", "reviewers/anna/activate"))).is_success
    assert (await contacts.redeem_code("ops", kept["code"], "A1")).person == "anna"


async def test_advice_about_a_given_key_leads_to_a_key(world: World) -> None:
    keys = world.wiring.api_keys
    with pytest.raises(InvalidInput, match="Choose a longer, random one"):
        await keys.create("bot", "short")
    made, _ = await keys.create("bot", "x" * 40)
    for name in ("other", "bot"):
        if name == "bot":
            await send(world, Step("root", "POST", f"keys/{made.id}/revoke"))
        with pytest.raises(Conflict, match="Choose another one"):
            await keys.create(name, "x" * 40)
    assert (await keys.create("bot", "y" * 40))[0].name == "bot"


async def test_advice_about_the_last_admin_leads_to_a_change(world: World) -> None:
    with pytest.raises(Conflict, match="Add or activate another admin first"):
        await world.wiring.reviewers.deactivate("root")
    await make_person(world.wiring, "sue", "reviewer", "admin")
    assert not (await world.wiring.reviewers.deactivate("root")).active


async def test_advice_about_who_revokes_leads_to_an_end(world: World) -> None:
    kept: Kept = {}
    for step in (ask(call("wire", amount=1)), grant("anna")):
        assert (await send(world, step, kept)).is_success
    with pytest.raises(NotAllowed, match="Sign in as a reviewer"):
        await world.wiring.feature(Granting).revoke(kept["grant"], Actor(id="demo", kind=ActorKind.AGENT))
    assert (await world.wiring.feature(Granting).revoke(kept["grant"], person("anna"))).revoked_by == "anna"


def test_advice_about_an_address_leads_to_one() -> None:
    with pytest.raises(InvalidInput, match=r"Write one such as anna@example\.com"):
        check_address("anna")
    assert check_address("anna@example.com") == "anna@example.com"


def test_advice_about_a_preview_leads_to_a_card(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=re.escape('Write it as {"tool": "refund", "args": {}}')):
        read_sample(b'{"call": 1}', "call.json")
    sample = read_sample(b'{"tool": "refund", "args": {}}', "call.json")
    policy = parse_rulebook(POLICY.encode(), file="policy.yaml")
    with pytest.raises(InvalidInput, match="Choose a rule with request_approval or request_user_input"):
        build_sample_card(policy, "free", sample, T0, "https://sayso.example")
    assert build_sample_card(policy, "wires", sample, T0, "https://sayso.example").headline
    rules, sent = tmp_path / "policy.yaml", tmp_path / "call.json"
    rules.write_text(POLICY)
    given = [str(rules), "--rule", "wires", "--call", str(sent)]
    with pytest.raises(InvalidInput, match="Check its path"):
        preview(given)
    sent.write_text('{"tool": "refund", "args": {}}')
    assert "refund" in preview(given)
