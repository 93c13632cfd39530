"""Settings of spans and access lines."""

from importlib.util import find_spec
from urllib.parse import urlsplit

from pydantic import field_validator
from pydantic_settings import BaseSettings

_PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter")


class TelemetrySettings(BaseSettings, use_attribute_docstrings=True):
    """The collector of spans, and access lines; a part of `Settings`."""

    otlp_endpoint: str | None = None
    """Collector of OpenTelemetry to which service, workers and clock send spans of calls whose agent sent a
    `traceparent`, such as `http://127.0.0.1:4318`. It needs the packages of `sayso[otel]`. Unset: no spans."""
    access_log: bool = True
    """Write a log line for each request, but those of health checks and metrics."""

    @field_validator("otlp_endpoint", mode="after")
    @classmethod
    def _check_otlp_endpoint(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or set("@?#") & {*url}:
            raise ValueError("write the base address of the collector, such as http://127.0.0.1:4318")
        if any(find_spec(name) is None for name in ("opentelemetry", *_PACKAGES)):
            raise ValueError("spans need more packages; install them with pip install 'sayso[otel]'")
        return url
