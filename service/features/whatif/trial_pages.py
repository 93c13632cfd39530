"""Pages that try rules on one call, on the cases beside them and on recorded calls. Nothing runs or is recorded."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject, parse_json
from sayso.core.policy.engine import Policy
from sayso.core.policy.files.cases import find_cases_file, read_cases
from sayso.core.policy.files.yaml_documents import MAX_BYTES
from sayso.core.sentences.items import describe_resemblance
from sayso.core.sentences.rules import describe_decision
from sayso.core.text.language import _, mark
from sayso.core.text.redaction import redact
from sayso.core.text.summaries import Summary, summarize, write_pretty
from sayso.errors import InvalidInput, SaysoError
from sayso.features.whatif.cases import CaseResult, run_cases
from sayso.features.whatif.explaining import Match, Trial, TrialCall
from sayso.features.whatif.reevaluation import Changed, Comparison, RecordedCall, compare
from sayso.features.whatif.text import describe_trial
from sayso.runner.agents import AgentManifest
from sayso.wire.rulebook import Effect
from service.core.operations.known_names import find_known, read_manifests
from service.core.policy.evaluations import judge_blocking
from service.core.wiring import Wiring
from service.edge.web.pages import receive, show
from service.edge.web.sessions import Post, RecordedRoute, SignedIn, Visitor, wiring_of
from service.features.whatif.trials import MOST_CALLS, find_definition, judge_again, read_past, read_recorded, try_call

_PAGE = "pages/rule_trial.html"
_NAME_CHARS = 200

router = APIRouter(route_class=RecordedRoute)

Text = Annotated[str, Query(max_length=_NAME_CHARS)]


class TrialForm(NamedTuple):
    """The call of the form; `item` is `<suspension>/<item>`, whose run and facts the call then has."""

    agent: str = ""
    tool: str = ""
    args: str = ""
    step: str = ""
    item: str = ""


class Outcome(NamedTuple):
    """The result: what would happen, why, and a line for each rule."""

    effect: str
    reason: str
    rule_id: str | None
    error: str
    resemblance: str
    lines: Sequence[tuple[Trial, str]]

    @property
    def others(self) -> Sequence[tuple[Trial, str]]:
        """The rules for other tools, and disabled ones."""
        return [(trial, words) for trial, words in self.lines if _is_other(trial)]

    @property
    def near(self) -> Sequence[tuple[Trial, str]]:
        """The rules that could have been about the call."""
        return [(trial, words) for trial, words in self.lines if not _is_other(trial)]


def _is_other(trial: Trial) -> bool:
    differs = trial.match is Match.DIFFERS and trial.part in ("tool", "subjects")
    return differs or trial.match is Match.DISABLED


@router.get("/rules/-/try")
async def read(request: Request, visitor: SignedIn, agent: Text = "", tool: Text = "", item: Text = "") -> Response:
    """Show the form: empty, with the fields of a tool, or with the call of a past item."""
    wiring = wiring_of(request)
    form = TrialForm(agent=agent.strip(), tool=tool.strip(), item=item)
    manifests = await read_manifests(wiring)
    if item:
        past = await read_past(wiring, item)
        record, args = past.record, write_pretty(past.args)
        form = form._replace(agent=record.run.agent, tool=past.item.tool.name, args=args, step=str(record.step))
    elif form.tool:
        form = _fill(form, manifests)
    return await show(request, visitor, _PAGE, **_describe(form, manifests))


@router.post("/rules/-/try")
async def try_form(request: Request, visitor: SignedIn) -> Response:
    """Try the call of the form. A trial changes nothing; it is sent as a form so that no log has its arguments."""
    wiring = wiring_of(request)
    manifests = await read_manifests(wiring)

    async def gather(post: Post) -> dict[str, Any]:
        return _describe(_read_form(post), manifests)

    async with receive(request, visitor, _PAGE, gather) as post:
        form = _read_form(post)
        if "fill" in post:
            return await show(request, visitor, _PAGE, **_describe(_fill(form, manifests), manifests))
        if not form.tool:
            raise InvalidInput(_("Enter the name of a tool."))
        if form.step and not (form.step.isascii() and form.step.isdigit() and 0 < len(form.step) < 7):
            raise InvalidInput(_("Enter the step as a number from 1."))
        step = max(1, int(form.step or 1))
        try:
            value = parse_json(form.args.strip() or "{}")
        except SaysoError as error:
            raise InvalidInput(error.message.replace("The body", "The text of the arguments", 1)) from error
        if not isinstance(value, dict):
            raise InvalidInput(_('The arguments are no JSON object. Write them as {"amount": 250}.'))
        call = TrialCall(tool=form.tool, agent=form.agent, args=value, step=step)
        past = await read_past(wiring, form.item) if form.item else None
        (decision, trials), scrub = await try_call(wiring, manifests, call, past)
        tried = Outcome(
            effect=describe_decision(decision),
            reason=scrub(decision.reason),
            rule_id=decision.policy_id,
            error=scrub(decision.error or ""),
            resemblance=describe_resemblance(decision.resembles),
            lines=[(trial, scrub(describe_trial(trial))) for trial in trials],
        )
        return await show(request, visitor, _PAGE, **{**_describe(form, manifests), "tried": tried})


def _read_form(post: Post) -> TrialForm:
    texts = {name: post.get(name, "").strip()[:_NAME_CHARS] for name in ("agent", "tool", "step", "item")}
    return TrialForm(**texts, args=post.get("args", ""))


def _fill(form: TrialForm, manifests: dict[str, AgentManifest]) -> TrialForm:
    definition = find_definition(manifests, form.agent, form.tool)
    return form._replace(args=write_pretty(sketch_args(definition.parameters) if definition is not None else {}))


def _describe(form: TrialForm, manifests: dict[str, AgentManifest]) -> dict[str, Any]:
    tools = dict.fromkeys(tool.name for manifest in manifests.values() for tool in manifest.tools)
    return {"title": _("Try a call"), "form": form, "agents": sorted(manifests), "tools": sorted(tools), "tried": None}


def sketch_args(schema: JsonObject) -> JsonObject:
    """Return arguments to begin with: every property of the schema with its default, its first choice or a blank."""
    properties = schema.get("properties")
    return {name: _sketch(child) for name, child in properties.items()} if isinstance(properties, dict) else {}


def _sketch(schema: JsonValue) -> JsonValue:
    if not isinstance(schema, dict):
        return None
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    for key in ("examples", "enum"):
        choices = schema.get(key)
        if isinstance(choices, list) and choices:
            return choices[0]
    kind = schema.get("type")
    blanks: dict[str, JsonValue] = {"string": "", "number": 0, "integer": 0, "boolean": False, "array": []}
    return sketch_args(schema) if kind == "object" else blanks.get(str(kind))


class CasesFound(NamedTuple):
    """How the cases end, and the faults that keep others from being run."""

    results: Sequence[CaseResult]
    faults: Sequence[str]

    @property
    def wrong(self) -> int:
        return sum(bool(result.fault) for result in self.results)


@router.get("/rules/-/cases")
async def show_cases(request: Request, visitor: SignedIn) -> Response:
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


MOST_ROWS = 200  # the limit of listed calls of one kind of change; the count is of all
_EFFECTS = {Effect.ALLOWED: mark("allowed"), Effect.ASKED: mark("asked"), Effect.DENIED: mark("denied")}
_FILE = "draft"
_DRAFT_PAGE = "pages/rule_draft.html"


class CallRow(NamedTuple):
    """A recorded call in a list, with secrets masked."""

    href: str
    tool: str
    summary: Summary
    agent: str
    at_ms: int
    verdict: str
    before: str
    now: str
    reason: str


@dataclass(frozen=True)
class ChangeGroup:
    """Calls with the same change; `denied` counts those that people denied."""

    before: str
    now: str
    count: int
    denied: int
    risky: bool
    rows: Sequence[CallRow]


@dataclass(frozen=True)
class Replay:
    """What a draft would have done with the recorded calls."""

    count: int
    same: int
    changes: Sequence[ChangeGroup]
    missing: Sequence[tuple[str, int, Sequence[CallRow]]]

    @property
    def changed(self) -> int:
        return sum(change.count for change in self.changes)


@router.get("/rules/-/draft")
async def read_draft(request: Request, visitor: SignedIn) -> Response:
    """Show the form, with the rules of this service's file to begin with."""
    source = wiring_of(request).rules.read_source()
    text = source[1].decode("utf-8-sig") if source is not None else ""
    return await show(request, visitor, _DRAFT_PAGE, **await _describe_draft({"text": text}))


@router.post("/rules/-/draft")
async def try_draft(request: Request, visitor: SignedIn) -> Response:
    """Check the draft, and judge the last recorded calls again by it. Nothing is saved."""
    async with receive(request, visitor, _DRAFT_PAGE, _describe_draft) as post:
        context = {**await _describe_draft(post), **await _try_draft(request, visitor, _read_draft(post))}
        return await show(request, visitor, _DRAFT_PAGE, **context)


def _read_draft(post: Post) -> str:
    return post.get("text", "").replace("\r\n", "\n")


async def _try_draft(request: Request, visitor: Visitor, text: str) -> dict[str, Any]:
    if not text.strip():
        raise InvalidInput(_("Paste the rules to try."))
    wiring = wiring_of(request)
    known, evaluations = await find_known(wiring), wiring.desk.evaluations
    lists = await asyncio.to_thread(wiring.rulebook.read_lists)
    checked = await evaluations.check_rules(text, _FILE, known, lists=lists, caller=visitor.name)
    if checked.faults:
        return {"checked": checked}
    calls = await read_recorded(wiring.runs, wiring.desk.suspensions)
    judged = await judge_again(evaluations, text, _FILE, calls, known, lists=lists, caller=visitor.name)
    return {"checked": checked, "replay": await asyncio.to_thread(lambda: _summarize(compare(calls, judged)))}


async def _describe_draft(post: Post) -> dict[str, Any]:
    return {"title": _("Try a draft"), "draft": _read_draft(post), "checked": None, "replay": None, "most": MOST_CALLS}


def _summarize(comparison: Comparison) -> Replay:
    changes = [
        ChangeGroup(
            before=_(_EFFECTS[before]),
            now=_(_EFFECTS[now]),
            count=len(calls),
            denied=sum(entry.call.verdict == "denied" for entry in calls),
            risky=now is Effect.ALLOWED,
            rows=[_row(entry.call, entry) for entry in calls[:MOST_ROWS]],
        )
        for (before, now), calls in comparison.changed.items()
    ]
    missing = [(_(fact), len(calls), [*map(_row, calls[:MOST_ROWS])]) for fact, calls in comparison.missing.items()]
    same = comparison.same.total()
    count = same + sum(change.count for change in changes) + sum(number for _fact, number, _calls in missing)
    return Replay(count, same, changes, missing)


def _row(call: RecordedCall, changed: Changed | None = None) -> CallRow:
    redacted = redact(call.event.tool_args, None, call.secrets)
    now = changed.now if changed is not None else None
    return CallRow(
        href=f"/items/{call.suspension_id}/{call.item_id}" if call.item_id else f"/runs/{call.event.run_id}",
        tool=call.event.tool_name or "",
        summary=summarize(redacted.args),
        agent=call.event.agent,
        at_ms=call.at_ms,
        verdict=call.verdict,
        before=call.rule_id or "",
        now=(now.rule_id or "") if now is not None else "",
        reason=redacted.scrub(now.error or now.reason) if now is not None else "",
    )
