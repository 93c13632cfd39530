"""Requests show method and host first."""

import pytest

from sayso.core.rendering.renderers import render_call


def test_request_shows_method_and_host() -> None:
    view = render_call("call", {"body": {"a": "x\ny"}, "url": "https://api.example.com/v1/x?y=1", "method": "post"})
    assert view.headline == "POST api.example.com/v1/x"
    assert [row.path for row in view.notable] == ["method", "url"]
    assert [part.text for part in view.notable[1].lines[0] if part.kind == "host"] == ["api.example.com"]
    assert [(row.path, row.style) for row in view.body] == [("body.a", "code")]
    assert not view.flags


@pytest.mark.parametrize("url", ["https://good.example@evil.example/x", "https://good.example\\@evil.example/"])
def test_request_flags_a_hidden_host(url: str) -> None:
    assert render_call("fetch", {"url": url}).severe


def test_link_of_another_tool_is_no_request() -> None:
    assert render_call("show_picture", {"url": "https://example.com/a.png"}).renderer == "tree"
