"""The twenty-one ways in which a call is denied, by the recipient of the call that shows each."""

BY_PEOPLE = {
    "reason": "with a reason",
    "silent": "without one",
    "assent": "with one that reads like an approval",
    "hostile": "with one of markup and control characters, of the greatest length",
    "changes": "by requesting changes",
    "sibling": "beside approved calls of the same turn",
    "twin": "beside an equal call that is approved",
    "ask": "in place of giving a value",
    "offer": "with an offer of another call",
}

BY_RULES = {
    "nobody": "by a rule",
    "late": "by the fallback of its deadline",
    "soon": "approved, but not started in time",
    "changed": "approved, but its tool has changed",
    "frozen": "approved, but its agent is frozen and its run cancelled",
    "cancelled": "its run cancelled while it waits",
}

AGAIN = {
    "again": "requested and denied again",
    "remembered": "requested again, under a rule that remembers denials",
    "reversed": "approved after its denial",
    "race": "resumed by two workers",
    "killed": "resumed after a crash before the model reads the denial",
    "ending": "of an agent whose run a denial ends, together with an approved call",
}
