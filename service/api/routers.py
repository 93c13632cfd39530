"""The routers of the API."""

from fastapi import APIRouter

from service.api import (
    agents,
    calls,
    execution,
    external_events,
    freezes,
    health,
    inquiries,
    runs,
    sessions,
    suspensions,
    trails,
    webhooks,
)
from service.api.discussions import attachments, comments
from service.api.operations import activity, channels, diagnostics, drills, metrics, reports, second_look, trials
from service.api.people import accounts, administration, contacts, duty, groups, saved_views, who
from service.api.policy import grants, mandates, replays, shadows, versions

api = APIRouter(prefix="/api/v1")
for _router in (  # routes are matched in this order; the most frequent come first
    suspensions.decisions,
    calls.router,
    sessions.opening,
    sessions.closing,
    agents.router,
    runs.router,
    trails.router,
    external_events.router,
    execution.router,
    suspensions.router,
    inquiries.router,
    comments.router,
    attachments.router,
    freezes.router,
    diagnostics.router,
    activity.router,
    trials.router,
    channels.router,
    reports.router,
    drills.router,
    second_look.router,
    replays.router,
    versions.router,
    shadows.router,
    grants.router,
    mandates.router,
    webhooks.events,
    webhooks.endpoints,
    webhooks.failures,
    webhooks.senders,
    accounts.account,
    accounts.reviewers,
    administration.reviewers,
    administration.keys,
    groups.router,
    contacts.account,
    contacts.reviewers,
    saved_views.account,
    duty.account,
    duty.reviewers,
    duty.absences,
    who.router,
):
    api.include_router(_router)

health_router = health.router
metrics_router = metrics.router
