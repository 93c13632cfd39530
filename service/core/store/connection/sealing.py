"""Secrets in the store: AES-256-GCM under the key file, each bound to its place.

A sealed value is `sealed:v1:<key id>:` and, in base64, a nonce and the ciphertext. Without a key file values are stored
as they are. Values that were stored so remain readable once there is one.
"""

import base64
import binascii
import json
import os
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sayso.core.key_files import SecretKey, read_key_file
from sayso.errors import Altered, InvalidInput, Unreadable

_MARK = b"sealed:v1:"
_NONCE_BYTES = 12
RUN_STATE = "run state"  # a purpose


class Keyring:
    """The keys of a key file. They are read again where a value names another, so a rotation needs no restart."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._keys: tuple[SecretKey, ...] = read_key_file(path) if path is not None else ()

    @property
    def current(self) -> SecretKey | None:
        return self._keys[0] if self._keys else None

    def find(self, key_id: str) -> SecretKey | None:
        """Return the key with this id. Raises `InvalidInput` for a key file that cannot be read any more."""
        known = {key.id: key for key in self._keys}
        if key_id not in known and self._path is not None:
            self._keys = read_key_file(self._path)
            known = {key.id: key for key in self._keys}
        return known.get(key_id)


class Sealer:
    """Encrypts the secrets of one tenant for the store.

    `purpose` says what a value is, `place` where it is stored. A value opens for the same purpose and place alone, so
    one that was copied elsewhere in the store does not.
    """

    def __init__(self, keyring: Keyring, tenant: str) -> None:
        self._keyring, self.tenant = keyring, tenant

    @property
    def key_id(self) -> str | None:
        """The id of the key that encrypts new values; None where they stay in clear."""
        key = self._keyring.current
        return key.id if key is not None else None

    def seal(self, purpose: str, value: str, *place: str) -> str:
        """Return a text as it is stored."""
        head, body = self._encrypt(purpose, value.encode(), place)
        return head.decode() + base64.b64encode(body).decode() if head else value

    def open(self, purpose: str, stored: str | bytes, *place: str) -> str:
        """Return a stored text in clear. Raises `Altered`, or `Unreadable` with the id of a missing key."""
        raw = stored.encode() if isinstance(stored, str) else stored
        if not raw.startswith(_MARK):
            return raw.decode()
        key_id, _, body = raw.removeprefix(_MARK).partition(b":")
        try:
            sealed = base64.b64decode(body, validate=True)
        except binascii.Error:
            sealed = b""
        return self._decrypt(purpose, key_id, sealed, place).decode()

    def seal_bytes(self, purpose: str, value: bytes, *place: str) -> bytes:
        """Return bytes as they are stored."""
        head, body = self._encrypt(purpose, value, place)
        return head + body if head else value

    def open_bytes(self, purpose: str, stored: bytes, *place: str) -> bytes:
        """Return stored bytes in clear. Raises `Altered`, or `Unreadable` with the id of a missing key."""
        if not stored.startswith(_MARK):
            return stored
        key_id, _, sealed = stored.removeprefix(_MARK).partition(b":")
        return self._decrypt(purpose, key_id, sealed, place)

    def _encrypt(self, purpose: str, value: bytes, place: tuple[str, ...]) -> tuple[bytes, bytes]:
        key = self._keyring.current
        if key is None:
            return b"", value
        nonce, context = os.urandom(_NONCE_BYTES), self._describe(purpose, place)
        return _MARK + f"{key.id}:".encode(), nonce + _cipher(key, context).encrypt(nonce, value, context)

    def _decrypt(self, purpose: str, key_id: bytes, sealed: bytes, place: tuple[str, ...]) -> bytes:
        name, context = key_id[:20].decode("ascii", "backslashreplace"), self._describe(purpose, place)
        try:
            key = self._keyring.find(name)
        except InvalidInput as error:
            raise Unreadable(f"It is encrypted with the key {name}. {error.message}", key=name) from error
        if key is None:
            missing = f"It is encrypted with the key {name}, which SAYSO_KEY_FILE does not hold."
            raise Unreadable(f"{missing} Put that key back into the file.", key=name)
        try:
            return _cipher(key, context).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], context)
        except (InvalidTag, ValueError) as error:
            closed = f"It does not open with the key {name}: it was altered, or copied from another place."
            raise Altered(closed, key=name) from error

    def _describe(self, purpose: str, place: tuple[str, ...]) -> bytes:
        return json.dumps([purpose, self.tenant, *place]).encode()


def _cipher(key: SecretKey, context: bytes) -> AESGCM:
    """Return the cipher of one place: with a key for each, no key is used for so many values that nonces repeat."""
    return AESGCM(key.derive(f"seal {context.decode()}"))
