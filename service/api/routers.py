"""Put the API's routes together."""

from fastapi import APIRouter

from service.api import accounts, agents, asks, freezes, health, people, runs, sessions, suspensions, trails
from service.api import diagnostics as examinations
from service.api import execution as consumptions
from service.api import external_events as tellings

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
