"""The OpenAPI file says what the API does: complete, with examples that hold, and true under fire."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import schemathesis
import uvicorn
from fastapi import FastAPI
from hypothesis import HealthCheck, settings as hypothesis_settings
from pydantic import SecretStr
from schemathesis.checks import not_a_server_error
