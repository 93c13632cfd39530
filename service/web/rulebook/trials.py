"""A call tried on the rules in force: which rule decides, and why the others do not. Nothing runs or is recorded."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import JsonValue

from sayso.canonical_json import JsonObject, parse_json
from sayso.errors import InvalidInput, SaysoError
from sayso.policy.analysis.explaining import Explanation, Match, Trial, explain
from sayso.policy.engine import PolicyEvent
from sayso.policy.external import describe_item
from sayso.policy.memory.recalling import hide_amounts
from sayso.records.items import Item
from sayso.records.suspensions import SuspensionRecord
from sayso.records.tool_calls import ToolDefinition
from sayso.runner.agents import AgentManifest
from sayso.sentences.items import describe_resemblance
from sayso.sentences.rules import describe_decision, describe_trial
from sayso.text.language import _
from sayso.text.redaction import Redacted, redact
from sayso.text.summaries import write_pretty
from sayso.transitions.deciding import find_item
from service.operations.masking import find_secrets
from service.operations.rule_checks import read_manifests
from service.web.errors import show_page_again
from service.web.form_posts import Post, check_session, describe_refusal, read_form
from service.web.pages import show
from service.web.sessions import SignedIn, wiring_of
from service.wiring import Wiring

_PAGE = "pages/rule_trial.html"
_NAME_CHARS = 200

router = APIRouter()

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
class Tried:
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
        record, found = await _read_item(wiring, item)
        definition = await wiring.runs.definition(found.tool.definition)
        args = write_pretty(_redact(found, definition).args)
        form = replace(form, agent=record.run.agent, tool=found.tool.name, args=args, step=str(record.step))
    elif form.tool:
        form = _fill(form, manifests)
    return await show(request, visitor, _PAGE, **_describe(form, manifests))


@router.post("/rules/-/try")
async def try_call(request: Request, visitor: SignedIn) -> Response:
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


async def _try(wiring: Wiring, form: TrialForm, manifests: dict[str, AgentManifest]) -> Tried:
    if not form.tool:
        raise InvalidInput(_("Enter the name of a tool."))
    args, policy = _read_args(form.args), wiring.rules.policy()
    definition = _find_definition(manifests, form)
    if form.item:
        record, item = await _read_item(wiring, form.item)
        known, paths = await wiring.runs.definition(item.tool.definition), item.terms.secrets
        event = describe_item(record, item, item.tool.args if args == _redact(item, known).args else args)
        event = event.model_copy(update={"tool_name": form.tool, "agent": form.agent})
    else:
        known, paths = definition, ()
        event = _make_event(form, args, manifests.get(form.agent))
    secrets = redact(event.tool_args, known.parameters if known is not None else None, paths)
    event = event.model_copy(update={"memory": await wiring.desk.suspensions.recall([*policy.list_wanted(event)])})
    return await asyncio.to_thread(lambda: _write(explain(policy, event, definition), event, secrets))


def _fill(form: TrialForm, manifests: dict[str, AgentManifest]) -> TrialForm:
    """Return the form with arguments to begin with, from the schema of the tool."""
    definition = _find_definition(manifests, form)
    return replace(form, args=write_pretty(sketch_args(definition.parameters) if definition is not None else {}))


def _make_event(form: TrialForm, args: JsonObject, manifest: AgentManifest | None) -> PolicyEvent:
    if form.step and not (form.step.isascii() and form.step.isdigit() and len(form.step) < 7):
        raise InvalidInput(_("Enter the step as a number from 1."))
    return PolicyEvent(
        run_id="run_trial",
        step=int(form.step or 1),
        agent=form.agent,
        tool_name=form.tool,
        tool_args=args,
        subagent_name="" if manifest is not None else None,  # unknown of an agent outside
        context=manifest.context if manifest is not None else {},
    )


def _write(found: Explanation, event: PolicyEvent, secrets: Redacted) -> Tried:
    decision = found.decision
    return Tried(
        effect=describe_decision(decision),
        reason=secrets.scrub(decision.reason),
        rule_id=decision.policy_id,
        error=secrets.scrub(decision.error or ""),
        resemblance=describe_resemblance(decision.resembles),
        lines=[(trial, secrets.scrub(describe_trial(_mask(trial, event, secrets)))) for trial in found.trials],
    )


def _mask(trial: Trial, event: PolicyEvent, secrets: Redacted) -> Trial:
    masked = {name: value for name, value in secrets.args.items() if trial.saw.get(name) == event.tool_args[name]}
    saw = {name: masked.get(name, value) for name, value in trial.saw.items()}
    return trial._replace(saw=saw, remembered=hide_amounts(trial.remembered, secrets.args))


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


async def _read_item(wiring: Wiring, name: str) -> tuple[SuspensionRecord, Item]:
    suspension_id, _, item_id = name.partition("/")
    record = (await wiring.desk.suspensions.read(suspension_id)).record
    return record, find_item(record, item_id)


def _redact(item: Item, definition: ToolDefinition | None) -> Redacted:
    return find_secrets(item, definition.parameters if definition is not None else None)


def _find_definition(manifests: dict[str, AgentManifest], form: TrialForm) -> ToolDefinition | None:
    """Return the tool of the agent, or without an agent the first tool of that name."""
    known = [manifests[form.agent]] if form.agent in manifests else [] if form.agent else manifests.values()
    return next((tool for one in known for tool in one.tools if tool.name == form.tool), None)


def _describe(form: TrialForm, manifests: dict[str, AgentManifest]) -> dict[str, Any]:
    tools = dict.fromkeys(tool.name for one in manifests.values() for tool in one.tools)
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
    return {name: _sketch(one) for name, one in properties.items()} if isinstance(properties, dict) else {}


def _sketch(schema: JsonValue) -> JsonValue:
    if not isinstance(schema, dict):
        return None
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    for key in ("examples", "enum"):
        found = schema.get(key)
        if isinstance(found, list) and found:
            return found[0]
    kind = schema.get("type")
    blanks: dict[str, JsonValue] = {"string": "", "number": 0, "integer": 0, "boolean": False, "array": []}
    return sketch_args(schema) if kind == "object" else blanks.get(str(kind))
