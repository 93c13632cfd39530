"""The policy: rules as plain data, and the decision they make on one event.

Absolute rules are tried first, then from the highest priority to the lowest, equal ones by id; the first match decides.
If evaluation fails, a reviewer is asked: no error allows a call. If that of an absolute rule fails, the call is denied.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.policy import matching
from sayso.core.policy.counters.assessing import list_strictest, try_assessment, want_assessment, weigh_assessment
from sayso.core.policy.counters.readings import Wanted
from sayso.core.policy.counters.recalling import list_shadow_charges, list_wanted, weigh_counters
from sayso.core.policy.counters.restraining import want_restraints
from sayso.core.policy.decisions import PolicyDecision, ShadowDecision, settle_confirmation, stricter
from sayso.core.policy.events import ModelPrice, PolicyEvent
from sayso.core.policy.functions import Names, Scalar, Stamp
from sayso.core.policy.managers import settle_managers
from sayso.core.policy.rules import ASKING, Action, Glob, Mode, PolicyRule, Subject, check_fallback, check_quorum
from sayso.core.policy.stages import load_stages
from sayso.core.policy.strictness import STRICTNESS, guard_terms, strictest_terms
from sayso.core.records.base import Immutable
from sayso.core.records.terms import RuleTerms
from sayso.core.records.tools import ToolDefinition, find_alike
from sayso.errors import SaysoError

_STAGES = load_stages()

__all__ = ["ASK_EVERYTHING", "Action", "Policy", "PolicyDecision", "PolicyEvent", "stricter"]


class Policy(Immutable):
    """The rules in force, in the order they are tried, the default, and the lists and constants of conditions."""

    rules: tuple[PolicyRule, ...] = ()
    default: Action
    terms: RuleTerms = RuleTerms()
    lists: dict[str, tuple[Scalar, ...]] = Field(default_factory=dict)
    constants: dict[str, Scalar] = Field(default_factory=dict)
    model_prices: dict[Glob, ModelPrice] = Field(default_factory=dict, max_length=1000)
    _version: str = PrivateAttr(default="unknown")

    @field_validator("rules")
    @classmethod
    def _order(cls, rules: tuple[PolicyRule, ...]) -> tuple[PolicyRule, ...]:
        count = Counter(rule.rule_id for rule in rules)
        if repeated := sorted(rule_id for rule_id, times in count.items() if times > 1):
            raise ValueError(f"rule ids must be unique; rename the second {', '.join(repeated)}")
        return _order_rules(rules)

    @field_validator("default")
    @classmethod
    def _check_default(cls, default: Action) -> Action:
        if default is Action.REQUEST_USER_INPUT:
            raise ValueError("the default cannot ask for a value; choose request_approval, deny or allow")
        return default

    @field_validator("terms")
    @classmethod
    def _check_terms(cls, terms: RuleTerms, info: ValidationInfo) -> RuleTerms:
        if "default" in info.data:
            check_fallback(terms.fallback, info.data["default"], None)
        check_quorum(terms)  # in any case: calls that cannot be evaluated are asked about under these terms
        return terms

    @model_validator(mode="after")
    def _fix_version(self) -> Self:
        # One digest per rule: a digest is limited in size, and a rulebook is not.
        rules = [digest_json(rule.model_dump(mode="json")) for rule in self.rules]
        content: JsonObject = {"default": self.default, "terms": self.terms.model_dump(mode="json"), "rules": [*rules]}
        prices = [[name, price.input, price.output] for name, price in self.model_prices.items()]  # in order of trial
        content |= self.names.digest() | ({"model_prices": prices} if prices else {})
        self._version = digest_json(content)[:16]
        return self

    @cached_property
    def stamps(self) -> dict[Path, Stamp]:
        """The files that lists were read from, with their state before; empty for rules from another source."""
        return {}

    @cached_property
    def names(self) -> Names:
        return Names(self.lists, self.constants)

    @cached_property
    def live(self) -> tuple[PolicyRule, ...]:
        """The rules that can decide, in the order of trial."""
        return tuple(rule for rule in self.rules if rule.is_live)

    @cached_property
    def tool_names(self) -> frozenset[str]:
        return frozenset(name for rule in self.live for name in rule.condition.tools)

    @cached_property
    def reads_time(self) -> bool:
        """Whether an enabled rule needs the time of a call."""
        return any(rule.enabled and rule.reads_time for rule in self.rules)

    @cached_property
    def limits_start(self) -> bool:
        """Whether a denial that nothing lifts depends on the time, so that it holds at the start of a call, too."""
        return any(rule.absolute and rule.reads_time for rule in self.live)

    @cached_property
    def _shadows(self) -> "tuple[tuple[PolicyRule, Policy], ...]":
        """Each enabled shadow rule as if it were live, and the policy with it."""
        shadows = [rule for rule in self.rules if rule.enabled and not rule.is_live]
        shown = [rule.model_copy(update={"mode": Mode.LIVE}) for rule in shadows]
        parts: dict[str, Any] = {name: getattr(self, name) for name in Policy.model_fields}
        return tuple(
            (rule, Policy.model_construct(**parts | {"rules": _order_rules((*self.live, rule))})) for rule in shown
        )

    @cached_property
    def version(self) -> str:
        """The first 16 hex digits of the SHA-256 over everything that can change a decision."""
        return self._version

    @property
    def judges_models(self) -> bool:
        return any(rule.covers(Subject.LLM_CALL) for rule in self.live)

    @cached_property
    def remembering(self) -> tuple[PolicyRule, ...]:
        """The enabled rules that read counters, permissions, denials or assessors. Shadow rules never limit."""
        kept = [rule for rule in self.rules if rule.enabled]
        reads = [(rule.condition.counters, rule.grants, rule.mandates, rule.assess, rule.restrains) for rule in kept]
        return tuple(rule for rule, parts in zip(kept, reads, strict=True) if any(parts))

    @cached_property
    def mandating(self) -> bool:
        """Whether a rule lets mandates cover its calls; all tool calls are then judged with the mandates in force."""
        return any(rule.mandates is not None for rule in self.live)

    def list_wanted(self, event: PolicyEvent) -> Iterator[Wanted]:
        """Yield the counters that judging `event` reads; none of rules that do not cover it."""
        if not self.remembering:
            return
        yield from want_restraints(self.live, event)
        try:
            case = matching.Case(event, self.names, self.model_prices)
            alike = find_alike(self.tool_names, event.tool_name or "")
        except SaysoError:
            return  # a person is asked without reading counters
        tried = [
            matching.unname(rule) if alike and not alike.isdisjoint(rule.condition.tools) else rule
            for rule in self.remembering
        ]
        covering = [rule for rule in tried if matching.try_coverage(rule, case) is True]
        for stage in _STAGES:
            yield from stage.want(self, event, covering)
        for rule in covering:
            yield from list_wanted(rule, event)
        if any(rule.assess for rule in self.remembering):
            yield from self._want_assessments(case, alike)

    def _want_assessments(self, case: matching.Case, alike: frozenset[str]) -> Iterator[Wanted]:
        """Yield what to ask the assessors of rules that may decide: none after a rule that decides in any case."""
        named = [matching.unname(rule) for rule in self.live if alike and not alike.isdisjoint(rule.condition.tools)]
        for rules in (self.live, named):
            for rule in rules:
                if matching.try_coverage(rule, case) is True:
                    yield from want_assessment(rule, case.event)
                    if not rule.condition.counters:
                        break

    def judge(self, event: PolicyEvent) -> PolicyDecision:
        """Return the decision on `event`, never raise: what cannot be evaluated is asked about, model calls denied."""
        try:
            case = matching.Case(event, self.names, self.model_prices)
            decision = PolicyDecision.model_validate(self._weigh(case) | {"at_ms": event.at_ms})
            for stage in _STAGES:
                decision = stage.apply(self, event, decision)
        except Exception as error:  # noqa: BLE001 - after any error a reviewer decides
            decision = self._ask_unevaluated(event, matching.describe_error(error))
        else:
            if self._shadows and case.subject is Subject.TOOL_CALL:
                tried = [_try_shadow(rule, policy, case, decision.in_doubt is None) for rule, policy in self._shadows]
                by_id = {shadow.rule_id: shadow for shadow in tried if shadow is not None}
                shadows = [
                    (rule, by_id[rule.rule_id].action if rule.rule_id in by_id else None) for rule, _ in self._shadows
                ]
                charges = (*decision.charges, *list_shadow_charges(shadows, case.recalled))
                decision = decision.model_copy(update={"shadow": tuple(by_id.values()), "charges": charges})
        known = _know(event)
        who = known.who if known is not None else None
        decision = settle_confirmation(settle_managers(decision, decision.terms, who, self.terms), who)
        is_model_call = known is not None and known.event_type == "llm_before_execute"
        return _decide_model_call(decision) if is_model_call else decision

    def judge_beside(self, event: PolicyEvent, definition: ToolDefinition, *, registered: bool) -> JsonObject | None:
        """Return what to record of rules that judge beside these without effect; None without such rules."""

    def _weigh(self, case: matching.Case) -> dict[str, Any]:
        own = self._try_rules(case)
        alike = find_alike(self.tool_names, case.event.tool_name or "")
        if not alike:
            return own
        rules = tuple(matching.unname(rule) for rule in self.live if not alike.isdisjoint(rule.condition.tools))
        others = Policy.model_construct(rules=rules, default=Action.ALLOW, terms=self.terms)
        other = PolicyDecision.model_validate(others._try_rules(case))
        return matching.take_stricter(PolicyDecision.model_validate(own), other, tuple(sorted(alike)))

    def _try_rules(self, case: matching.Case) -> dict[str, Any]:
        deciding: PolicyRule | None = None
        matched: list[str] = []
        doubted: list[PolicyRule] = []  # rules that might have decided
        problems: list[str] = []
        for rule in self.live:
            verdict = matching.try_rule(rule, case)
            if verdict is True and deciding is None:
                verdict = try_assessment(rule, case.event)
            if isinstance(verdict, str):
                problems.append(f"rule {rule.rule_id}: {verdict}")
                if deciding is None:
                    doubted.append(rule)
            elif verdict:
                matched.append(rule.rule_id)
                deciding = rule if deciding is None else deciding
        error = "; ".join(problems)[: matching.MAX_ERROR_CHARS] or None
        hard = next((rule for rule in doubted if rule.absolute), None)
        if deciding is not None and deciding.absolute:
            decided = self._decide(deciding, tuple(matched), error)  # denied, even if doubted rules matched
        elif hard is not None:
            decided = self._deny_unevaluated(hard, error, tuple(matched))
        elif doubted:
            reason = f"Rule {doubted[0].rule_id} could not be evaluated, so a reviewer decides."
            decided = self._ask(reason, error, tuple(matched), doubted, deciding)
        else:
            decided = self._decide(deciding, tuple(matched), error)
            decided = weigh_assessment(deciding, case.event, decided) if deciding is not None else decided
        decided["computed"] = case.list_computed([*doubted, *([deciding] if deciding is not None else [])])
        if not case.recalled:
            return decided
        return decided | weigh_counters(self.live, case.recalled, deciding, decided["reason"])

    def _decide(self, rule: PolicyRule | None, matched: tuple[str, ...], error: str | None) -> dict[str, Any]:
        fields: dict[str, Any] = {"rule_version": self.version, "error": error}
        if rule is None:
            reason = f"No rule matched; the default is {self.default}."
            return {**fields, "action": self.default, "reason": reason, "terms": self.terms}
        reason = rule.reason or f"Rule {rule.rule_id} says {rule.action}."
        reason = f"{reason.removesuffix('.')}. Nobody can lift this." if rule.absolute else reason
        fields |= {"policy_id": rule.rule_id, "matched_rules": matched, "request_payload": rule.request_payload}
        fields["absolute"] = rule.absolute
        return {**fields, "action": rule.action, "reason": reason, "terms": rule.terms}

    def _deny_unevaluated(self, rule: PolicyRule, error: str | None, matched: tuple[str, ...] = ()) -> dict[str, Any]:
        """Deny for an absolute rule that might apply: a person who approved the call would lift it."""
        reason = f"Rule {rule.rule_id} could not be evaluated, and nobody can lift it, so the call is denied."
        fields = {"policy_id": rule.rule_id, "matched_rules": matched, "rule_version": self.version, "error": error}
        return {**fields, "action": Action.DENY, "reason": reason, "absolute": True, "in_doubt": Action.DENY}

    def _ask_unevaluated(self, event: PolicyEvent, error: str) -> PolicyDecision:
        reason = "The call could not be evaluated, so a reviewer decides."
        try:
            rules = [rule for rule in self.live if matching.may_be_about(rule, event.tool_name or "")]
            if hard := next((rule for rule in rules if rule.absolute and rule.covers(event.subject)), None):
                return PolicyDecision.model_validate(self._deny_unevaluated(hard, error))
            return PolicyDecision.model_validate(self._ask(reason, error, doubted=rules))
        except Exception as fault:  # noqa: BLE001 - use the file's terms
            errors = f"{error}; {matching.describe_error(fault)}"[: matching.MAX_ERROR_CHARS]
            return PolicyDecision.model_validate(self._ask(reason, errors))

    def _ask(
        self,
        reason: str,
        error: str | None,
        matched: tuple[str, ...] = (),
        doubted: Sequence[PolicyRule] = (),
        deciding: PolicyRule | None = None,
    ) -> dict[str, Any]:
        rules = [*doubted, *([deciding] if deciding is not None else [])]
        asking = [rule for rule in rules if rule.action in ASKING]
        terms = [*list_strictest(asking)]
        actions = [rule.action for rule in rules]
        if deciding is None:
            actions.append(self.default)
            terms += [self.terms] if self.default in ASKING or not terms else []
        return {
            "action": Action.REQUEST_APPROVAL,
            "reason": reason,
            "request_payload": matching.merge_payloads(asking),
            "matched_rules": matched,
            "terms": guard_terms(strictest_terms(terms or [self.terms])),
            "rule_version": self.version,
            "error": error,
            "in_doubt": max(actions, key=lambda action: STRICTNESS[action]),
        }


ASK_EVERYTHING = Policy(default=Action.REQUEST_APPROVAL)  # the policy without a rules file


def _try_shadow(rule: PolicyRule, policy: Policy, case: matching.Case, certain: bool) -> ShadowDecision | None:
    """Return what a shadow rule would decide in `policy`, None for nothing; `certain`: live rules were evaluated."""
    try:
        alike = find_alike(frozenset(rule.condition.tools), case.event.tool_name or "")
        verdict = matching.try_rule(matching.unname(rule) if alike else rule, case)
        if verdict is False:
            return None
        weighed = policy._weigh(case)
    except Exception as error:  # noqa: BLE001 - a shadow rule never changes what happens to a call
        return ShadowDecision(rule_id=rule.rule_id, error=matching.describe_error(error))
    if weighed.get("policy_id") == rule.rule_id:
        return ShadowDecision(rule_id=rule.rule_id, action=weighed["action"])
    failed = certain and isinstance(verdict, str) and weighed.get("in_doubt") is not None
    return ShadowDecision(rule_id=rule.rule_id, error=str(verdict)) if failed else None


def _order_rules(rules: Sequence[PolicyRule]) -> tuple[PolicyRule, ...]:
    """Return the rules in the order of trial: absolute ones first, then by priority and id."""
    return tuple(sorted(rules, key=lambda rule: (not rule.absolute, -rule.priority, rule.rule_id)))


def _know(event: object) -> PolicyEvent | None:
    """Return the event, or None; `event` may be anything."""
    return event if isinstance(event, PolicyEvent) else None


def _decide_model_call(decision: PolicyDecision) -> PolicyDecision:
    if decision.policy_id is None and decision.error is None:
        return decision.model_copy(update={"action": Action.ALLOW, "reason": "No rule covers this model call."})
    if decision.action not in ASKING:
        return decision
    reason = "The rules could not be evaluated, and a model call cannot be asked about."
    return decision.model_copy(update={"action": Action.DENY, "reason": reason, "request_payload": None})
