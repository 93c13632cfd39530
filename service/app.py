"""The ASGI app: the API, the pages, and one error handler for both."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp, Scope
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from sayso import __version__
from sayso.errors import SaysoError, Unavailable
from service.assembly import open_process
from service.channels.kinds import KINDS, open_channels
from service.core.operations.known_names import log_warnings
from service.core.operations.open_items import file_open_items
from service.core.operations.states import note_settings
from service.core.settings import Settings
from service.edge.api import calls, runs, suspensions
from service.edge.api.aap.app import RequestIds, create_aap, is_aap_path
from service.edge.api.aap.problems import PREFIX as AAP
from service.edge.api.aap.problems import render_refusal
from service.edge.api.problems import describe_problem, problem_response
from service.edge.api.quick_routes import Guard, Quick, QuickRoutes
from service.edge.http.assets import Assets
from service.edge.http.middleware import NO_TELEMETRY, Draining, Guards
from service.edge.http.openapi import join_routes, name_methods, serve_document
from service.edge.http.tracing import Traced
from service.edge.web.pages import render_problem
from service.features.control.drills import drills_of
from service.features.operate.metrics import Readings
from service.features.operate.pages import Checks
from service.features.pages import ADDITIONS, PAGES
from service.features.pages import router as pages
from service.features.routers import api, health_router, metrics_router
from service.features.scim.mount import PREFIX as SCIM
from service.features.scim.mount import scim
from service.features.webhooks.inbound import router as webhook_router
from service.features.whatif.replays import RuleReplays

VERSION = __version__
_ABOUT = (
    "The approval desk for AI agents. Agents start runs and read them; reviewers decide items. Bodies are "
    "strict JSON; every error is a problem (RFC 9457) whose `detail` says what to do; writes take an `Idempotency-Key`."
)
_MACHINES = ("/api", "/scim", "/channels", "/hooks", "/sdk", "/healthz", "/readyz", "/metrics")
_SERVED_ANYWAY = ("/healthz", "/readyz", "/metrics", "/static/")
_CHANNELS_PAGE = "/channels"  # the routes of providers are below it
_SUSPENSIONS = "/api/v1/suspensions"  # these requests may include the state of a framework's run, in base64
_PROVIDERS = (kind.router for kind in KINDS.values() if kind.router is not None)
_ROUTES = join_routes(api, health_router, metrics_router, webhook_router, *_PROVIDERS, pages)
# Routes that the OpenAPI file omits: pages, metrics, and HEAD.
_UNLISTED = tuple(
    route for router in (*PAGES, health_router, metrics_router) for route in router.routes if isinstance(route, Route)
)
_QUICK = Quick(
    api.prefix,
    (suspensions.decisions, suspensions.router, calls.router, calls.execution, runs.router),
    ("decideItem", "createSuspension", "getSuspension", "redeemItem", "reportOutcome", "getRun", "startRun"),
)
_FILED_WITHIN_S = 2.0  # how long the start waits for the index of open items; a large one is built beside requests
_LOG = structlog.get_logger(__name__)


class _App(FastAPI):
    """An app that can serve frequent operations before its middleware."""

    _guard: Guard | None = None
    access_log = False

    def quicken(self, guard: Guard) -> None:
        """Serve the frequent operations first, within `guard`."""
        self._guard = guard

    def build_middleware_stack(self) -> ASGIApp:
        stack = super().build_middleware_stack()
        served = QuickRoutes(self, stack, _QUICK, self._guard) if self._guard is not None else stack
        return Draining(Traced(served, access_log=self.access_log, prefix=api.prefix), self.state)


def create_app(settings: Settings, weak_durability: str | None = None, *, quick: bool = True) -> FastAPI:
    """Return the app; pages show `weak_durability`. Unless `quick`, FastAPI serves the frequent operations, too."""
    app = _App(
        title="Sayso",
        version=VERSION,
        description=_ABOUT,
        lifespan=lambda app: _serve(app, settings),
        openapi_url=None,
        docs_url=None,  # its page loads external scripts, which the content security policy forbids
        redoc_url=None,
        redirect_slashes=False,
        routes=[*_ROUTES],
        telemetry=NO_TELEMETRY,
        exception_handlers=dict.fromkeys((SaysoError, RequestValidationError, HTTPException), _answer),
    )
    app.access_log = settings.access_log
    serve_document(app, "/api/openapi.json")
    app.state.weak_durability, app.state.additions = weak_durability, ADDITIONS
    app.mount(AAP, create_aap(app.state, VERSION))
    app.mount(SCIM, scim)
    app.mount("/static", Assets())
    guard = partial(
        Guards,
        limit_bytes=settings.body_limit_bytes,
        answer=answer_error,
        wider={_SUSPENSIONS: settings.body_limit_bytes + 4 * settings.state_limit_bytes // 3},
        forms=("/items/", "/sign-in", "/channels/slack/"),
        framed=("/items/",),
        secure=settings.secure_cookies,
        upload_bytes=settings.body_limit_bytes + 4 * settings.attachment_limit_bytes // 3,
        check=partial(_check_live, app),
    )
    app.add_middleware(guard)
    app.add_middleware(RequestIds)
    if settings.trusted_proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=list(settings.trusted_proxies))
    if quick:
        app.quicken(guard)
    return app


def _check_live(app: FastAPI, scope: Scope) -> None:
    """Raise `Unavailable` where the tenant's copy in this store is not live; probes and assets are served anyway."""
    if not scope["path"].startswith(_SERVED_ANYWAY):
        app.state.process.wiring.store.counts.check_live()


def begin_closing(app: FastAPI) -> None:
    """End all waiting requests and streams."""
    app.state.closing.set()
    app.state.process.watch.wake_all()


def answer_error(request: Request, error: Exception) -> Response:
    """Return an error as a problem for machines, or as a page for people."""
    if is_aap_path(request.url.path):
        return render_refusal(request, error)
    problem = describe_problem(error)
    if _is_for_machines(request):
        return problem_response(problem)
    try:
        return render_problem(request, problem)
    except Exception:  # noqa: BLE001 - a broken template must not hide the original error
        _LOG.exception("error_page_failed", detail=problem.detail)
        return problem_response(problem)


async def _answer(request: Request, error: Exception) -> Response:
    named = await name_methods(request, error, _UNLISTED)
    if _is_for_machines(request):
        return answer_error(request, named)
    return await asyncio.to_thread(answer_error, request, named)  # a page may show 250 kB of input


def _is_for_machines(request: Request) -> bool:
    path = request.url.path
    return path != _CHANNELS_PAGE and f"{path}/".startswith(tuple(f"{prefix}/" for prefix in _MACHINES))


@asynccontextmanager
async def _serve(app: FastAPI, settings: Settings) -> AsyncIterator[None]:
    async with open_process(settings) as process, process.wiring.rules.kept("service"):
        app.state.process = process
        drills_of(settings.drills)  # a faulty file is found now
        process.credentials.person_tokens.load()
        process.providers.load()
        app.state.channels = open_channels(settings).attach(process.wiring)
        with suppress(Unavailable):
            await process.tokens.check_store()
            await process.wiring.store.counts.compare()  # finds a move before the first request
            await note_settings(process.wiring)
        app.state.checks = Checks()
        app.state.readings = Readings(process.wiring, app.state.channels.by_name)
        app.state.rule_replays = RuleReplays(process.wiring)
        app.state.closing = asyncio.Event()
        listening = asyncio.create_task(process.watch.listen())
        checking = asyncio.create_task(log_warnings(process.wiring))
        filing = asyncio.create_task(file_open_items(process.wiring))
        await asyncio.wait((filing,), timeout=_FILED_WITHIN_S)
        try:
            yield
        finally:
            begin_closing(app)
            listening.cancel()
            checking.cancel()
            filing.cancel()
            await asyncio.gather(listening, checking, filing, return_exceptions=True)
            await app.state.rule_replays.aclose()
            await app.state.channels.aclose()
