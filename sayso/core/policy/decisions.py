"""The decision of the rules on one event, the item that it asks for, and the trail event that records it.

A tool whose call is a question of the agent itself has `x-sayso-question` in its parameters: which arguments hold the
question, its context, its choices and the answer. Only tools registered by a worker may be questions, and a question
never replaces an approval that a rule asks for.
"""

from collections.abc import Mapping

from pydantic import ConfigDict, Field, JsonValue, ValidationError

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.counters.recalling import hide_amounts
from sayso.core.policy.functions.shorthands import mask_computed
from sayso.core.policy.rules import ASKING, Action, RequestPayload
from sayso.core.policy.strictness import STRICTNESS
from sayso.core.records.base import Immutable
from sayso.core.records.decisions import Actor, ActorKind, Verdict
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Answer, ItemDraft, ItemKind, ItemTool, PresetOutcome, Prompt
from sayso.core.records.judgements import Assessment, Charge, Remembered
from sayso.core.records.permissions import Grant, Learning, Mandate
from sayso.core.records.suspensions import Progress, Who
from sayso.core.records.terms import Fallback, FallbackAction, RuleTerms
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.core.text.redaction import list_secret_paths, redact

_POLICY = Actor(id="policy", kind=ActorKind.POLICY)
MAX_REASON_CHARS = 2000
MAX_REMEMBERED = 50
BESIDE = "candidate"  # the key of an event for what a candidate in shadow would have done
_EMPTY_PAYLOAD = RequestPayload()


class ShadowDecision(Immutable):
    """What a shadow rule would have decided if it were live; no action if it could not be evaluated, and the error."""

    rule_id: str
    action: Action | None = None
    error: str | None = None


class PolicyDecision(Immutable):
    """The decision of the rules on one event. `error` is what failed during evaluation.

    `in_doubt` is the strictest action that an event which could not be evaluated might have had. `resembles` are
    names in rules that look like the tool's name; their rules were tried too. Nothing lifts an `absolute` denial.
    `at_ms` is the time that the rules saw. `shadow` holds the shadow rules that would have decided. `computed` is what
    Sayso computed for the conditions of the rules behind the decision, by shorthand.

    `remembered` is what the counters of rules said. `charges` are what the call adds to them when it is let run, and
    `allowance` what it adds to those of the rule, or of the `grant` or `mandate` that allows it. Of a mandate the part
    that covers the call is kept; without any part, the call is outside of it. `learning` is set where a rule that asks
    learns grants.

    `near_miss` is the rule whose limit it used up, so that the same call once more would not be allowed.
    `assessment` is what the rule's assessor said; a `scrutinized` call is asked about because of it. `asked` is what
    asking about it adds to counters; a `restrained` call is denied because its rule does not ask about it again.
    """

    model_config = ConfigDict(revalidate_instances="always")

    action: Action
    reason: str
    request_payload: RequestPayload | None = None
    policy_id: str | None = None
    matched_rules: tuple[str, ...] = ()
    terms: RuleTerms = RuleTerms()
    rule_version: str
    error: str | None = None
    in_doubt: Action | None = None
    resembles: tuple[str, ...] = ()
    absolute: bool = False
    at_ms: int | None = None
    shadow: tuple[ShadowDecision, ...] = ()
    computed: JsonObject = Field(default_factory=dict)
    remembered: tuple[Remembered, ...] = ()
    charges: tuple[Charge, ...] = ()
    allowance: tuple[Charge, ...] = ()
    grant: Grant | None = None
    learning: Learning | None = None
    near_miss: str | None = None
    assessment: Assessment | None = None
    scrutinized: bool = False
    asked: tuple[Charge, ...] = ()
    restrained: bool = False
    mandate: Mandate | None = None

    @property
    def granted_by(self) -> str:
        """The id of the grant or mandate that allows the call; empty without one."""
        permission = self.grant or self.mandate
        return permission.id if permission is not None and self.action is Action.ALLOW else ""

    @property
    def due_charges(self) -> tuple[Charge, ...]:
        """All charges of the call if it starts under this decision."""
        return self.charges + self.allowance if self.action is Action.ALLOW else self.charges


def stricter(a: PolicyDecision, b: PolicyDecision) -> PolicyDecision:
    """Return the stricter of two decisions; `a` when they are equally strict."""
    return b if STRICTNESS[b.action] > STRICTNESS[a.action] else a


_UNCONFIRMABLE = (
    "The person for whom the agent acts must confirm this call, and no signed token names them. "
    "Send one as Sayso-On-Behalf-Of."
)


def without_confirmation(terms: RuleTerms) -> RuleTerms:
    """Return the terms without the acting user; somebody must then approve."""
    quorum = terms.quorum if terms.quorum.approve else terms.quorum.model_copy(update={"approve": 1})
    return terms.model_copy(update={"confirm_by": None, "quorum": quorum})


def settle_confirmation(decision: PolicyDecision, who: Who | None) -> PolicyDecision:
    """Return the decision with the name of the person who must confirm; a denial where no token names them.

    What the rules decide alone needs no confirmation.
    """
    terms = decision.terms
    if terms.confirm_by is None:
        return decision
    person = who.person.casefold() if who is not None and who.person else None
    if decision.action in ASKING and person is not None:
        return decision.model_copy(update={"terms": terms.model_copy(update={"confirm_by": person})})
    update: dict[str, object] = {"terms": without_confirmation(terms)}
    if decision.action in ASKING:
        update |= {"action": Action.DENY, "reason": _UNCONFIRMABLE, "request_payload": None}
    return decision.model_copy(update=update)


def settle_veto(decision: PolicyDecision, *, reversible: bool) -> PolicyDecision:
    """Return the decision as it is for a call that can be undone; otherwise people decide before it runs."""
    terms = decision.terms
    if terms.veto is None or reversible or decision.action is not Action.ALLOW:
        return decision
    reason = f"{decision.reason.removesuffix('.')}, with a veto of {terms.veto}, and nothing here can undo this call."
    update = {"action": Action.REQUEST_APPROVAL, "reason": reason, "terms": terms.model_copy(update={"veto": None})}
    return decision.model_copy(update=update)


def find_misplaced(definition: ToolDefinition, decision: PolicyDecision) -> str | None:
    """Return why no call of the tool can take the value that a rule asks for, or None."""
    target, schema = target_of(decision), definition.parameters
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    if target is None or not closed or target in definition.properties:
        return None
    return (
        f"The rule {decision.policy_id} asks for a value for {target!r}, which {definition.name} does not take. "
        "Correct the rule's target_arg, or add the argument to the tool."
    )


def describe_judged(
    call: ToolCall, decision: PolicyDecision, definition: ToolDefinition, beside: JsonObject | None = None
) -> Event:
    """Return the event that records a decision, without secrets; `beside` is what a candidate would have done."""
    mandate = decision.mandate
    sample = decision.terms.sample if decision.action is Action.ALLOW else None
    looked = sample is not None and sample.after is not None
    stated: dict[str, JsonValue] = {
        "error": decision.error or None,
        "resembles": [*decision.resembles] or None,
        "at_ms": decision.at_ms,
        "absolute": decision.absolute or None,
        "would_allow": [*decision.learning.would_allow] or None if decision.learning is not None else None,
        "assessment": decision.assessment.model_dump(mode="json") if decision.assessment is not None else None,
        "near_miss": decision.near_miss,
        "mandate": mandate.model_dump(mode="json", exclude_defaults=True) if mandate is not None else None,
        "shadow": [entry.model_dump(mode="json", exclude_none=True) for entry in decision.shadow] or None,
        "second_look": sample.after if sample is not None else None,
        "reviewers": [*decision.terms.reviewers] if looked else None,
        BESIDE: beside or None,
        "computed": _mask_computed(call, decision, definition) or None,
    }
    rules: JsonObject = {"policy_id": decision.policy_id, "matched_rules": [*decision.matched_rules]}
    rules["rule_version"] = decision.rule_version
    rules |= {name: value for name, value in stated.items() if value is not None}
    # Arguments of an item are recorded with its decision; until then the event stays small.
    if decision.action in ASKING and not decision.remembered:
        return describe_action(call, decision.action, decision.reason, rules)
    schema = definition.parameters if definition.traits.has_secrets else None
    masked = redact(call.args, schema, decision.terms.secrets).args
    if decision.remembered:
        remembered = hide_amounts(decision.remembered, masked)
        rules["remembered"] = [entry.describe() for entry in remembered[:MAX_REMEMBERED]]
    if decision.grant is not None:
        rules["grant"] = decision.grant.model_dump(mode="json", exclude_defaults=True)
    if decision.action not in ASKING:
        rules["args"] = masked
    return describe_action(call, decision.action, decision.reason, rules)


def _mask_computed(call: ToolCall, decision: PolicyDecision, definition: ToolDefinition) -> JsonObject | None:
    """Return what was computed, with the texts masked that come from an argument with a secret; None for nothing."""
    if not decision.computed:
        return None
    redacted = redact(call.args, definition.parameters, decision.terms.secrets)
    return mask_computed(decision.computed, call.args, redacted.args)


def describe_action(call: ToolCall, action: Action, reason: str, rules: JsonObject) -> Event:
    """Return the event for an action on a call; `rules` are the rules behind it."""
    about: JsonObject = {"tool_name": call.name, "call_id": call.call_id, "index": call.index}
    about |= {"subagent": call.subagent} if call.subagent is not None else {}
    return Event(EventType.POLICY_DECISION, {**about, "action": action, "reason": reason, **rules})


def describe_progress(progress: Progress | None) -> JsonObject:
    """Return what the event of a batch says about the run before it, so that a replay sees the same."""
    return {} if progress is None else {"progress": progress.model_dump(mode="json")}


def target_of(decision: PolicyDecision) -> str | None:
    """Return the argument whose value a reviewer gives, or None."""
    payload = decision.request_payload
    return payload.target_arg if payload and decision.action is Action.REQUEST_USER_INPUT else None


def build_item(
    definition: ToolDefinition, call: ToolCall, decision: PolicyDecision, timeout_s: int | None = None
) -> ItemDraft:
    """Return the item for a call, preset if the policy decides; `timeout_s` is for rules that state none."""
    payload = decision.request_payload or _EMPTY_PAYLOAD
    target = target_of(decision)
    approval = (Answer.APPROVE, Answer.EDIT, Answer.DENY) if payload.allow_edit else (Answer.APPROVE, Answer.DENY)
    response = None if target is None else payload.response_schema or _schema_of(definition, target)
    secrets = list_secret_paths(response, target) if target is not None and response is not None else ()
    traits, terms = definition.traits, decision.terms
    update: dict[str, object] = {}
    if timeout_s is not None and "timeout_s" not in terms.model_fields_set:
        update["timeout_s"] = timeout_s
    if traits.secrets or secrets:
        update["secrets"] = tuple(dict.fromkeys((*terms.secrets, *traits.secrets, *secrets)))
    effects = {"idempotent": definition.idempotent, "previews": definition.previews}
    tool = ItemTool(name=call.name, args=call.args, definition=traits.digest, **effects)
    reason = decision.reason[:MAX_REASON_CHARS]
    metadata = payload.metadata | ({"judging_error": decision.error} if decision.error else {})
    prompt = Prompt(title=payload.title, body=payload.prompt, reason=reason, metadata=metadata)
    verdict = {Action.ALLOW: Verdict.APPROVED, Action.DENY: Verdict.DENIED}.get(decision.action)
    return ItemDraft(
        kind=ItemKind.APPROVAL if target is None else ItemKind.INPUT,
        call_id=call.call_id,
        index=call.index,
        tool=tool,
        subagent=call.subagent,
        prompt=prompt,
        allowed=approval if target is None else (Answer.VALUE, Answer.DENY),
        choices=payload.choices,
        response_schema=response,
        target_arg=target,
        terms=terms.model_copy(update=update) if update else terms,
        rule_id=decision.policy_id,
        rule_version=decision.rule_version,
        resembles=decision.resembles,
        judged_at_ms=decision.at_ms,
        computed=_mask_computed(call, decision, definition),
        remembered=decision.remembered[:MAX_REMEMBERED],
        charges=decision.due_charges,
        asked=decision.asked,
        assessment=decision.assessment,
        grant_id=decision.granted_by,
        learning=decision.learning,
        preset=PresetOutcome(verdict=verdict, by=_POLICY, message=decision.reason or None) if verdict else None,
    )


def _schema_of(definition: ToolDefinition, target: str) -> JsonObject | None:
    schema = definition.properties.get(target)
    if not isinstance(schema, dict):
        return None
    parameters = definition.parameters
    return {**schema, **{name: parameters[name] for name in ("$defs", "definitions") if parameters.get(name)}}


KEYWORD = "x-sayso-question"
MAX_CHOICES = 100
_TITLE_CHARS = 200
_REASON = "The agent asks this question."


class Question(Immutable):
    """The argument names of a question."""

    question: str
    answer: str
    context: str | None = None
    choices: str | None = None


def find_question(definition: ToolDefinition) -> Question | None:
    """Return the question arguments of the tool, or None for an ordinary tool."""
    if KEYWORD not in definition.parameters:
        return None
    try:
        return Question.model_validate(definition.parameters[KEYWORD])
    except ValidationError:
        return None


def put_question(definition: ToolDefinition, args: JsonObject, decision: PolicyDecision) -> PolicyDecision:
    """Return the decision that asks the question; decisions on other tools, and stricter ones, stay as they are.

    A rule that asks for the answer may provide text, terms and a fallback value. A fallback that would approve denies.
    """
    question = find_question(definition)
    # The default does not take precedence over a question.
    by_rule = decision.policy_id is not None or decision.in_doubt is not None
    wants_approval = decision.action is Action.REQUEST_APPROVAL and by_rule
    if question is None or decision.action is Action.DENY or wants_approval:
        return decision
    given = decision.request_payload if decision.action is Action.REQUEST_USER_INPUT else None
    if given is not None and given.target_arg != question.answer:
        return decision
    terms = decision.terms
    if terms.fallback.action is FallbackAction.APPROVE:
        terms = terms.model_copy(update={"fallback": Fallback(action=FallbackAction.DENY)})
    payload = _write_payload(question, args, given or RequestPayload())
    update = {"action": Action.REQUEST_USER_INPUT, "request_payload": payload, "terms": terms}
    return decision.model_copy(update=update if given is not None else {**update, "reason": _REASON})


def _write_payload(question: Question, args: JsonObject, given: RequestPayload) -> RequestPayload:
    text, context = _text(args, question.question), _text(args, question.context)
    short = text if len(text) <= _TITLE_CHARS else f"{text[: _TITLE_CHARS - 1]}…"
    body = "\n\n".join(part for part in (text if short != text else "", context) if part)
    offered = args.get(question.choices) if question.choices is not None else None
    texts = [text for text in offered if isinstance(text, str) and text.strip()] if isinstance(offered, list) else []
    choices = given.choices or tuple(dict.fromkeys(texts))
    schema: JsonObject = {"enum": list(choices)} if choices else {"type": "string", "pattern": r"\S"}
    update = {
        "title": given.title or short or None,
        "prompt": given.prompt or body[:20_000] or None,
        "target_arg": question.answer,
        "choices": choices if 0 < len(choices) <= MAX_CHOICES else None,
        "response_schema": given.response_schema or schema,
    }
    return given.model_copy(update=update)


def _text(args: Mapping[str, JsonValue], name: str | None) -> str:
    value = args.get(name) if name is not None else None
    return value.strip() if isinstance(value, str) else ""
