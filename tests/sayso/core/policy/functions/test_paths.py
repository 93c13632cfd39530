"""Parts of paths, and paths that try to leave a folder."""

import os
import posixpath
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.policy.functions import Uncomputable
from sayso.core.policy.functions.addresses import is_within, read_path


@pytest.mark.parametrize(
    ("path", "root", "answer"),
    [
        ("/srv/data/a.txt", "/srv/data", True),
        ("/srv/data", "/srv/data", True),
        ("/srv/data/", "/srv/data/", True),
        ("/srv/data/x/../a", "/srv/data", True),
        ("/srv/./data//a", "/srv/data", True),
        ("//srv/data/a", "/srv/data", True),
        ("/srv/data/..", "/srv/data", False),
        ("/srv/data/../x", "/srv/data", False),
        ("/srv/data/x/../../y", "/srv/data", False),
        ("/srv/database/a", "/srv/data", False),
        ("/srv/data/../../../../etc/passwd", "/srv/data", False),
        ("/../srv/data/a", "/srv/data", True),
        ("/srv/data/...", "/srv/data", True),
        ("/srv/data/~", "/srv/data", True),
        ("/etc/passwd", "/", True),
        (["/srv/data/a", "/srv/data/b"], "/srv/data", True),
        (["/srv/data/a", "/etc/b"], "/srv/data", False),
    ],
)
def test_is_within_compares_normal_paths(path: Any, root: str, answer: bool) -> None:
    assert is_within(path, root) is answer


@pytest.mark.parametrize(
    "path",
    [
        *(
            "",
            "a",
            "./a",
            "../a",
            "~/a",
            "~root/a",
            "srv/data/a",
            "C:/a",
            "/srv/data\\..\\..\\etc",
            "/srv/data/\x00/../..",
            [],
        ),
        *(
            "/srv/data/%2e%2e/etc",
            "/srv/data/%252e%252e/etc",
            "/srv/data/%2Fetc",
            "/srv/data/\n",
            "/srv/data/\u202e",
            "/srv/data/\uff0e\uff0e/x",
            None,
        ),
        *(
            "/srv/data/\u2024\u2024/x",
            "/srv/data\uff0fx",
            "/srv/data/a\u200b",
            5,
            ["/srv/data/a", "b"],
            "/" + "a" * 5000,
        ),
        *("file:///etc/passwd", "\\\\server\\share", "/srv/data/\ud800"),
    ],
)
def test_is_within_refuses_paths_without_a_known_place(path: Any) -> None:
    with pytest.raises(Uncomputable):
        is_within(path, "/srv/data")


@pytest.mark.parametrize("root", ["", "srv", "../srv", "~/x", "/srv\\x"])
def test_is_within_refuses_a_relative_root(root: str) -> None:
    with pytest.raises(Uncomputable):
        is_within("/srv/a", root)


@given(parts=st.lists(st.sampled_from(["..", ".", "", "a", "data", "~", "...", "srv", "..."]), max_size=12))
def test_is_within_agrees_with_the_file_system(parts: list[str]) -> None:
    path = "/srv/data/" + "/".join(parts)
    assert is_within(path, "/srv/data") is Path(os.path.abspath(path)).is_relative_to("/srv/data")


@given(path=st.text(max_size=40))
def test_no_accepted_path_leaves_its_root(path: str) -> None:
    try:
        inside = is_within(path, "/srv/data")
    except Uncomputable:
        return
    real = posixpath.normpath(f"/{path.lstrip('/')}")
    assert inside == (real == "/srv/data" or real.startswith("/srv/data/"))
    assert path.startswith("/")


def test_read_path_splits_a_path() -> None:
    assert read_path("/srv/x/../a.tar.GZ") == {
        "absolute": True,
        "normal": "/srv/a.tar.GZ",
        "folder": "/srv",
        "name": "a.tar.GZ",
        "extension": "gz",
    }
    relative = read_path("../.ssh")
    assert (relative["absolute"], relative["normal"], relative["extension"]) == (False, "../.ssh", "")
