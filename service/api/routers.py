"""Put the API's routes together."""

from fastapi import APIRouter

from service.api import (
    accounts,
    agents,
    asks,
    consumptions,
    examinations,
    freezes,
    health,
    people,
    runs,
    sessions,
    suspensions,
    tellings,
    trails,
)

api = APIRouter(prefix="/api/v1")
for _router in (  # those first that everybody waits for: routes are tried in order
    suspensions.decisions,
    asks.router,
    sessions.opening,
    sessions.closing,
    agents.router,
    runs.router,
    trails.router,
    tellings.router,
    consumptions.router,
    suspensions.router,
    freezes.router,
    examinations.router,
    accounts.account,
    accounts.reviewers,
    people.reviewers,
    people.keys,
):
    api.include_router(_router)

health_router = health.router
