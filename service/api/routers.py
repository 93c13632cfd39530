"""The routers of the API."""

from fastapi import APIRouter

from service.api import (
    accounts,
    agents,
    calls,
    diagnostics,
    execution,
    external_events,
    freezes,
    health,
    people,
    runs,
    sessions,
    suspensions,
    trails,
)

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
    freezes.router,
    diagnostics.router,
    accounts.account,
    accounts.reviewers,
    people.reviewers,
    people.keys,
):
    api.include_router(_router)

health_router = health.router
