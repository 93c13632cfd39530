"""Advice about what others sign and prove: tokens for people, decisions by webhook, receivers of events."""

import json
from pathlib import Path
from typing import Any

import pytest
from httpx import Response
from pydantic import SecretStr
from starlette.responses import Response as Answer

from sayso.core.clock import now_ms
from sayso.core.signing import sign_message
from service.core.settings import Settings
from tests.builders import make_pending, make_person
from tests.receivers import Receiver
from tests.service.core.auth.signing import IDP, OTHER, private_key, public_pem, row, sign, write_issuers
from tests.service.edge.api.advice.steps import POLICY, Step, ask, send
from tests.service.worlds import World

VERIFYING = "service/core/auth/person_tokens.py"
FOLLOWED = [
    (VERIFYING, "Add the key by its id"),
    (VERIFYING, "Correct SAYSO_TOKEN_ISSUERS"),
    (VERIFYING, "Send it as the issuer made it"),
    (VERIFYING, "Send the one for this desk"),
    (VERIFYING, "Use seconds since 1970"),
    ("service/features/webhooks/inbound.py", "Send the name of one"),
    ("service/features/webhooks/endpoints.py", "Correct the receiver and verify again"),
    ("service/features/webhooks/endpoints.py", "Ask an admin to register another sender"),
    ("service/features/webhooks/endpoints.py", "Omit `reviewer`, or send that name"),
]
SECRET = "whsec_" + "b2xkb2xk" * 5


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return Settings(
        redis_url=clean_store_url,
        policy=tmp_path / "policy.yaml",
        token_issuers=write_issuers(tmp_path, row()),
        webhook_secret=(SecretStr(SECRET),),
        aap_allow_loopback=True,
    )


async def ask_for(world: World, token: str) -> Response:
    return await send(world, ask()._replace(headers={"Sayso-On-Behalf-Of": token}))


async def read_refusal(world: World, token: str) -> str:
    refused = await ask_for(world, token)
    assert refused.status_code == 403, refused.text
    return str(refused.json()["detail"])


@pytest.mark.parametrize(
    ("advice", "changed"),
    [
        ("Send the one for this desk", {"headers": {"typ": "other"}}),
        ("Use seconds since 1970", {"iat": True}),
    ],
)
async def test_advice_about_a_token_leads_to_a_call(world: World, advice: str, changed: dict[str, Any]) -> None:
    assert advice in await read_refusal(world, sign(**changed))
    assert (await ask_for(world, sign())).is_success


async def test_advice_about_a_broken_token_leads_to_a_call(world: World) -> None:
    token = sign()
    for broken in (token.rpartition(".")[0], f"e{token}"):
        assert "Send it as the issuer made it" in await read_refusal(world, broken)
    assert (await ask_for(world, token)).is_success


@pytest.mark.parametrize(
    ("advice", "issuer", "key_id"),
    [("Add the key by its id", IDP, "k2"), ("Correct SAYSO_TOKEN_ISSUERS", OTHER, "k1")],
)
async def test_advice_about_issuers_leads_to_a_call(
    world: World, tmp_path: Path, advice: str, issuer: str, key_id: str
) -> None:
    token = sign(private_key("EdDSA", issuer), headers={"kid": key_id}, iss=issuer)
    assert advice in await read_refusal(world, token)
    write_issuers(
        tmp_path, row(issuer, keys=[{"id": key_id, "alg": "EdDSA", "public_key": public_pem("EdDSA", issuer)}])
    )
    assert (await ask_for(world, token)).is_success


async def hook(world: World, path: str, secret: str, **fields: Any) -> Response:
    """Decide a new item by a signed message."""
    record = await make_pending(world.wiring)
    item = record.items[0]
    decision = {"suspension_id": record.id, "item_id": item.item_id, "action": "approve", "digest": item.digest}
    raw, at_s = json.dumps({**decision, **fields}).encode(), now_ms() // 1000
    headers = {
        "webhook-id": record.id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": sign_message(secret, record.id, at_s, raw),
        "Content-Type": "application/json",
    }
    return await send(world, Step("", "POST", path, raw, headers=headers))


async def test_advice_about_a_reviewer_leads_to_a_signed_decision(world: World) -> None:
    refused = await hook(world, "/hooks/decisions", SECRET, reviewer="nobody")
    assert "Send the name of one" in refused.json()["detail"], refused.text
    assert (await hook(world, "/hooks/decisions", SECRET, reviewer="anna")).is_success


async def register(world: World, name: str, reviewer: str) -> tuple[str, str]:
    made = await send(world, Step("root", "POST", "webhooks/senders", {"name": name, "reviewer": reviewer}))
    return made.json()["path"], made.json()["secret"]


async def test_advice_about_a_sender_leads_to_a_signed_decision(world: World) -> None:
    await make_person(world.wiring, "ben")
    bens = await register(world, "bens", "ben")
    named = await hook(world, *bens, reviewer="anna")
    assert "Omit `reviewer`, or send that name" in named.json()["detail"], named.text
    assert (await hook(world, *bens)).is_success
    assert (await hook(world, *bens, reviewer="ben")).is_success
    assert (await send(world, Step("root", "POST", "reviewers/ben/deactivate"))).is_success
    refused = await hook(world, *bens)
    assert "Ask an admin to register another sender" in refused.json()["detail"], refused.text
    assert (await hook(world, *await register(world, "annas", "anna"))).is_success


async def test_advice_about_a_receiver_leads_to_an_active_endpoint(world: World, receiver: Receiver) -> None:
    kept: dict[str, str] = {}
    await send(world, Step("root", "POST", "webhooks/endpoints", {"url": receiver.url}, {"id": "id"}), kept)
    verify, answer = Step("root", "POST", "webhooks/endpoints/{id}/verify"), receiver.say
    receiver.say = lambda _: Answer("no")
    refused = await send(world, verify, kept)
    assert "Correct the receiver and verify again" in refused.json()["detail"], refused.text
    receiver.say = answer
    assert (await send(world, verify, kept)).json()["state"] == "active"
