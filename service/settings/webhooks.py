"""Settings of webhooks in and out."""

import base64
from typing import Annotated

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode

WEAKEST_WEBHOOK_SECRET_BYTES = 24


class WebhookSettings(BaseSettings):
    """Secrets and receivers of webhooks; a part of `Settings`."""

    webhook_secret: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        default=(),
        description="Secrets (`whsec_…`) that sign decisions sent to `/hooks/decisions`; several with commas while "
        "rotating. Without one the webhook is closed.",
    )
    aap_allow_loopback: bool = Field(
        default=False,
        description="Let receivers of the Agent Approval Protocol be on this very machine, for tests. Refused in "
        "production.",
    )

    @field_validator("webhook_secret", mode="before")
    @classmethod
    def _split_secrets(cls, value: object) -> object:
        return tuple(word.strip() for word in value.split(",") if word.strip()) if isinstance(value, str) else value

    @field_validator("webhook_secret", mode="after")
    @classmethod
    def _check_webhook_secrets(cls, secrets: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        for secret in secrets:
            _check_webhook_secret(secret.get_secret_value())
        return secrets


def _check_webhook_secret(secret: str) -> None:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        key = b""
    if not secret.startswith("whsec_") or len(key) < WEAKEST_WEBHOOK_SECRET_BYTES:
        raise ValueError(f"write whsec_ and then at least {WEAKEST_WEBHOOK_SECRET_BYTES} random bytes in base64")
