"""Make instances, change them, delete them; for provisioners."""

from dataclasses import replace
from hashlib import sha256
from hmac import digest as hmac_digest

from fastapi import APIRouter, Request, Response

from sayso.clock import new_secret, new_uuid
from sayso.errors import NotFound, Unavailable
from service.api.aap.callers import Id, Key, Provisioner, Scope, ScopeRoute
from service.api.aap.documents import problems, replays
from service.api.aap.exact_json import write_exactly
from service.api.aap.models import Credential, InstanceChange, InstanceView, NewInstance, ProvisionedInstance
from service.api.aap.problems import Refusal
from service.api.aap.verifications import verify_receiver
from service.api.routing.dependencies import Parts
from service.auth.reviewers import hash_token
from service.operations.instance_deletion import withdraw_all
from service.store.instances import KEPT_MS, Instance
from service.store.suspensions.commits import Idempotency
from service.wiring import Wiring

router = APIRouter(prefix="/v1/instances", tags=["instances"], route_class=ScopeRoute)

_ROUNDS = 20


@router.post(
    "",
    status_code=201,
    operation_id="createInstance",
    response_model_exclude_none=True,
    responses=replays(ProvisionedInstance, "The same request again: the instance it made", 401, 403, 409),
)
async def create_instance(
    request: Request, response: Response, body: NewInstance, scope: Provisioner, parts: Parts, key: Key
) -> ProvisionedInstance:
    """Make an instance. A receiver is sent a challenge first; only when it comes back is anything kept."""
    seen = _seen(scope, key, f"create {write_exactly(await request.body())}")
    again = await _recall(parts, scope, seen)
    if again is not None:
        response.status_code = 200
        return again
    instance_id, salt, at_ms = new_uuid(), new_secret(), await parts.schedule.now_ms()
    told = body.delivery.register() if body.delivery is not None else None
    if told is not None:
        await verify_receiver(parts, scope.name, instance_id, told)
    token = _derive_token(scope, salt)
    instance = Instance(
        id=instance_id,
        tenant=scope.tenant,
        scope=scope.name,
        name=body.instance_name or f"instance-{instance_id[:8]}",
        created_at_ms=at_ms,
        credential_hash=hash_token(token),
        delivery=told,
    )
    saved = await parts.instances.save(instance, replace(seen, ref=f"{instance_id} {salt}"))
    if saved is None:
        first = await _recall(parts, scope, seen)
        if first is None:
            raise Unavailable()
        response.status_code = 200
        return first
    return await _let_in(parts, saved, token)


@router.get("/{id}", operation_id="getInstance", response_model_exclude_none=True, responses=problems(401, 403, 404))
async def get_instance(id_: Id, scope: Provisioner, parts: Parts) -> InstanceView:
    """Return one of your instances."""
    return InstanceView.of(await _find(parts, scope, id_))


@router.patch(
    "/{id}",
    operation_id="changeInstance",
    response_model_exclude_none=True,
    responses=problems(401, 403, 404, 409),
)
async def change_instance(
    request: Request, body: InstanceChange, id_: Id, scope: Provisioner, parts: Parts, key: Key
) -> InstanceView:
    """Rename an instance, or tell it elsewhere, or no more. It is told of requests made while it has a delivery."""
    seen = _seen(scope, key, f"change {id_} {write_exactly(await request.body())}", id_)
    await _find(parts, scope, id_)
    if await parts.instances.recall(seen) is not None:
        return InstanceView.of(await _find(parts, scope, id_))
    told = body.delivery.register() if body.delivery is not None else None
    if told is not None:
        await verify_receiver(parts, scope.name, id_, told)
    for _ in range(_ROUNDS):
        found = await _find(parts, scope, id_)
        update: dict[str, object] = {"name": body.instance_name} if body.instance_name is not None else {}
        if "delivery" in body.model_fields_set:
            update["delivery"] = told
        saved = await parts.instances.save(found.model_copy(update=update), seen)
        if saved is not None:
            return InstanceView.of(saved)
        if await parts.instances.recall(seen) is not None:
            return InstanceView.of(await _find(parts, scope, id_))
    raise Unavailable()


@router.delete("/{id}", status_code=204, operation_id="deleteInstance", responses=problems(401, 403, 404))
async def delete_instance(id_: Id, scope: Provisioner, parts: Parts) -> None:
    """End an instance: its credential, all that waits for its sake, and every message to it."""
    for _ in range(_ROUNDS):
        found = await parts.instances.read(id_)
        if found is None or found.scope != scope.name:
            break
        if await parts.instances.delete(found, await parts.schedule.now_ms()):
            break
    if not await parts.instances.is_gone(id_, scope.name):
        raise _unknown(id_)
    await withdraw_all(parts, id_)


async def _find(parts: Wiring, scope: Scope, instance_id: str) -> Instance:
    found = await parts.instances.read(instance_id)
    if found is None or found.scope != scope.name:
        raise _unknown(instance_id)
    return found


def _unknown(instance_id: str) -> NotFound:
    return NotFound(f"There is no instance {instance_id} for this credential.")


async def _recall(parts: Wiring, scope: Scope, seen: Idempotency) -> ProvisionedInstance | None:
    """Return what the same request made before, with the very credential it was given then."""
    ref = await parts.instances.recall(seen)
    if ref is None:
        return None
    instance_id, salt = ref.split(" ")
    instance = await parts.instances.read(instance_id)
    if instance is None:
        raise Refusal(409, "instance_deleted", "The instance that this key made was deleted; choose a new key.")
    token = _derive_token(scope, salt)
    if hash_token(token) != instance.credential_hash:
        why = "This instance was made with another token of this provisioner; only that one is shown its credential."
        raise Refusal(409, "credential_not_available", why)
    return await _let_in(parts, instance, token)


async def _let_in(parts: Wiring, instance: Instance, token: str) -> ProvisionedInstance:
    await parts.instances.let_in(instance)
    return ProvisionedInstance(instance=InstanceView.of(instance), credential=Credential(token=token))


def _derive_token(scope: Scope, salt: str) -> str:
    """Return the credential that belongs to a salt.

    The store has the salt, for as long as the key is kept, and a hash of the credential; what makes the one from the
    other is the provisioner's token, which only the provisioner has. So the same request can be answered with the same
    credential, and nobody who reads the store learns it.
    """
    return f"sayso_instance_{hmac_digest(scope.token.encode(), f'instance credential {salt}'.encode(), sha256).hex()}"


def _seen(scope: Scope, key: str, request: str, ref: str = "") -> Idempotency:
    fingerprint = sha256(request.encode()).hexdigest()
    return Idempotency(actor=f"aap-scope:{scope.name}", key=key, fingerprint=fingerprint, ref=ref, kept_ms=KEPT_MS)
