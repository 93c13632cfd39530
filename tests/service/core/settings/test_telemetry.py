"""The collector of spans is an address, and nothing else."""

import pytest
from pydantic import ValidationError

from service.core.settings import Settings


@pytest.mark.parametrize(
    "url", ["ftp://collector", "collector:4318", "http://", "http://me:secret@collector", "http://c/?a"]
)
def test_endpoint_that_is_no_plain_address_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="base address of the collector"):
        Settings(otlp_endpoint=url)


def test_endpoint_may_have_a_path() -> None:
    assert Settings(otlp_endpoint="https://collector.example/otlp").otlp_endpoint == "https://collector.example/otlp"
