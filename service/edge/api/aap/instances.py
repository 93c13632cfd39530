"""Routes for provisioners: create, change and delete instances, whose receivers are verified before they are stored."""

from dataclasses import replace
from hashlib import sha256
from hmac import digest as hmac_digest

from fastapi import APIRouter, Request, Response

from sayso.core.clock import new_secret, new_uuid
from sayso.errors import NotFound, Unavailable
from service.core.auth.reviewers import hash_token
from service.core.operations.challenges import Challenge, challenge_receiver
from service.core.operations.runs import withdraw_all
from service.core.outgoing.connections import UnsafeUrl
from service.core.store.attempts import Allowance
from service.core.store.instances import KEPT_MS, Instance, Instances, Registration
from service.core.store.suspensions.commits import Idempotency
from service.core.wiring import Wiring
from service.edge.api.aap.callers import Id, Key, Provisioner, Scope, ScopeRoute
from service.edge.api.aap.models import (
    Credential,
    InstanceChange,
    InstanceView,
    NewInstance,
    ProvisionedInstance,
    write_exactly,
)
from service.edge.api.aap.problems import Refusal, problems, replays
from service.edge.api.dependencies import Parts

PER_PROVISIONER = Allowance("aap-registrations", 30, 60)


async def verify_receiver(parts: Wiring, scope: str, instance_id: str, delivery: Registration) -> None:
    """Send a signed challenge, which the receiver must return; raises `TooManyRequests` or `Refusal`."""
    members = {"registration_id": delivery.registration_id, "instance_id": instance_id}
    challenge = Challenge(delivery.url, (delivery.signing_secret,), (PER_PROVISIONER, scope), members)
    try:
        failure = await challenge_receiver(parts, challenge)
    except UnsafeUrl as error:
        raise Refusal(400, "invalid_webhook_url", error.message) from None
    if failure:
        raise Refusal(
            422, "webhook_verification_failed", f"The receiver failed its verification: {failure}.", "delivery.url"
        )


router = APIRouter(prefix="/v1/instances", tags=["instances"], route_class=ScopeRoute)

_ATTEMPTS = 20


@router.post(
    "",
    status_code=201,
    operation_id="createInstance",
    response_model_exclude_none=True,
    responses=replays(ProvisionedInstance, "The request was repeated: the existing instance", 401, 403, 409),
)
async def create_instance(
    request: Request, response: Response, body: NewInstance, scope: Provisioner, parts: Parts, key: Key
) -> ProvisionedInstance:
    """Create an instance. A receiver must return a signed challenge first."""
    idempotency = _idempotency(scope, key, f"create {write_exactly(await request.body())}")
    repeated = await _recall(parts, scope, idempotency)
    if repeated is not None:
        response.status_code = 200
        return repeated
    instance_id, salt, at_ms = new_uuid(), new_secret(), await parts.schedule.now_ms()
    delivery = body.delivery.register() if body.delivery is not None else None
    if delivery is not None:
        await verify_receiver(parts, scope.name, instance_id, delivery)
    token = _derive_token(scope, salt)
    instance = Instance(
        id=instance_id,
        tenant=scope.tenant,
        scope=scope.name,
        name=body.instance_name or f"instance-{instance_id[:8]}",
        created_at_ms=at_ms,
        credential_hash=hash_token(token),
        delivery=delivery,
    )
    saved = await parts.part(Instances).save(instance, replace(idempotency, ref=f"{instance_id} {salt}"))
    if saved is None:
        first = await _recall(parts, scope, idempotency)
        if first is None:
            raise Unavailable()
        response.status_code = 200
        return first
    return await _activate(parts, saved, token)


@router.get("/{id}", operation_id="getInstance", response_model_exclude_none=True, responses=problems(401, 403, 404))
async def get_instance(id_: Id, scope: Provisioner, parts: Parts) -> InstanceView:
    """Return an instance."""
    return InstanceView.of(await _find(parts, scope, id_))


@router.patch(
    "/{id}", operation_id="changeInstance", response_model_exclude_none=True, responses=problems(401, 403, 404, 409)
)
async def change_instance(
    request: Request, body: InstanceChange, id_: Id, scope: Provisioner, parts: Parts, key: Key
) -> InstanceView:
    """Change the name or the delivery of an instance. A delivery applies to later requests."""
    idempotency = _idempotency(scope, key, f"change {id_} {write_exactly(await request.body())}", id_)
    await _find(parts, scope, id_)
    if await parts.replays.recall(idempotency) is not None:
        return InstanceView.of(await _find(parts, scope, id_))
    delivery = body.delivery.register() if body.delivery is not None else None
    if delivery is not None:
        await verify_receiver(parts, scope.name, id_, delivery)
    for _ in range(_ATTEMPTS):
        instance = await _find(parts, scope, id_)
        update: dict[str, object] = {"name": body.instance_name} if body.instance_name is not None else {}
        if "delivery" in body.model_fields_set:
            update["delivery"] = delivery
        saved = await parts.part(Instances).save(instance.model_copy(update=update), idempotency)
        if saved is not None:
            return InstanceView.of(saved)
        if await parts.replays.recall(idempotency) is not None:
            return InstanceView.of(await _find(parts, scope, id_))
    raise Unavailable()


@router.delete("/{id}", status_code=204, operation_id="deleteInstance", responses=problems(401, 403, 404))
async def delete_instance(id_: Id, scope: Provisioner, parts: Parts) -> None:
    """Delete an instance. Its credential, pending requests and undelivered messages end."""
    for _ in range(_ATTEMPTS):
        instance = await parts.part(Instances).read(id_)
        if instance is None or instance.scope != scope.name:
            break
        if await parts.part(Instances).delete(instance, await parts.schedule.now_ms()):
            break
    if not await parts.part(Instances).is_gone(id_, scope.name):
        raise _unknown(id_)
    await withdraw_all(parts, id_)


async def _find(parts: Wiring, scope: Scope, instance_id: str) -> Instance:
    instance = await parts.part(Instances).read(instance_id)
    if instance is None or instance.scope != scope.name:
        raise _unknown(instance_id)
    return instance


def _unknown(instance_id: str) -> NotFound:
    return NotFound(f"There is no instance {instance_id} for this credential.")


async def _recall(parts: Wiring, scope: Scope, idempotency: Idempotency) -> ProvisionedInstance | None:
    ref = await parts.replays.recall(idempotency)
    if ref is None:
        return None
    instance_id, salt = ref.split(" ")
    instance = await parts.part(Instances).read(instance_id)
    if instance is None:
        raise Refusal(409, "instance_deleted", "The instance that this key created was deleted. Choose a new key.")
    token = _derive_token(scope, salt)
    if hash_token(token) != instance.credential_hash:
        why = "Another token of this provisioner created the instance. Only that token gets its credential."
        raise Refusal(409, "credential_not_available", why)
    return await _activate(parts, instance, token)


async def _activate(parts: Wiring, instance: Instance, token: str) -> ProvisionedInstance:
    await parts.part(Instances).let_in(instance)
    return ProvisionedInstance(instance=InstanceView.of(instance), credential=Credential(token=token))


def _derive_token(scope: Scope, salt: str) -> str:
    """Return the same credential for the same salt. The store lacks the provisioner's token, so it cannot."""
    return f"sayso_instance_{hmac_digest(scope.token.encode(), f'instance credential {salt}'.encode(), sha256).hex()}"


def _idempotency(scope: Scope, key: str, request: str, ref: str = "") -> Idempotency:
    fingerprint = sha256(request.encode()).hexdigest()
    return Idempotency(actor=f"aap-scope:{scope.name}", key=key, fingerprint=fingerprint, ref=ref, kept_ms=KEPT_MS)
