"""Settings of webhooks in and out."""

import base64
from typing import Annotated

from pydantic import SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from service.settings.edge import SPLIT, Words
from service.settings.receivers import InternalReceivers, read_receivers

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
    internal_receivers: Words = ()
    """Hosts and networks of your own to which webhooks, assessors and messages of the Agent Approval Protocol may be
    sent, such as `n8n:5678,10.1.0.0/16`; without a port, every port. `http` is allowed to them. Empty: none."""

    @property
    def receivers(self) -> InternalReceivers:
        """The internal receivers, parsed."""
        return read_receivers(self.internal_receivers)

    @field_validator("internal_receivers", mode="after")
    @classmethod
    def _check_receivers(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        read_receivers(words)
        return words

    @field_validator("webhook_secret", mode="after")
    @classmethod
    def _check_webhook_secrets(cls, secrets: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        for secret in (wrapped.get_secret_value() for wrapped in secrets):
            try:
                key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
            except ValueError:
                key = b""
            if not secret.startswith("whsec_") or len(key) < WEAKEST_WEBHOOK_SECRET_BYTES:
                raise ValueError(
                    f"write whsec_ and then at least {WEAKEST_WEBHOOK_SECRET_BYTES} random bytes in base64"
                )
        return secrets
