"""The page of the cases beside the rules: what each expects, and whether it ends so under the rules in force."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import Response

from sayso.core.policy.engine import Policy
from sayso.core.policy.files.yaml_documents import MAX_BYTES
from sayso.core.text.language import _
from sayso.features.whatif.cases import CaseResult, find_cases_file, read_cases, run_cases
from service.policy.evaluations import judge_blocking
from service.web.form_posts import RecordedRoute
from service.web.pages import show
from service.web.sessions import SignedIn, wiring_of
from service.wiring import Wiring

router = APIRouter(route_class=RecordedRoute)


class CasesFound(NamedTuple):
    """How the cases end, and the faults that keep others from being run."""

    results: Sequence[CaseResult]
    faults: Sequence[str]

    @property
    def wrong(self) -> int:
        """The number of cases that are not as expected."""
        return sum(bool(result.fault) for result in self.results)


@router.get("/rules/-/cases")
async def read(request: Request, visitor: SignedIn) -> Response:
    """Show the cases; those that are not as expected come first."""
    cases = await find_cases(wiring_of(request))
    results = sorted(cases.results, key=lambda result: not result.fault)
    return await show(
        request, visitor, "pages/rule_cases.html", title=_("Cases"), cases=cases._replace(results=results)
    )


async def find_cases(wiring: Wiring) -> CasesFound:
    """Return how the cases of this service's file end; none where the rules in force are of another file."""
    source = wiring.rules.read_source()
    if source is None:
        return CasesFound((), ())
    return await asyncio.to_thread(_run, wiring.rules.policy(), *source)


def _run(policy: Policy, path: Path, raw: bytes) -> CasesFound:
    cases, faults = read_cases(raw, path.name)
    beside = find_cases_file(path)
    if beside.is_file():
        with beside.open("rb") as file:
            more, others = read_cases(file.read(MAX_BYTES + 1), beside.name)
        cases, faults = cases + more, faults + others
    return CasesFound(judge_blocking(lambda: run_cases(policy, cases)), faults)
