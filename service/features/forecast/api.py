"""The forecast of items that wait: a route, and its lines on the page of a run."""

from collections.abc import Iterator

from fastapi import APIRouter

from sayso.core.records.suspensions import Status
from sayso.core.sentences.deadlines import Moment, Sentence, compose
from sayso.core.text.language import _
from sayso.core.text.numbers import write_number
from sayso.wire.models import moment
from sayso.wire.people import ForecastPage, ForecastView, LikelyView
from service.edge.api.dependencies import Caller, Parts, SuspensionId, find_suspension
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import READS
from service.edge.web.additions import RunPage
from service.features.forecast.forecasting import Forecast, forecast_suspension

router = APIRouter(prefix="/suspensions", tags=["suspensions"], route_class=SignedInRoute)


@router.get("/{suspension_id}/forecast", operation_id="forecastSuspension", responses=READS)
async def forecast(suspension_id: SuspensionId, caller: Caller, parts: Parts) -> ForecastPage:
    """Say when each open item will probably be decided and by whom, from how long such items waited in 30 days.

    Time counts while one of those who may decide is at work. Agents see no people.
    """
    record, now_ms = await find_suspension(parts, caller.owner, suspension_id)
    if caller.owner is not None:
        await parts.intake.admit(caller.owner)
    items = await forecast_suspension(parts, record, now_ms) if record.status is Status.PENDING else []
    return ForecastPage(items=[_view(item, with_people=caller.owner is None) for item in items])


def _view(item: Forecast, *, with_people: bool) -> ForecastView:
    return ForecastView(
        item_id=item.item_id,
        tool=item.tool,
        measured=item.measured,
        of_tool=item.of_tool,
        overdue=item.overdue,
        half_by=moment(item.half_by_ms),
        most_by=moment(item.most_by_ms),
        deadline_at=moment(item.deadline_at_ms),
        people=[
            LikelyView(name=likely.name, share=likely.share, at_work_from=moment(likely.at_work_ms))
            for likely in item.people
        ]
        if with_people
        else None,
    )


async def add_to_run(page: RunPage) -> dict[str, object]:
    """Return the forecast of what waits in a run."""
    last = page.records[-1] if page.records else None
    if last is None or last.status is not Status.PENDING:
        return {"forecasts": []}
    now_ms = await page.wiring.schedule.now_ms()
    forecasts = await forecast_suspension(page.wiring, last, now_ms)
    return {"forecasts": [(item.tool, [*_describe(item, now_ms)]) for item in forecasts if item.measured]}


def _describe(item: Forecast, now_ms: int) -> Iterator[Sentence]:
    count = write_number(item.measured)
    basis = _("%(count)s such calls", count=count) if item.of_tool else _("%(count)s calls of all tools", count=count)
    if item.overdue:
        yield compose(_("It has waited longer than nearly all of %(calls)s."), calls=basis)
    elif item.half_by_ms is None:
        yield compose(_("Nobody who may decide is at work in the next two weeks."))
    elif item.half_by_ms >= item.deadline_at_ms:
        yield compose(
            _("Its deadline at %(end)s probably comes first: of %(calls)s, half were decided later."),
            end=Moment(item.deadline_at_ms),
            calls=basis,
        )
    elif item.most_by_ms is None:
        yield compose(
            _("Probably decided by %(half)s (one call in two), as %(calls)s were."),
            half=Moment(item.half_by_ms),
            calls=basis,
        )
    else:
        yield compose(
            _("Probably decided by %(half)s (one call in two) or %(most)s (nine in ten), as %(calls)s were."),
            half=Moment(item.half_by_ms),
            most=Moment(item.most_by_ms),
            calls=basis,
        )
    for person in item.people:
        facts: dict[str, str] = {"person": person.name, "share": f"{person.share:.0%}"}
        if person.at_work_ms > now_ms:
            message = _("%(person)s decided %(share)s of them, and is at work again at %(time)s.")
            yield compose(message, **facts, time=Moment(person.at_work_ms))
        else:
            yield compose(_("%(person)s decided %(share)s of them."), **facts)
