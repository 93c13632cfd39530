"""Put to a person what no machine can know: whether a call that was begun and never reported back has run.

A tool declared idempotent is simply run again with the same key. Any other becomes a question: run it again, skip it
(with its result, where somebody has looked it up), or fail the run. Nothing is ever guessed: unanswered, the run fails.
"""

from enum import StrEnum

from pydantic import JsonValue, ValidationError

from sayso.canonical_json import JsonObject
from sayso.clock import iso_utc
from sayso.errors import InvalidInput
from sayso.records.base import Immutable
from sayso.records.items import Answer, Doubt, ItemDraft, ItemKind, ItemTool, Prompt
from sayso.records.terms import Fallback, FallbackAction, RuleTerms
from sayso.records.tool_calls import ToolCall

ANSWER_WITHIN_S = 86_400
"""How long the question waits before the run fails."""

_FAIL = Fallback(action=FallbackAction.FAIL, message="Nobody could say whether the call had run.")


class Choice(StrEnum):
    """What is to become of a call in doubt."""

    RUN_AGAIN = "run_again"
    SKIP = "skip"
    FAIL = "fail"
    REPORTED = "reported"
    """Nobody chose: the worker that had begun the call reported its result after all."""


ASKED = (Choice.RUN_AGAIN, Choice.SKIP, Choice.FAIL)
"""What a person may choose."""


class DoubtAnswer(Immutable):
    """The answer to the question; a skipped call may be given the result that somebody has looked up."""

    choice: Choice
    result: JsonValue = None


_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "choice": {
            "type": "string",
            "enum": [str(choice) for choice in ASKED],
            "description": "Run it again, skip it, or fail the run.",
        },
        "result": {"type": "string", "description": "With skip: the call's result, if you have looked it up."},
    },
    "required": ["choice"],
    "additionalProperties": False,
}


def ask_in_doubt(call: ToolCall, definition: str, doubt: Doubt, *, outside: bool = False) -> ItemDraft:
    """Return the question about a call that a worker, or `outside` whoever asked for it, began and may have run."""
    begun = f"{call.name} was started at {iso_utc(doubt.begun_at_ms)} by"
    known = f"{begun} worker {doubt.holder} (attempt {doubt.attempt}), and that worker was lost before it could report"
    reason = "Its worker was lost in the middle"
    if outside:
        known = f"{begun} the agent itself (under the key {doubt.holder}), and it never reported"
        reason = "Whoever began it never said what came of it"
    known += (
        " a result. The call may or may not have had its effect. Look it up where it would show; "
        f"its idempotency key is {doubt.idempotency_key}."
    )
    return ItemDraft(
        kind=ItemKind.INPUT,
        call_id=call.call_id,
        index=call.index,
        tool=ItemTool(name=call.name, args=call.args, definition=definition),
        prompt=Prompt(title="This call may already have run", body=known, reason=reason),
        allowed=(Answer.VALUE,),
        response_schema=_SCHEMA,
        terms=RuleTerms(timeout_s=ANSWER_WITHIN_S, start_by_s=ANSWER_WITHIN_S, fallback=_FAIL),
        rule_id=None,
        doubt=doubt,
    )


def check_choice(value: JsonValue) -> None:
    """Refuse an answer with a result that would be thrown away; raises `InvalidInput`."""
    answer = read_choice(value)
    if answer.result is not None and answer.choice is not Choice.SKIP:
        problem = "A result goes only with skip. Choose skip, or leave the result out."
        raise InvalidInput(problem, problems=[f"value.result: {problem}"])


def read_choice(value: JsonValue) -> DoubtAnswer:
    """Return what was answered; what cannot be read fails the run rather than running anything twice."""
    try:
        return DoubtAnswer.model_validate(value)
    except ValidationError:
        return DoubtAnswer(choice=Choice.FAIL)
