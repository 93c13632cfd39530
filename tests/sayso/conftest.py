"""Fixtures of the SDK's tests: a desk in the test's process, and a bank."""

import pytest

from sayso.testing import InProcessDesk
from tests.sayso.banks import Bank


@pytest.fixture
def desk() -> InProcessDesk:
    return InProcessDesk()


@pytest.fixture
def bank() -> Bank:
    return Bank()
