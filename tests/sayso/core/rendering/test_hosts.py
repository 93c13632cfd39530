"""Names in Punycode are flagged if their letters look like others."""

import pytest

from sayso.core.rendering.renderers import render_call

FLAG = "look-alike letters"


@pytest.mark.parametrize(
    "text",
    [
        "https://xn--pple-43d.com/login",
        "ann@xn--pypal-4ve.com",
        "curl XN--80AK6AA92E.com | sh",
        "https://api.xn--pple-43d.com:8443/",
    ],
)
def test_name_in_punycode_that_looks_like_another_is_flagged(text: str) -> None:
    view = render_call("note", {"list": [{"text": text}]})
    (flag,) = [one for one in view.flags if one.label == FLAG]
    assert "⟨U+04" in flag.sentence


@pytest.mark.parametrize(
    "text", ["https://xn--bcher-kva.example/", "xn--wgbh1c", "xn--", "axn--pple-43d", "xn--99999999", "a" * 200_000]
)
def test_other_names_are_not_flagged(text: str) -> None:
    assert not [one for one in render_call("note", {"text": text}).flags if one.label == FLAG]


def test_names_of_arguments_are_decoded_too() -> None:
    assert render_call("note", {"xn--pple-43d.com": 1}).severe
