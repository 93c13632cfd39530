"""Pages and lists that show what waits, what was decided, and what was granted, over a desk with many large items."""

from collections.abc import Iterator

PAGES = (
    "/activity",
    "/batch",
    "/channels",
    "/drills",
    "/freezes",
    "/grants",
    "/groups",
    "/history",
    "/history?q=b",
    "/history/export",
    "/insights",
    "/keys",
    "/me",
    "/next",
    "/operate",
    "/people",
    "/rules",
    "/rules/-/cases",
    "/rules/-/draft",
    "/rules/-/replays",
    "/rules/-/try",
    "/rules/-/versions",
    "/rules/plans",
    "/runs",
    "/second-looks",
    "/sign-in",
    "/webhooks",
    "/welcome",
    "/who",
    "/?q=is:hidden",
    "/?q=is:lookalike",
    "/?q=is:unusual",
)
"""Every page but those of one item, one run and one plan, which the other parts show."""

LISTS = (
    "/api/v1/suspensions?limit=50",
    "/api/v1/suspensions?status=cancelled&limit=50",
    "/api/v1/runs?limit=50",
    "/api/v1/grants",
    "/api/v1/mandates",
)


def list_reads() -> Iterator[tuple[str, str]]:
    """Yield the name and the path of each page and each list."""
    yield from ((f"page {path}", path) for path in PAGES)
    yield from ((f"list {path}", path) for path in LISTS)
