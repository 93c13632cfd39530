"""One installation with all channels but Slack, shared by the journeys over them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.channels.offices import Office, running_office


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the journeys of an installation in one process of pytest-xdist, so that it starts once."""
    for item in items:
        if "office" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("office"))
        elif item.path.name == "test_slack.py":
            item.add_marker(pytest.mark.xdist_group("slack"))


@pytest.fixture(scope="package")
def office(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[Office]:
    with running_office(tmp_path_factory.mktemp("office"), certificate) as running:
        yield running
