"""Give the tests of the SDK a desk in their own process, and a bank to be asked about."""

import pytest

from sayso.testing import InProcessDesk
from tests.sayso.banks import Bank


@pytest.fixture
def desk() -> InProcessDesk:
    return InProcessDesk()


@pytest.fixture
def bank() -> Bank:
    return Bank()
