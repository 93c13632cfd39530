"""Calls in doubt: calls that were started and whose result is not known.

A call of an idempotent tool runs again with the same key. For any other call a reviewer chooses to run it again, skip
it, or fail the run. Without an answer the run fails.
"""

from enum import StrEnum

from pydantic import JsonValue, ValidationError

from sayso.canonical_json import JsonObject
from sayso.clock import iso_utc
from sayso.errors import InvalidInput
from sayso.records.base import Immutable
from sayso.records.items import Answer, Doubt, ItemDraft, ItemKind, ItemTool, Prompt
from sayso.records.suspensions import Intent
from sayso.records.terms import Fallback, FallbackAction, RuleTerms
from sayso.records.tool_calls import ToolCall

ANSWER_WITHIN_S = 86_400

_FAIL = Fallback(action=FallbackAction.FAIL, message="Nobody could say whether the call had run.")


class Choice(StrEnum):
    """The possible answers about a call in doubt."""

    RUN_AGAIN = "run_again"
    SKIP = "skip"
    FAIL = "fail"
    REPORTED = "reported"
    """Set when the worker that started the call reports its result late."""


REVIEWER_CHOICES = (Choice.RUN_AGAIN, Choice.SKIP, Choice.FAIL)


class DoubtAnswer(Immutable):
    """An answer about a call in doubt. `result` is given only with `skip`."""

    choice: Choice
    result: JsonValue = None


_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "choice": {
            "type": "string",
            "enum": [str(choice) for choice in REVIEWER_CHOICES],
            "description": "Run it again, skip it, or fail the run.",
        },
        "result": {"type": "string", "description": "With skip: the result of the call, if you know it."},
    },
    "required": ["choice"],
    "additionalProperties": False,
}


def put_in_doubt(
    call: ToolCall, definition: str, doubt: Doubt, secrets: tuple[str, ...] = (), *, by_client: bool = False
) -> ItemDraft:
    """Return the item that asks a reviewer about a call which a worker, or the client, may have run.

    `secrets` are the paths of its secret arguments.
    """
    if by_client:
        starter, reason = f"its client (key {doubt.holder}), which did not report", "Its client did not report a result"
    else:
        starter = f"worker {doubt.holder} (attempt {doubt.attempt}), which was lost before it reported"
        reason = "Its worker was lost during the call"
    body = (
        f"{call.name} was started at {iso_utc(doubt.begun_at_ms)} by {starter} a result. "
        "The call may or may not have had its effect. Check the system it changes; "
        f"its idempotency key is {doubt.idempotency_key}."
    )
    return ItemDraft(
        kind=ItemKind.INPUT,
        call_id=call.call_id,
        index=call.index,
        tool=ItemTool(name=call.name, args=call.args, definition=definition),
        prompt=Prompt(title="This call may already have run", body=body, reason=reason),
        allowed=(Answer.VALUE,),
        response_schema=_SCHEMA,
        terms=RuleTerms(timeout_s=ANSWER_WITHIN_S, start_by_s=ANSWER_WITHIN_S, fallback=_FAIL, secrets=secrets),
        rule_id=None,
        doubt=doubt,
    )


def doubt_intent(intent: Intent) -> Doubt:
    """Return the doubt about a journalled call."""
    return Doubt(**{name: getattr(intent, name) for name in Doubt.model_fields})


def check_choice(value: JsonValue) -> None:
    """Raise `InvalidInput` for a result given with another choice than skip."""
    answer = read_choice(value)
    if answer.result is not None and answer.choice is not Choice.SKIP:
        problem = "A result is accepted only with skip. Choose skip, or omit the result."
        raise InvalidInput(problem, problems=[f"value.result: {problem}"])


def read_choice(value: JsonValue) -> DoubtAnswer:
    """Return the answer in `value`. An unreadable value fails the run: the call must not run twice."""
    try:
        return DoubtAnswer.model_validate(value)
    except ValidationError:
        return DoubtAnswer(choice=Choice.FAIL)
