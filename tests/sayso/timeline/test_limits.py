"""Tests of the size limits of external events."""

from sayso.core.canonical_json import JsonObject, canonical_json
from sayso.timeline.external_events import fit_events


def test_fit_events_keeps_short_events() -> None:
    events: tuple[JsonObject, ...] = ({"type": "a", "content": "b" * 5000}, {"type": "c"})
    assert fit_events(events) == events


def test_fit_events_truncates_long_text() -> None:
    (cut,) = fit_events([{"type": "a", "id": "1", "content": "b" * 100_000}])
    assert (cut["type"], cut["id"]) == ("a", "1")
    assert str(cut["content"]).endswith("b… [cut: 100000 in all]")


def test_fit_events_drops_long_lists() -> None:
    texts: JsonObject = {f"k{n}": "z" * 1900 for n in range(60)}
    long: JsonObject = {"type": "a", "calls": [{"x": "y" * 100}] * 1000, **texts}
    (cut,) = fit_events([long])
    assert cut == {"type": "a", "cut": True}
    (kept,) = fit_events([{"type": "a", "calls": [{"x": "y" * 100}] * 1000}])
    assert kept == {"type": "a"}
    assert len(canonical_json(kept)) < 100


def test_fit_events_drops_values_that_are_not_strict_json() -> None:
    (cut,) = fit_events([{"type": "a", "score": float("nan"), "text": "b"}])
    assert cut == {"type": "a", "cut": True}
