"""The names of the counters."""

from enum import StrEnum


class Metric(StrEnum):
    """The counters: of suspensions, then of tools, people and rules. A histogram's bucket follows its name."""

    CAME = "came"
    LEFT = "left"

    ASKED = "asked"
    DECIDED = "decided"
    APPROVED = "approved"
    DENIED = "denied"
    EDITED = "edited"
    FALLBACK = "fallback"
    WAIT = "wait"

    BY = "by"
    FAST = "fast"
    NIGHT = "night"
    LOOK = "look"
    YES = "yes"
    NO = "no"
    YES_LOOK = "yes_look"

    RULE_ASKED = "rule_asked"
    RULE_DECIDED = "rule_decided"
    RULE_APPROVED = "rule_approved"
    RULE_DENIED = "rule_denied"
    RULE_EDITED = "rule_edited"
    RULE_FALLBACK = "rule_fallback"
    RULE_DECISIONS = "rule_decisions"
    RULE_MEASURED = "rule_measured"
    RULE_LOOK_MS = "rule_look_ms"
    RULE_SECOND_LOOK = "rule_second_look"
    RULE_DISAGREED = "rule_disagreed"
    RULE_WRONG = "rule_wrong"
    RULE_NEAR = "rule_near"
