"""What is too long for the timeline is cut, and everything else is told as it is."""

from sayso.canonical_json import canonical_json
from sayso.timeline.limits import fit_events


def test_what_is_short_is_told_as_it_is() -> None:
    events = ({"type": "a", "content": "b" * 5000}, {"type": "c"})
    assert fit_events(events) == events


def test_long_text_is_cut_and_the_rest_of_the_event_stays() -> None:
    (cut,) = fit_events([{"type": "a", "id": "1", "content": "b" * 100_000}])
    assert (cut["type"], cut["id"]) == ("a", "1")
    assert str(cut["content"]).endswith("b… [cut: 100000 in all]")


def test_long_lists_are_left_out_and_what_stays_fits() -> None:
    long = {"type": "a", "calls": [{"x": "y" * 100}] * 1000, **{f"k{n}": "z" * 1900 for n in range(60)}}
    (cut,) = fit_events([long])
    assert cut == {"type": "a", "cut": True}
    (kept,) = fit_events([{"type": "a", "calls": [{"x": "y" * 100}] * 1000}])
    assert kept == {"type": "a"}
    assert len(canonical_json(kept)) < 100


def test_what_cannot_be_written_as_strict_json_is_left_out() -> None:
    (cut,) = fit_events([{"type": "a", "score": float("nan"), "text": "b"}])
    assert cut == {"type": "a", "cut": True}
