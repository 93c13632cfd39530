"""One installation with all channels but Slack, shared by the journeys over them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.channels.offices import Office, running_office


@pytest.fixture(scope="package")
def office(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[Office]:
    with running_office(tmp_path_factory.mktemp("office"), certificate) as running:
        yield running
