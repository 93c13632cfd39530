"""Tools whose call is a question of the agent itself; a reviewer answers it.

Their parameters have `x-sayso-question`: which arguments hold the question, its context, its choices and the answer.
Only tools registered by a worker may be questions, and a question never replaces an approval that a rule asks for.
"""

from collections.abc import Mapping

from pydantic import JsonValue, ValidationError

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.rules import Action, RequestPayload
from sayso.core.records.base import Immutable
from sayso.core.records.terms import Fallback, FallbackAction
from sayso.core.records.tools import ToolDefinition

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
    if question is None or decision.action is Action.DENY or _wants_approval(decision):
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


def _wants_approval(decision: PolicyDecision) -> bool:
    """Whether a rule asks for approval, or might have. The default does not take precedence over a question."""
    by_rule = decision.policy_id is not None or decision.in_doubt is not None
    return decision.action is Action.REQUEST_APPROVAL and by_rule


def _write_payload(question: Question, args: JsonObject, given: RequestPayload) -> RequestPayload:
    text, context = _text(args, question.question), _text(args, question.context)
    short = text if len(text) <= _TITLE_CHARS else f"{text[: _TITLE_CHARS - 1]}…"
    body = "\n\n".join(part for part in (text if short != text else "", context) if part)
    choices = given.choices or _choices(args, question.choices)
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


def _choices(args: Mapping[str, JsonValue], name: str | None) -> tuple[str, ...]:
    value = args.get(name) if name is not None else None
    offered = [text for text in value if isinstance(text, str) and text.strip()] if isinstance(value, list) else []
    return tuple(dict.fromkeys(offered))
