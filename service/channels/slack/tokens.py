"""Encryption of the token that OAuth leads to: the store holds it, the channels file holds the key.

The key is derived from the client secret, the app, the workspace and the channel's name.
"""

from base64 import urlsafe_b64encode
from typing import NamedTuple

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import SecretStr

from service.channels.slack.config import SlackConfig


class OpenedToken(NamedTuple):
    """A decrypted token. `stale` says that an old client secret encrypted it."""

    token: str
    stale: bool


def seal_token(config: SlackConfig, token: str) -> str:
    """Return the token, encrypted under the current client secret."""
    return _list_ciphers(config)[0].encrypt(token.encode()).decode()


def open_token(config: SlackConfig, sealed: str) -> OpenedToken | None:
    """Return the token, or None if no client secret decrypts it."""
    for place, cipher in enumerate(_list_ciphers(config)):
        try:
            return OpenedToken(cipher.decrypt(sealed).decode(), place > 0)
        except (InvalidToken, ValueError):
            continue
    return None


def _list_ciphers(config: SlackConfig) -> list[Fernet]:
    """Return a cipher for the current client secret, then for the old one."""
    secrets = (config.client_secret, config.old_client_secret)
    return [Fernet(_derive_key(config, secret)) for secret in secrets if secret is not None]


def _derive_key(config: SlackConfig, secret: SecretStr) -> bytes:
    info = f"sayso slack token {config.name} {config.app_id} {config.team_id}"
    derived = HKDF(SHA256(), 32, salt=None, info=info.encode()).derive(secret.get_secret_value().encode())
    return urlsafe_b64encode(derived)
