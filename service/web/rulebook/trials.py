"""A call tried on the rules in force: which rule decides, and why the others do not. Nothing runs or is recorded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject, parse_json
from sayso.core.sentences.items import describe_resemblance
from sayso.core.sentences.rules import describe_decision, describe_trial
from sayso.core.text.language import _
from sayso.core.text.summaries import write_pretty
from sayso.errors import InvalidInput, SaysoError
from sayso.features.whatif.explaining import Match, Trial, TrialCall
from sayso.runner.agents import AgentManifest
from service.operations.rule_checks import read_manifests
from service.operations.rule_trials import Tried, find_definition, read_past, try_call
from service.web.errors import show_page_again
from service.web.form_posts import Post, RecordedRoute, check_session, describe_refusal, read_form
from service.web.pages import show
from service.web.sessions import SignedIn, wiring_of
from service.wiring import Wiring

_PAGE = "pages/rule_trial.html"
_NAME_CHARS = 200

router = APIRouter(route_class=RecordedRoute)

Text = Annotated[str, Query(max_length=_NAME_CHARS)]


@dataclass(frozen=True)
class TrialForm:
    """The call of the form; `item` is `<suspension>/<item>`, whose run and facts the call then has."""

    agent: str = ""
    tool: str = ""
    args: str = ""
    step: str = ""
    item: str = ""


@dataclass(frozen=True)
class Outcome:
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
        form = replace(form, agent=record.run.agent, tool=past.item.tool.name, args=args, step=str(record.step))
    elif form.tool:
        form = _fill(form, manifests)
    return await show(request, visitor, _PAGE, **_describe(form, manifests))


@router.post("/rules/-/try")
async def try_form(request: Request, visitor: SignedIn) -> Response:
    """Try the call of the form. A trial changes nothing; it is sent as a form so that no log has its arguments."""
    wiring, post = wiring_of(request), await read_form(request)
    form = _read_form(post)
    manifests = await read_manifests(wiring)
    try:
        check_session(post, visitor)
        if "fill" in post:
            return await show(request, visitor, _PAGE, **_describe(_fill(form, manifests), manifests))
        tried = await _try(wiring, form, manifests)
    except SaysoError as error:
        context = {**_describe(form, manifests), "sentence": describe_refusal(error)}
        show_page_again(request, _PAGE, visitor=visitor, **context)
        raise
    return await show(request, visitor, _PAGE, **{**_describe(form, manifests), "tried": tried})


async def _try(wiring: Wiring, form: TrialForm, manifests: dict[str, AgentManifest]) -> Outcome:
    if not form.tool:
        raise InvalidInput(_("Enter the name of a tool."))
    if form.step and not (form.step.isascii() and form.step.isdigit() and 0 < len(form.step) < 7):
        raise InvalidInput(_("Enter the step as a number from 1."))
    step = max(1, int(form.step or 1))
    call = TrialCall(tool=form.tool, agent=form.agent, args=_read_args(form.args), step=step)
    past = await read_past(wiring, form.item) if form.item else None
    return _write(await try_call(wiring, manifests, call, past))


def _fill(form: TrialForm, manifests: dict[str, AgentManifest]) -> TrialForm:
    """Return the form with arguments to begin with, from the schema of the tool."""
    definition = find_definition(manifests, form.agent, form.tool)
    return replace(form, args=write_pretty(sketch_args(definition.parameters) if definition is not None else {}))


def _write(tried: Tried) -> Outcome:
    (decision, trials), scrub = tried
    return Outcome(
        effect=describe_decision(decision),
        reason=scrub(decision.reason),
        rule_id=decision.policy_id,
        error=scrub(decision.error or ""),
        resemblance=describe_resemblance(decision.resembles),
        lines=[(trial, scrub(describe_trial(trial))) for trial in trials],
    )


def _read_form(post: Post) -> TrialForm:
    texts = {name: post.get(name, "").strip()[:_NAME_CHARS] for name in ("agent", "tool", "step", "item")}
    return TrialForm(**texts, args=post.get("args", ""))


def _read_args(text: str) -> JsonObject:
    try:
        value = parse_json(text.strip() or "{}")
    except SaysoError as error:
        raise InvalidInput(error.message.replace("The body", "The text of the arguments", 1)) from error
    if not isinstance(value, dict):
        raise InvalidInput(_('The arguments are no JSON object. Write them as {"amount": 250}.'))
    return value


def _describe(form: TrialForm, manifests: dict[str, AgentManifest]) -> dict[str, Any]:
    tools = dict.fromkeys(tool.name for manifest in manifests.values() for tool in manifest.tools)
    return {
        "title": _("Try a call"),
        "sentence": "",
        "form": form,
        "agents": sorted(manifests),
        "tools": sorted(tools),
        "tried": None,
    }


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
