import pytest

from service.web.sessions import safe_next


@pytest.mark.parametrize(
    "place",
    [
        "/",
        "/decided",
        "/decided?verdict=denied&agent=a%20b",
        "/runs",
        "/runs/run_1",
        "/items/sus_1/i1",
        "/runs/run_1/cancel",
    ],
)
def test_a_sign_in_leads_back_to_our_own_pages(place: str) -> None:
    assert safe_next(place) == place


@pytest.mark.parametrize(
    "place",
    [
        None,
        "",
        "//evil.example",
        "https://evil.example/",
        "/\\evil.example",
        "\\/evil.example",
        "javascript:alert(1)",
        "/items/../sign-out",
        "/items/a/b/c",
        "/sign-out",
        "/api/v1/runs",
        "/decided#//evil.example",
        "/runs/a\r\nSet-Cookie: x=y",
        "/runs/%2f%2fevil.example",
        "/runs/ä",
        " /",
        "/?next=//evil.example",
    ],
)
def test_anything_else_leads_to_the_inbox(place: str | None) -> None:
    assert safe_next(place) == "/"
