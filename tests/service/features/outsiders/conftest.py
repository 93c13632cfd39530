"""Give tests of invitations a real mail server, and settings with a channel to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.core.settings import Settings
from tests.fakes.smtp import MailServer, serving_mail
from tests.service.features.phone.worlds import settings_with_channels


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with serving_mail() as server:
        yield server


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path, mail: MailServer) -> Settings:
    return settings_with_channels(clean_store_url, tmp_path, mail)
