"""The routers of the API: those of the core, and of each feature."""

from fastapi import APIRouter

from service.edge.api import calls, external_events, freezes, health, preflight, runs, sessions, suspensions, trails
from service.features import forwards, notes, previews, saved_views
from service.features.archive import api as archive
from service.features.break_glass import api as break_glass
from service.features.control import api as control
from service.features.discussions import api as discussions
from service.features.evidence import api as evidence
from service.features.forecast import api as forecast
from service.features.history import api as history
from service.features.insights import api as insights
from service.features.operate import api as operate
from service.features.operate import metrics
from service.features.outsiders import api as outsiders
from service.features.overrides import api as overrides
from service.features.people import api as people
from service.features.people import directory_api as directory
from service.features.people import role_api as roles
from service.features.permissions import api as grants
from service.features.rulebook import api as rulebook
from service.features.webhooks import api as webhooks
from service.features.whatif import api as whatif

api = APIRouter(prefix="/api/v1")
for _router in (  # routes are matched in this order; the most frequent come first
    suspensions.decisions,
    calls.router,
    preflight.router,
    sessions.opening,
    sessions.closing,
    runs.agents,
    runs.router,
    trails.router,
    external_events.router,
    calls.execution,
    suspensions.router,
    suspensions.inquiries,
    forecast.router,
    discussions.comments,
    notes.notes,
    previews.previews,
    forwards.forwards,
    outsiders.invitations,
    discussions.attachments,
    freezes.router,
    operate.diagnostics,
    operate.activity,
    whatif.trials,
    operate.channels,
    history.router,
    archive.router,
    insights.reports,
    evidence.router,
    evidence.exports,
    overrides.router,
    control.drills,
    control.second_look,
    whatif.replays,
    rulebook.policy,
    whatif.shadows,
    grants.router,
    grants.mandates,
    webhooks.events,
    webhooks.endpoints,
    webhooks.failures,
    webhooks.senders,
    people.account,
    people.passwords,
    people.reviewers,
    people.keys,
    roles.router,
    break_glass.router,
    directory.groups,
    directory.own_contacts,
    directory.contacts,
    saved_views.account,
    directory.own_duty,
    directory.duty,
    directory.absences,
    directory.who,
):
    api.include_router(_router)

health_router = health.router
metrics_router = metrics.router
