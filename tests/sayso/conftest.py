"""Fixtures of the SDK's tests: a desk in the test's process, a bank, and programs of the command line."""

from collections.abc import Iterator

import pytest

from sayso.testing import InProcessDesk
from tests.sayso.banks import Bank
from tests.sayso.cli.programs import Programs


@pytest.fixture
def desk() -> InProcessDesk:
    return InProcessDesk()


@pytest.fixture
def bank() -> Bank:
    return Bank()


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    programs = Programs()
    yield programs
    programs.close()
