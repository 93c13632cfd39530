"""Settings of webhooks in and out."""

import base64
from typing import Annotated

from pydantic import SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from service.settings.edge import SPLIT

WEAKEST_WEBHOOK_SECRET_BYTES = 24


class WebhookSettings(BaseSettings):
    """Secrets and receivers of webhooks; a part of `Settings`."""

    model_config = SettingsConfigDict(use_attribute_docstrings=True)

    webhook_secret: Annotated[tuple[SecretStr, ...], NoDecode, SPLIT] = ()
    """Secrets (`whsec_…`) that sign decisions sent to `/hooks/decisions`; several with commas while rotating. Without
    one that address is closed. Prefer senders, each with its own secret."""
    aap_allow_loopback: bool = False
    """Let webhook endpoints and receivers of the Agent Approval Protocol be on this very machine, for tests. Refused in
    production."""

    @field_validator("webhook_secret", mode="after")
    @classmethod
    def _check_webhook_secrets(cls, secrets: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        for secret in (one.get_secret_value() for one in secrets):
            try:
                key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
            except ValueError:
                key = b""
            if not secret.startswith("whsec_") or len(key) < WEAKEST_WEBHOOK_SECRET_BYTES:
                raise ValueError(
                    f"write whsec_ and then at least {WEAKEST_WEBHOOK_SECRET_BYTES} random bytes in base64"
                )
        return secrets
