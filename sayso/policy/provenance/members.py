"""The names of facts that conditions can read."""

from sayso.policy.conditions import find_members

MEMBERS = {
    "run": (
        *("tools", "tokens", "input_tokens", "output_tokens", "model_calls", "cost"),
        *("started_by", "tenant", "environment"),
    ),
    "who": ("key", "owner", "groups", "person", "issuer"),
}
"""The names that conditions can read of each variable."""


def find_misnamed(expression: str) -> str | None:
    """Return why a condition reads a fact that no call has, such as `run.tool`; None if all exist."""
    for variable, known in MEMBERS.items():
        for name in find_members(expression, variable):
            if name not in known:
                return f"there is no `{variable}.{name}`; use {', '.join(f'{variable}.{fact}' for fact in known)}"
    return None
