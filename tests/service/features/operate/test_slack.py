"""Installing a Slack app by OAuth: by an admin, in one session, once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from httpx import ASGITransport, AsyncClient, Response
from pydantic import SecretStr

from service.channels.base import DeliveryFailed, Recipient
from service.channels.slack.outbound import SlackChannel
from service.core.settings import Settings
from service.core.store.channels import Installs
from service.edge.web.sessions import cookie_name
from tests.builders import make_person
from tests.fakes.slack import FakeSlack, running_slack
from tests.fakes.slack_api import ANNA, APP, CLIENT_ID, CLIENT_SECRET, TEAM
from tests.service.channels.conformance import ARGS, card_of, record_of
from tests.service.channels.slack.worlds import NAME, SlackWorld, fields_of
from tests.service.worlds import POLICY, World, read_store

BEGIN, DONE = f"/install/slack/{NAME}", f"/install/slack/{NAME}/done"
TOKEN = "xoxb-installed-by-oauth"
CARD = card_of(record_of(ARGS["small"]))


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with running_slack() as running:
        running.codes["good-code"] = TOKEN
        running.bot_tokens.clear()
        yield running


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path, slack: FakeSlack) -> Settings:
    channels, policy = tmp_path / "channels.yaml", tmp_path / "policy.yaml"
    fields = fields_of(slack, client_id=CLIENT_ID, client_secret=CLIENT_SECRET)
    del fields["bot_token"]
    channels.write_text(yaml.safe_dump({"channels": {NAME: fields}}))
    policy.write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=policy, channels=channels)


@pytest.fixture
def slack_world(world: World, slack: FakeSlack) -> SlackWorld:
    return SlackWorld(world, slack)


async def get(world: World, who: str, path: str, **query: str) -> Response:
    cookies = {cookie_name(world.wiring.settings): world.tokens[who]} if who else {}
    transport = ASGITransport(app=world.app)
    async with AsyncClient(transport=transport, base_url="http://127.0.0.1:8321", cookies=cookies) as client:
        return await client.get(path, params=query)


async def begin(world: World, who: str = "root") -> dict[str, Any]:
    answer = await get(world, who, BEGIN)
    assert answer.status_code == 303, answer.text
    place = urlsplit(answer.headers["location"])
    assert (place.scheme, place.netloc, place.path) == ("https", "slack.com", "/oauth/v2/authorize")
    return {name: values[0] for name, values in parse_qs(place.query).items()}


async def test_admin_installs_the_app_and_cards_are_sent(slack_world: SlackWorld) -> None:
    with pytest.raises(DeliveryFailed, match="not installed yet"):
        await slack_world.channel.send(Recipient("anna", ANNA), CARD, "e1")
    asked = await begin(slack_world.world)
    assert asked["client_id"] == CLIENT_ID
    assert asked["team"] == TEAM
    assert asked["scope"] == "chat:write,commands,im:write,users:read"
    assert asked["redirect_uri"].endswith(DONE)
    answer = await get(slack_world.world, "root", DONE, state=asked["state"], code="good-code")
    assert (answer.status_code, answer.headers["location"]) == (303, "/me")
    await slack_world.channel.send(Recipient("anna", ANNA), CARD, "e1")
    assert len(slack_world.slack.messages) == 1


async def install(slack_world: SlackWorld) -> str:
    """Install the app; return what the store has of its token."""
    asked = await begin(slack_world.world)
    await get(slack_world.world, "root", DONE, state=asked["state"], code="good-code")
    sealed = await slack_world.world.wiring.part(Installs).find_token(NAME)
    assert sealed is not None
    return sealed


async def test_store_holds_no_token_in_clear(slack_world: SlackWorld, clean_store_url: str) -> None:
    await install(slack_world)
    assert TOKEN not in repr(await read_store(clean_store_url))


async def test_token_is_encrypted_anew_after_a_rotation(slack_world: SlackWorld) -> None:
    installs, before = slack_world.world.wiring.part(Installs), await install(slack_world)
    secrets = {"client_secret": SecretStr("a-new-secret"), "old_client_secret": SecretStr(CLIENT_SECRET)}
    rotated = SlackChannel(slack_world.channel.config.model_copy(update=secrets))
    rotated.attach(slack_world.world.wiring)
    await rotated.send(Recipient("anna", ANNA), CARD, "e1")
    await rotated.aclose()
    after = await installs.find_token(NAME)
    assert after not in (None, before)
    with pytest.raises(DeliveryFailed, match="cannot be decrypted") as failed:
        await slack_world.channel.send(Recipient("anna", ANNA), CARD, "e2")
    assert failed.value.permanent
    assert len(slack_world.slack.messages) == 1
    await installs.replace_token(NAME, before, "late")
    assert await installs.find_token(NAME) == after, "a token that was saved meanwhile stays"


async def test_state_is_valid_once_and_in_its_own_session(slack_world: SlackWorld) -> None:
    world = slack_world.world
    world.tokens["eve"] = await make_person(world.wiring, "eve", "reviewer", "admin")
    for who, state in (("eve", (await begin(world))["state"]), ("root", "0" * 64), ("root", "")):
        answer = await get(world, who, DONE, state=state, code="good-code")
        assert answer.status_code == 403
        assert "not begun in this session" in answer.text
    asked = await begin(world)
    assert (await get(world, "root", DONE, state=asked["state"])).status_code == 403
    assert (await get(world, "root", DONE, state=asked["state"], code="good-code")).status_code == 403
    assert await world.wiring.part(Installs).find_token(NAME) is None


async def test_wrong_code_installs_nothing(slack_world: SlackWorld) -> None:
    asked = await begin(slack_world.world)
    answer = await get(slack_world.world, "root", DONE, state=asked["state"], code="other")
    assert answer.status_code == 503
    assert CLIENT_SECRET not in answer.text
    assert await slack_world.world.wiring.part(Installs).find_token(NAME) is None


@pytest.mark.parametrize("change", [{"app_id": "A0OTHER"}, {"team": {"id": "T0OTHER"}}, {"access_token": "xoxp-user"}])
async def test_token_of_another_app_is_refused(slack_world: SlackWorld, change: dict[str, Any]) -> None:
    slack_world.slack.installed = {"app_id": APP, **change}
    asked = await begin(slack_world.world)
    answer = await get(slack_world.world, "root", DONE, state=asked["state"], code="good-code")
    assert answer.status_code == 403
    assert await slack_world.world.wiring.part(Installs).find_token(NAME) is None


async def test_only_admins_install(slack_world: SlackWorld, clean_store_url: str) -> None:
    before = await read_store(clean_store_url)
    for path in (BEGIN, DONE):
        assert (await get(slack_world.world, "anna", path)).status_code == 403
        assert (await get(slack_world.world, "", path)).headers["location"].startswith("/sign-in")
    assert (await get(slack_world.world, "root", "/install/slack/other")).status_code == 404
    assert await read_store(clean_store_url) == before
