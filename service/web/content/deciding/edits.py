"""The review of an edit before it is sent: what it changes, and what the rules say of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from sayso.core.policy.external import FinalJudgement
from sayso.core.policy.rules import ASKING
from sayso.core.records.items import Answer
from sayso.core.text.language import _, mark, ngettext
from service.forms.nested import is_change
from service.web.content.details import Change
from service.web.form_posts import Post

STEP = "step"
"""The control of buttons that send no decision.

`review` shows the changes of an edit, `change` goes back to its fields, and `ask` asks once more before a call with a
severe warning. A step with a colon, such as `add:f3`, changes the form of a nested value.
"""

UNCHANGED = mark("Change something, or stop editing.")


@dataclass(frozen=True)
class EditReview:
    """The leaves of the edited arguments, and the rules' opinion; nobody can send what they deny."""

    changes: tuple[Change, ...]
    same: tuple[Change, ...]
    opinion: str
    denied: bool = False
    renewed: bool = False

    @property
    def count(self) -> str:
        """The number of changes, such as `1 change`."""
        return ngettext("%(num)s change", "%(num)s changes", len(self.changes))

    @property
    def action(self) -> str:
        """The name of the button that sends the edit."""
        name = _("Ask again with %(changes)s") if self.renewed else _("Approve with %(changes)s")
        return name % {"changes": self.count}


_STEPS = {"review": Answer.EDIT, "change": Answer.EDIT, "ask": Answer.APPROVE}


def find_step(post: Post) -> str:
    """Return the step that a form asks for; empty where it sends a decision."""
    step, answer = post.get(STEP, ""), post.get("answer")
    changes = is_change(step) and answer in (Answer.EDIT, Answer.VALUE)
    return step if changes or (step and _STEPS.get(step) == answer) else ""


def make_review(rows: Sequence[Change], judged: FinalJudgement | None, refusal: str = "") -> EditReview:
    """Return the review of compared arguments. With `refusal`, the rules deny them."""
    changes = tuple(row for row in rows if row.state != "same")
    same = tuple(row for row in rows if row.state == "same")
    if judged is None:
        return EditReview(changes, same, _("Would be denied: %(refusal)s", refusal=refusal), denied=True)
    return EditReview(changes, same, _describe(judged), renewed=judged.renewed is not None)


def _describe(judged: FinalJudgement) -> str:
    decision, renewed = judged
    if decision is None:
        return _("The rules do not evaluate this call.")
    name = _("rule %(name)s", name=decision.policy_id) if decision.policy_id else _("the default")
    if renewed is not None:
        return _(
            "Must be asked again: %(rule)s applies to the changed arguments. Nothing runs before that decision.",
            rule=name,
        )
    return _("Still asks: %(rule)s.", rule=name) if decision.action in ASKING else _("Allowed: %(rule)s.", rule=name)
