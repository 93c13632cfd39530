"""The permission that each operation of the API and each page needs. A route without a row serves nobody."""

from collections.abc import Mapping

from service.core.auth.roles import Permission, Rights, require_permission

_OPERATIONS: Mapping[Permission, tuple[str, ...]] = {
    "account": (
        *("signOut", "changeOwnPassword", "listOwnSessions", "endOtherSessions", "endOwnSession", "listOwnContacts"),
        *("createContactCode", "unlinkOwnContact", "readOwnPreferences", "saveOwnPreferences", "listOwnViews"),
        *("saveOwnView", "deleteOwnView", "listOwnAbsences", "addOwnAbsence", "deleteOwnAbsence", "listWebhookEvents"),
        "endOwnEmergency",
        *("createKey", "rotateKey", "listKeys", "revokeKey"),  # a reviewer's key of their own; others by `manage_keys`
    ),
    "read_items": (
        *("confirmItem", "listSuspensions", "getSuspension", "listInquiries", "listAttachments", "getAttachment"),
        *("listMandates", "getMandate", "forecastSuspension", "listInvitations"),
    ),
    "decide": (
        *("decideItem", "retractDecision", "extendItem", "claimItem", "releaseItem", "askRequester", "addComment"),
        *("writeNote", "previewItem", "forwardItem", "inviteOutsider", "revokeInvitation"),
        *("attachFile", "listSecondLooks", "takeSecondLook"),
    ),
    "grant": ("confirmGrant", "revokeGrant", "reinstateGrant", "revokeMandate"),
    "read_runs": (
        *("listAgents", "listRuns", "getRun", "listRunSuspensions", "listEvents", "streamEvents"),
        *("listExternalEvents", "getTimeline", "listComments"),
        "listNotes",
    ),
    "start_runs": (
        *("startRun", "createSuspension", "redeemItem", "reportOutcome", "markInDoubt", "reportEvents"),
        *("answerInquiry", "proposeMandate", "judgeCall"),
    ),
    "cancel_runs": ("cancelRun", "reviveRun"),
    "read_history": ("listHistory", "reportHeadless", "listArchivedRuns"),
    "export": ("exportHistory", "exportOverrides"),
    "read_desk": (
        "listEmergencies",
        *("listRoles", "listFreezes", "listGrants", "getDiagnostics", "reportInsights", "listGroups", "readGroup"),
        *("changeGroup", "listAllAbsences", "showWho"),  # editors change their group; others by `manage_groups`
    ),
    "read_rules": ("checkRules", "explainCall", "listRuleVersions", "getRuleVersion", "getShadow"),
    "edit_rules": (
        *("startReplay", "listReplays", "getReplay", "deleteReplay", "attestRules", "restoreRules", "beginShadow"),
        *("endShadow", "promoteShadow", "reportShadow"),
    ),
    "read_people": ("listReviewers", "listSessions", "listContacts", "readPreferences"),
    "manage_people": (
        *(
            "saveRole",
            "deleteRole",
            "addReviewer",
            "setRoles",
            "setPassword",
            "deactivateReviewer",
            "activateReviewer",
            "setManager",
            "endSessions",
        ),
        *("endSession", "endEmergency", "unlinkContact", "savePreferences", "addAbsence", "deleteAbsence"),
    ),
    "manage_groups": ("createGroup", "deleteGroup"),
    "read_channels": ("listChannels", "listEndpoints", "listFailures", "listSenders"),
    "manage_channels": ("testChannel",),
    "manage_webhooks": (
        *("createEndpoint", "verifyEndpoint", "disableEndpoint", "rotateEndpoint", "deleteEndpoint"),
        *("redeliver", "createSender", "rotateSender", "revokeSender"),
    ),
    "read_activity": ("listActivity", "listCheckpoints", "checkCheckpoints", "exportEvidence"),
    "freeze": ("freeze", "unfreeze"),
    "erase": ("eraseRun",),
    "break_glass": ("breakGlass",),
    "drills": ("listDrills", "plantDrill"),
}
OPERATIONS: Mapping[str, Permission] = {
    operation: permission for permission, operations in _OPERATIONS.items() for operation in operations
}
"""By operation id. What an agent's key may do is in `SCOPES`."""

OPEN_OPERATIONS = frozenset(("signIn", "getHealth", "getReadiness", "takeSignedDecision", "takeSenderDecision"))
"""Operations without a credential, or with a signature for one."""

_PAGES: Mapping[Permission, tuple[str, ...]] = {
    "account": (
        *(
            "POST /sign-out",
            "GET /sign-in",
            "GET /sign-in/{provider}",
            "POST /views",
            "POST /views/delete",
            "POST /welcome/skip",
            "GET /me",
        ),
        *("POST /me/password", "POST /me/sessions", "POST /me/display", "POST /me/preferences", "POST /me/absences"),
        *("POST /me/absences/delete", "POST /me/contacts", "POST /me/contacts/unlink", "POST /me/keys"),
        *("POST /me/keys/{key_id}/revoke", "GET /me/notifications", "POST /me/notifications/mail"),
        *("POST /me/notifications/code", "POST /me/notifications/push", "POST /me/notifications/remove"),
        *("GET /me/passkeys", "POST /me/passkeys", "POST /me/passkeys/options"),
        *("GET /me/codes", "POST /me/codes"),
        *("GET /docs", "GET /live", "GET /"),  # the inbox of somebody who reads no items is empty
    ),
    "read_items": (
        *("GET /rows", "GET /next", "GET /batch", "GET /batch/{like}", "GET /items/{suspension_id}/{item_id}"),
        *("GET /items/{suspension_id}/{item_id}/attachments/{attachment_id}",),
        *("POST /items/{suspension_id}/{item_id}/here", "POST /items/{suspension_id}/{item_id}/confirm"),
    ),
    "decide": (
        "POST /runs/{run_id}/notes",
        *("GET /undo", "POST /undo/{suspension_id}"),
        *("POST /batch", "GET /second-looks", "POST /second-looks", "POST /items/{suspension_id}/{item_id}"),
        *(
            f"POST /items/{{suspension_id}}/{{item_id}}/{act}"
            for act in (
                *("claim", "release", "retract", "preview", "attachments", "sign"),
                "uninvite",
            )
        ),
    ),
    "grant": ("POST /grants/{grant_id}",),
    "read_runs": ("GET /runs", "GET /runs/{run_id}"),
    "cancel_runs": ("POST /runs/{run_id}", "GET /runs/{run_id}/cancel", "POST /runs/{run_id}/cancel"),
    "read_history": ("GET /history", "GET /archive"),
    "export": ("GET /history/export",),
    "read_desk": (
        "GET /break-glass",
        *("GET /insights", "GET /operate", "GET /freezes", "GET /groups", "GET /who", "GET /grants"),
        *("POST /groups/{name}",),  # editors change their group; others by `manage_groups`
    ),
    "read_rules": (
        *("GET /rules", "GET /rules/{rule_id}", "GET /rules/-/versions", "GET /rules/-/versions/{version}"),
        *("GET /rules/-/try", "POST /rules/-/try", "GET /rules/-/cases", "GET /rules/-/shadow"),
    ),
    "edit_rules": (
        *("POST /rules/-/versions/{version}", "GET /rules/-/draft", "POST /rules/-/draft", "GET /rules/-/replays"),
        *("POST /rules/-/replays", "GET /rules/-/replays/{replay_id}", "POST /rules/-/replays/{replay_id}/delete"),
        *("POST /rules/-/shadow",),
    ),
    "read_people": ("GET /people", "GET /keys"),
    "read_channels": ("GET /channels", "GET /webhooks"),
    "manage_people": (
        *("POST /people", "POST /people/{name}", "POST /break-glass/{name}"),
        *("GET /people/{name}/passkeys", "POST /people/{name}/passkeys"),
        *("GET /people/{name}/codes", "POST /people/{name}/codes"),
    ),
    "manage_groups": ("POST /groups",),
    "manage_keys": ("POST /keys", "POST /keys/{key_id}"),
    "manage_channels": ("POST /channels", "GET /install/slack/{name}", "GET /install/slack/{name}/done"),
    "manage_webhooks": (
        *("POST /webhooks/endpoints", "POST /webhooks/endpoints/{endpoint_id}"),
        *("POST /webhooks/failures", "POST /webhooks/senders", "POST /webhooks/senders/{sender_id}"),
    ),
    "read_activity": ("GET /activity",),
    "freeze": ("POST /operate", "POST /operate/{freeze_id:path}/unfreeze"),
    "erase": ("GET /runs/{run_id}/erase", "POST /runs/{run_id}/erase"),
    "break_glass": ("POST /break-glass",),
    "drills": ("GET /drills", "POST /drills"),
    "set_up": ("GET /welcome", "POST /welcome/demo"),
}
PAGES: Mapping[str, Permission] = {page: permission for permission, pages in _PAGES.items() for page in pages}
"""By method and path."""

OPEN_PAGES = frozenset(
    (
        *("POST /sign-in", "GET /sign-in/{provider}/callback", "POST /sign-in/{provider}", "GET /inbox"),
        *(
            "GET /sign-in/{provider}/end",
            "POST /sign-in/{provider}/logout",
            "GET /manifest.webmanifest",
            "GET /service-worker.js",
        ),
        *("POST /sign-in/-/passkey", "POST /sign-in/-/passkey/options"),
        "GET /outside/{suspension_id}/{item_id}/{token}",
        "POST /outside/{suspension_id}/{item_id}/{token}",
        *("GET /sdk/", "GET /sdk/sayso/", "GET /sdk/files/{file}", "GET /sdk/npm/@sayso/client"),
    )
)
"""Pages for everybody, signed in or not."""


def require_operation(rights: Rights, operation_id: str) -> None:
    """Raise `NotAllowed` for a person who may not use this operation."""
    require_permission(rights, OPERATIONS[operation_id])


def require_page(rights: Rights, method: str, path: str) -> None:
    """Raise `NotAllowed` for a person who may not open this page, or send this form."""
    require_permission(rights, PAGES[f"{'GET' if method == 'HEAD' else method} {path}"])


def opens(rights: Rights, path: str) -> bool:
    """Return whether a person may open this page."""
    return rights.has(PAGES[f"GET {path}"])
