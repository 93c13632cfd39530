"""Rules that an admin may want, because people nearly always approve a tool as requested."""

import re

_FEWEST = 50
_SHARE = 0.98
_PLAIN = re.compile(r"[A-Za-z][\w.-]{0,99}", re.ASCII)


def suggest_rule(tool: str, as_requested: int, decided: int) -> str:
    """Return the text of a rule that allows the tool; empty unless over 98 % of at least 50 decisions did.

    A name that is not plain ASCII gets none: the text is copied into a file.
    """
    if decided < _FEWEST or as_requested <= _SHARE * decided or not _PLAIN.fullmatch(tool):
        return ""
    reason = f"People approved {as_requested} of {decided} requests as they were in 30 days"
    return f'- id: allow-{tool}\n  tool: "{tool}"\n  action: allow\n  reason: {reason}\n'
