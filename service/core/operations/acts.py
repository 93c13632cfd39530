"""Acts that the activity log records, by operation of the API and form of the pages; a test compares the routes."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, NamedTuple

from fastapi import Request, Response

from sayso.errors import NotAllowed
from service.core.auth.credentials import Principal
from service.core.auth.hosts import origin_of
from service.core.auth.roles import ROLES
from service.core.operations.states import STATES, describe_changes
from service.core.store.activity import CHANGED
from service.core.wiring import Wiring

Respond = Callable[[Request], Coroutine[Any, Any, Response]]
Sent = Mapping[str, Any]


class Act(NamedTuple):
    """An act by its name in the log, and the sent fields that the log keeps; never those that hold secrets."""

    name: str
    fields: tuple[str, ...] = ()
    needs: str = ""  # the field of a form without which the page only asks or shows, and nothing was done


FindAct = Callable[[], Coroutine[Any, Any, tuple[Act | None, Sent]]]
"""Finds the act of a request, and what was sent, once the request was served: only then is its sender known."""

_LIMITS = ("scopes", "agents", "networks")
_GROUP = ("members", "editors")
_ABSENCE = ("starts_at", "ends_at", "delegate")
_ENDPOINT = ("url", "events", "description")

ACTS: Mapping[str, Act] = {
    "addReviewer": Act("person_added", ("name", "roles")),
    "setPassword": Act("password_set"),
    "deactivateReviewer": Act("person_deactivated"),
    "activateReviewer": Act("person_activated"),
    "setRoles": Act("roles_set", ("roles",)),
    "saveRole": Act("role_saved", ("permissions", "tools", "agents", "groups")),
    "deleteRole": Act("role_deleted"),
    "setManager": Act("manager_set", ("manager",)),
    "changeOwnPassword": Act("own_password_changed"),
    "endOtherSessions": Act("sessions_ended"),
    "endOwnSession": Act("session_ended"),
    "endSessions": Act("sessions_ended"),
    "endSession": Act("session_ended"),
    "signOut": Act("signed_out"),
    "createKey": Act("key_created", ("name", "kind", "owner", *_LIMITS, "expires_at")),
    "rotateKey": Act("key_rotated", ("overlap_s",)),
    "revokeKey": Act("key_revoked"),
    "createGroup": Act("group_created", ("name", *_GROUP)),
    "changeGroup": Act("group_changed", _GROUP),
    "deleteGroup": Act("group_deleted"),
    "createContactCode": Act("contact_code_created", ("channel",)),
    "unlinkOwnContact": Act("contact_unlinked"),
    "unlinkContact": Act("contact_unlinked"),
    "saveOwnPreferences": Act("preferences_saved"),
    "savePreferences": Act("preferences_saved"),
    "addOwnAbsence": Act("absence_added", _ABSENCE),
    "deleteOwnAbsence": Act("absence_deleted"),
    "addAbsence": Act("absence_added", _ABSENCE),
    "deleteAbsence": Act("absence_deleted"),
    "freeze": Act("frozen", ("scope", "reason")),
    "unfreeze": Act("unfrozen", ("checked",)),
    "attestRules": Act("rules_attested", ("file",)),
    "restoreRules": Act("rules_restored"),
    "beginShadow": Act("shadow_begun"),
    "endShadow": Act("shadow_ended"),
    "promoteShadow": Act("rules_promoted"),
    "confirmGrant": Act("grant_confirmed"),
    "revokeGrant": Act("grant_revoked"),
    "reinstateGrant": Act("grant_reinstated"),
    "revokeMandate": Act("mandate_revoked"),
    "plantDrill": Act("drill_planted", ("template",)),
    "testChannel": Act("channel_tested", ("person",)),
    "createEndpoint": Act("endpoint_created", _ENDPOINT),
    "verifyEndpoint": Act("endpoint_verified"),
    "disableEndpoint": Act("endpoint_disabled"),
    "rotateEndpoint": Act("endpoint_rotated"),
    "deleteEndpoint": Act("endpoint_deleted"),
    "redeliver": Act("messages_sent_again"),
    "createSender": Act("sender_created", ("name", "reviewer")),
    "rotateSender": Act("sender_rotated"),
    "revokeSender": Act("sender_revoked"),
    "cancelRun": Act("run_cancelled", ("reason",)),
    "reviveRun": Act("run_revived"),
    "eraseRun": Act("contents_erased", ("reason",)),
    "exportHistory": Act("history_exported"),
    "exportEvidence": Act("evidence_exported"),
    "exportOverrides": Act("overrides_exported"),
    "breakGlass": Act("emergency_begun", ("reason",)),
    "endOwnEmergency": Act("emergency_ended"),
    "endEmergency": Act("emergency_ended"),
}
"""The acts of the API by operation id."""

CREATING = frozenset(("person_added", "group_created"))
"""Acts before which their target does not exist."""

NO_ACTS = frozenset(
    (
        *("createSuspension", "redeemItem", "reportOutcome", "markInDoubt", "reportEvents", "startRun"),
        *("decideItem", "extendItem", "claimItem", "releaseItem", "askRequester", "answerInquiry", "addComment"),
        *("retractDecision", "confirmItem", "writeNote", "previewItem", "forwardItem"),
        *("inviteOutsider", "revokeInvitation"),
        *(
            "attachFile",
            "takeSecondLook",
            "checkRules",
            "checkCheckpoints",
            "explainCall",
            "showWho",
            "startReplay",
            "deleteReplay",
        ),
        *("reportShadow", "saveOwnView", "deleteOwnView", "signIn", "proposeMandate", "judgeCall"),
    )
)
"""Operations that are recorded elsewhere (`signIn`, and in trails), that change nothing, or only one's own views."""

PAGE_ACTS: Mapping[str, Mapping[str, Act]] = {
    "/sign-out": {"": Act("signed_out")},
    "/runs/{run_id}": {"": Act("run_revived")},
    "/runs/{run_id}/cancel": {"": Act("run_cancelled", ("reason",))},
    "/runs/{run_id}/erase": {"": Act("contents_erased", ("reason",))},
    "/operate": {"": Act("frozen", ("scope", "kind", "named", "reason"), needs="confirm")},
    "/operate/{freeze_id:path}/unfreeze": {"": Act("unfrozen", ("checked",))},
    "/drills": {"": Act("drill_planted", ("template",))},
    "/me/password": {"": Act("own_password_changed")},
    "/me/sessions": {"": Act("sessions_ended")},
    "/me/keys": {"": Act("key_created")},
    "/me/keys/{key_id}/revoke": {"": Act("key_revoked")},
    "/people": {"": Act("person_added", ("name", *(f"role:{role}" for role in ROLES)))},
    "/people/{name}": {
        "password": Act("password_set"),
        "deactivate": Act("person_deactivated"),
        "activate": Act("person_activated"),
        "manager": Act("manager_set", ("manager",)),
        "roles": Act("roles_set", tuple(f"role:{role}" for role in ROLES)),
    },
    "/keys": {"": Act("key_created", ("name", "kind", "owner", *_LIMITS, "expires"))},
    "/keys/{key_id}": {"rotate": Act("key_rotated", ("overlap",)), "revoke": Act("key_revoked")},
    "/me/contacts": {"": Act("contact_code_created", ("channel",))},
    "/me/contacts/unlink": {"": Act("contact_unlinked", ("which",))},
    "/me/preferences": {"": Act("preferences_saved")},
    "/me/absences": {"": Act("absence_added", ("from", "to", "delegate"))},
    "/me/absences/delete": {"": Act("absence_deleted", ("which",))},
    "/me/passkeys": {
        "add": Act("passkey_added", ("name",)),
        "name": Act("passkey_renamed", ("which", "name")),
        "remove": Act("passkey_removed", ("which",)),
    },
    "/people/{name}/passkeys": {"": Act("passkey_removed", ("which",))},
    "/me/codes": {"begin": Act("app_begun"), "add": Act("app_added"), "remove": Act("app_removed")},
    "/people/{name}/codes": {"": Act("app_removed")},
    "/groups": {"": Act("group_created", ("name", *_GROUP))},
    "/groups/{name}": {"": Act("group_changed", _GROUP), "delete": Act("group_deleted")},
    "/rules/-/versions/{version}": {
        "restore": Act("rules_restored"),
        "attest": Act("rules_attested"),
        "begin": Act("shadow_begun"),
    },
    "/rules/-/shadow": {"begin": Act("shadow_begun"), "end": Act("shadow_ended"), "promote": Act("rules_promoted")},
    "/grants/{grant_id}": {
        "confirm": Act("grant_confirmed"),
        "revoke": Act("grant_revoked"),
        "reinstate": Act("grant_reinstated"),
    },
    "/channels": {"": Act("channel_tested", ("test", "person"), needs="test")},
    "/me/notifications/mail": {"": Act("contact_code_created", ("channel",))},
    "/me/notifications/code": {"": Act("contact_linked", ("channel",))},
    "/me/notifications/push": {"": Act("contact_linked", ("channel",))},
    "/me/notifications/remove": {"": Act("contact_unlinked", ("which",))},
    "/webhooks/endpoints": {"": Act("endpoint_created", _ENDPOINT)},
    "/webhooks/endpoints/{endpoint_id}": {
        "verified": Act("endpoint_verified"),
        "rotate": Act("endpoint_rotated"),
        "disable": Act("endpoint_disabled"),
        "delete": Act("endpoint_deleted"),
    },
    "/webhooks/failures": {"": Act("messages_sent_again")},
    "/webhooks/senders": {"": Act("sender_created", ("name", "reviewer"))},
    "/webhooks/senders/{sender_id}": {"rotate": Act("sender_rotated"), "revoke": Act("sender_revoked")},
    "/history/export": {"": Act("history_exported")},
    "/break-glass": {"break": Act("emergency_begun", ("reason",)), "end": Act("emergency_ended")},
    "/break-glass/{name}": {"": Act("emergency_ended")},
}
"""The acts of the pages by path and by the form's `act`; an empty one counts for any."""

NO_PAGE_ACTS = frozenset(
    (
        *("/sign-in", "/sign-in/{provider}", "/sign-in/{provider}/logout", "/me/display", "/welcome/demo"),
        "/items/{suspension_id}/{item_id}/sign",
        *("/sign-in/-/passkey", "/sign-in/-/passkey/options", "/me/passkeys/options"),
        *("/views", "/views/delete", "/batch", "/second-looks", "/undo/{suspension_id}"),
        *("/items/{suspension_id}/{item_id}", "/items/{suspension_id}/{item_id}/claim", "/welcome/skip"),
        "/items/{suspension_id}/{item_id}/retract",
        *("/runs/{run_id}/notes", "/items/{suspension_id}/{item_id}/preview"),
        "/items/{suspension_id}/{item_id}/uninvite",
        "/outside/{suspension_id}/{item_id}/{token}",
        "/items/{suspension_id}/{item_id}/confirm",
        *("/items/{suspension_id}/{item_id}/release", "/rules/-/try", "/items/{suspension_id}/{item_id}/attachments"),
        *("/items/{suspension_id}/{item_id}/here", "/rules/-/draft", "/rules/-/replays"),
        *("/rules/-/replays/{replay_id}/delete", "/second-looks/{run_id}/{seq}"),
    )
)
"""Forms recorded elsewhere (those of `/sign-in`, and in trails), that change nothing, or only one's own views."""


async def record_act(request: Request, respond: Respond, find: FindAct) -> Response:
    """Serve the request, and record what was done, or that it was refused."""
    try:
        response = await respond(request)
    except NotAllowed as error:
        act, _ = await find()
        if act is not None and (caller := _find_caller(request)) is not None:
            wiring, address = _wiring_of(request), origin_of(request).address
            place = {"door": _name_door(request), "address": address, "target": _name_target(request, {})}
            await wiring.activity.refuse(act.name, caller.name, error.message, **place)
        raise
    caller = _find_caller(request)
    act, fields = await find() if caller is not None and response.status_code < 400 else (None, {})
    if act is not None and caller is not None and (not act.needs or fields.get(act.needs)):
        facts = {name: fields[name] for name in act.fields if name in fields}
        made = {"made_by": caller.made.by} if caller.made.by else {}
        if caller.emergency:
            made |= {"emergency": "yes"}
        target = _name_target(request, fields)
        await _wiring_of(request).activity.record(
            act.name,
            caller.name,
            door=_name_door(request),
            address=origin_of(request).address,
            target=target,
            **{**facts, **made, CHANGED: await _find_changes(request, act, target or caller.name)},
        )
    return response


async def note_state(request: Request, acts: Iterable[Act], caller: Principal) -> None:
    """Keep the state that one of these acts may change, once its sender is known and may do it."""
    read = next((STATES[act.name] for act in acts if act.name in STATES), None)
    if read is not None:
        request.state.before = await read(_wiring_of(request), _name_target(request, {}) or caller.name)


async def _find_changes(request: Request, act: Act, target: str) -> str:
    read, before = STATES.get(act.name), getattr(request.state, "before", None)
    if read is None or before is None:
        return ""
    created = act.name in CREATING  # nothing was there; the sender's own state stood in for it
    return describe_changes({} if created else before, await read(_wiring_of(request), target))


def _find_caller(request: Request) -> Principal | None:
    visitor = getattr(request.state, "visitor", None)
    caller: Principal | None = visitor.principal if visitor is not None else getattr(request.state, "principal", None)
    return caller


def _wiring_of(request: Request) -> Wiring:
    wiring: Wiring = request.state.wiring
    return wiring


def _name_door(request: Request) -> str:
    return "api" if request.url.path.startswith("/api/") else "web"


def _name_target(request: Request, sent: Sent) -> str:
    return "/".join(map(str, request.path_params.values())) or str(sent.get("name", ""))
