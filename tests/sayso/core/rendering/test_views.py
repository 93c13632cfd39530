"""A renderer may name any paths and positions; the view still holds every value once and as stored."""

from hypothesis import given
from hypothesis import strategies as st

from sayso.core.canonical_json import JsonObject
from sayso.core.rendering.views import Call, Flag, Mark, Place, Sketch, arrange

ARGS: JsonObject = {"a": "rm -rf /srv/p\u0430ypal", "b": [1, {"c": " padded "}], "d": "x\n\n\n\n\n\ny" + " " * 30}
PATHS = st.sampled_from(["a", "b[0]", "b[1].c", "d", "none"])
NUMBERS = st.integers(-5, 60)
MARKS = st.lists(st.builds(Mark, NUMBERS, NUMBERS, st.sampled_from(["danger", "host"])), max_size=5)
PLACES = st.lists(
    st.builds(Place, PATHS, st.sampled_from(["value", "code"]), MARKS, st.lists(NUMBERS, max_size=4)), max_size=8
)


@given(notable=PLACES, body=PLACES)
def test_arrange_keeps_every_value_whatever_a_renderer_names(notable: list[Place], body: list[Place]) -> None:
    view = arrange(Call("x", ARGS), "x", Sketch("x", notable, body), ())
    rows = [*view.notable, *view.body, *view.rest]
    assert sorted(row.path for row in rows) == ["a", "b[0]", "b[1].c", "d"]
    texts = {row.path: row.text for row in rows}
    assert (texts["a"], texts["b[0]"]) == (ARGS["a"], "1")
    assert texts["b[1].c"] in (" padded ", '" padded "')
    assert texts["d"] in (ARGS["d"], '"' + str(ARGS["d"]).replace("\n", "\\n") + '"')


def test_mark_that_would_hide_a_sign_is_dropped() -> None:
    """Seven blank lines get one sign; cut apart they would get none."""
    text = "x" + "\n" * 8 + "y"
    view = arrange(Call("x", {"a": text}), "x", Sketch("x", body=[Place("a", "code", (), [3])]), ())
    assert view.body[0].lines == view.body[0].lines[:1]
    assert view.body[0].text == text


def test_arrange_sorts_flags_and_drops_repeated_ones() -> None:
    flags = (Flag("minor"), Flag("severe", 1), Flag("minor"))
    view = arrange(Call("x", {}), "x", Sketch("x", flags=flags), (Flag("first"),))
    assert [flag.sentence for flag in view.flags] == ["severe", "first", "minor"]
