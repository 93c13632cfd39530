"""Forged, altered, late and repeated decisions by webhook: none decides anything, as the reference verifier agrees."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo

import pytest
from pydantic import SecretStr
from standardwebhooks import webhooks as reference

from sayso.core.clock import now_ms
from sayso.core.records.decisions import ActorKind
from sayso.core.signing import SignedMessage, new_signing_secret, sign_message, verify_message
from sayso.errors import InvalidSignature
from service.core.auth.credentials import Principal
from service.core.auth.roles import find_rights
from service.core.settings import Settings
from service.features.webhooks.endpoints import NewSender, register_sender, revoke_sender, rotate_sender
from tests.builders import make_pending, make_person
from tests.service.channels.webhook.forgeries import FORGED, GENUINE, SIGNED, STRICTER
from tests.service.channels.webhook.scenes import GLOBAL, Headers, Scene, post
from tests.service.worlds import World, read_store


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"webhook_secret": (SecretStr(GLOBAL),)})


@pytest.fixture
async def scene(world: World) -> Scene:
    root = Principal("default", "root", ActorKind.HUMAN, ("admin",), lasting=find_rights(("admin",), {}))
    await make_person(world.wiring, "ben")
    sender = await register_sender(world.wiring, root, "pager", "anna")
    other = await register_sender(world.wiring, root, "ticket", "ben")
    revoked = await register_sender(world.wiring, root, "former", "ben")
    await revoke_sender(world.wiring, root, revoked.sender.id)
    rotated = await rotate_sender(world.wiring, root, sender.sender.id, 0)
    record = await make_pending(world.wiring)
    return Scene(world, NewSender(rotated.sender, rotated.secret), other, record, sender.secret, revoked)


@contextmanager
def clock_at(at_ms: int) -> Iterator[None]:
    """Let the reference verifier, which reads the machine's clock, see this time."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Clock":
            return cls.fromtimestamp(0, tz) + timedelta(milliseconds=at_ms)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "datetime", Clock)
        yield


def reference_accepts(secret: str, headers: Headers, body_: bytes, at_ms: int | None = None) -> bool:
    """Return whether the reference verifier accepts the message; it takes the last of two headers."""
    try:
        with clock_at(now_ms() if at_ms is None else at_ms):
            reference.Webhook(secret).verify(body_, dict(headers), json_parse=False)
    except (reference.WebhookVerificationError, reference.EmptyWebhookSecretError, ValueError, OverflowError):
        return False
    return True


def test_there_are_enough_cases() -> None:
    assert len(FORGED) + len(STRICTER) + len(SIGNED) >= 150


async def assert_nothing_changed(scene: Scene, before: dict[bytes, bytes | None]) -> None:
    after = await read_store(str(scene.world.wiring.settings.store_url))
    assert after == before


@pytest.mark.parametrize("name", FORGED)
async def test_forged_message_is_refused_as_by_the_reference(scene: Scene, name: str) -> None:
    sent = FORGED[name](scene, scene.message())
    before = await read_store(str(scene.world.wiring.settings.store_url))
    answer = await post(scene, sent)
    assert (answer.status_code, answer.json()["type"]) == (401, "/problems/invalid-signature"), answer.text
    await assert_nothing_changed(scene, before)
    held = scene.other.secret if scene.other.sender.id in sent.path else scene.sender.secret
    elsewhere = scene.revoked.sender.id in sent.path or not sent.path.endswith(scene.sender.sender.id)
    assert elsewhere or not reference_accepts(held, sent.headers(), sent.body)


@pytest.mark.parametrize("name", STRICTER)
async def test_malformed_header_is_refused(scene: Scene, name: str) -> None:
    before = await read_store(str(scene.world.wiring.settings.store_url))
    answer = await post(scene, STRICTER[name](scene, scene.message()))
    assert (answer.status_code, answer.json()["type"]) == (401, "/problems/invalid-signature"), answer.text
    await assert_nothing_changed(scene, before)


@pytest.mark.parametrize("name", SIGNED)
async def test_signed_message_that_is_no_decision_is_refused(scene: Scene, name: str) -> None:
    sent = SIGNED[name](scene, scene.message())
    before = await read_store(str(scene.world.wiring.settings.store_url))
    answer = await post(scene, sent)
    assert answer.status_code in (400, 403, 404, 409, 422), answer.text
    await assert_nothing_changed(scene, before)


@pytest.mark.parametrize("name", GENUINE)
async def test_genuine_message_decides_as_its_reviewer(scene: Scene, name: str) -> None:
    sent = GENUINE[name](scene, scene.message())
    assert reference_accepts(scene.sender.secret, sent.headers(), sent.body)
    answer = await post(scene, sent)
    assert (answer.status_code, answer.json()["verdict"]) == (200, "approved"), answer.text
    record = (await scene.world.wiring.desk.suspensions.read(scene.record.id)).record
    assert record.items[0].outcome is not None
    assert (record.items[0].outcome.by.id, record.items[0].outcome.by.channel) == ("anna", "webhook")


_EDGES = [sign * ms for sign in (-1, 1) for ms in (0, 299_000, 299_999, 300_000, 300_001, 301_000)]


@pytest.mark.parametrize("offset_ms", _EDGES)
def test_five_minutes_end_as_for_the_reference(offset_ms: int) -> None:
    secret, at_s = new_signing_secret(), 1_795_255_307
    signature = sign_message(secret, "msg_1", at_s, b"{}")
    now = at_s * 1000 - offset_ms
    try:
        verify_message([secret], SignedMessage("msg_1", str(at_s), signature, b"{}"), now)
        accepted = True
    except InvalidSignature:
        accepted = False
    headers = [("webhook-id", "msg_1"), ("webhook-timestamp", str(at_s)), ("webhook-signature", signature)]
    assert accepted == reference_accepts(secret, headers, b"{}", now) == (abs(offset_ms) <= 300_000)


async def test_replayed_message_changes_nothing(scene: Scene) -> None:
    sent = replace(scene.message(), timestamp=str(now_ms() // 1000))
    assert (await post(scene, sent)).json()["repeated"] is False
    before = await read_store(str(scene.world.wiring.settings.store_url))
    again = await post(scene, sent)
    assert (again.status_code, again.json()["repeated"]) == (200, True)
    await assert_nothing_changed(scene, before)


async def test_id_of_an_earlier_message_with_another_body_is_refused(scene: Scene) -> None:
    assert (await post(scene, scene.message())).status_code == 200
    before = await read_store(str(scene.world.wiring.settings.store_url))
    answer = await post(scene, scene.message(action="deny", message="changed my mind"))
    assert answer.status_code == 409
    assert "webhook-id" in answer.json()["detail"]
    await assert_nothing_changed(scene, before)


async def test_same_id_of_two_senders_is_two_messages(scene: Scene) -> None:
    assert (await post(scene, scene.message())).status_code == 200
    path = f"/hooks/decisions/{scene.other.sender.id}"
    answer = await post(scene, replace(scene.message(), secret=scene.other.secret, path=path))
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/already-decided")


async def test_old_secret_is_accepted_until_the_overlap_ends(scene: Scene) -> None:
    root = Principal("default", "root", ActorKind.HUMAN, ("admin",), lasting=find_rights(("admin",), {}))
    rotated = await rotate_sender(scene.world.wiring, root, scene.sender.sender.id, 60)
    assert (await post(scene, scene.message())).status_code == 200
    sent = replace(scene.message(), secret=rotated.secret, id="msg_2")
    assert (await post(scene, sent)).json()["type"] == "/problems/already-decided"


async def test_sender_of_an_inactive_reviewer_is_refused(scene: Scene) -> None:
    await scene.world.wiring.reviewers.deactivate("anna")
    answer = await post(scene, scene.message())
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/not-allowed")


async def test_address_without_a_sender_still_takes_the_secret_of_the_settings(scene: Scene) -> None:
    sent = replace(scene.message(reviewer="ben"), secret=GLOBAL, path="/hooks/decisions")
    assert (await post(scene, sent)).json()["verdict"] == "approved"
    record = (await scene.world.wiring.desk.suspensions.read(scene.record.id)).record
    assert record.items[0].outcome is not None
    assert record.items[0].outcome.by.id == "ben"
