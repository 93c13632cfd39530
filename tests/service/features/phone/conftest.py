"""Settings with channels, and the fakes of their providers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.core.settings import Settings
from tests.fakes.push import PushService, serving_push
from tests.fakes.smtp import MailServer, serving_mail
from tests.service.features.phone.worlds import settings_with_channels


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with serving_mail() as server:
        yield server


@pytest.fixture
def push(certificate: Path) -> Iterator[PushService]:
    with serving_push(certificate) as service:
        yield service


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path, mail: MailServer) -> Settings:
    return settings_with_channels(clean_store_url, tmp_path, mail)
