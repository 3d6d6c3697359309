"""Encryption at rest: AES-256-GCM, a fresh nonce for every record.

What a record belongs to (table and id) is authenticated with it, so records can be neither changed
nor put in each other's place without it being noticed.
"""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path

from faircal._base.errors import MissingExtraError, ParameterError, StorageError
from faircal._base.files import existing

#: Bytes of a key, and of a nonce.
KEY_BYTES, _NONCE_BYTES = 32, 12

#: What the database holds to know its key by.
_CHECK = b"faircal"


class TemplateCipher:
    """Encrypts and decrypts with one key of 32 bytes.

    >>> cipher = TemplateCipher(bytes(32))
    >>> cipher.decrypt(cipher.encrypt(b"secret", "templates:anna"), "templates:anna")
    b'secret'
    """

    def __init__(self, key: bytes) -> None:
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise ParameterError(f"key of the store: expected {KEY_BYTES} bytes; give another one")
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError as error:
            raise MissingExtraError(
                "encrypted templates need cryptography, which is not installed: "
                "pip install 'faircal[serve]'"
            ) from error
        self._aes = AESGCM(key)
        self._wrong: type[Exception] = InvalidTag

    def encrypt(self, plain: bytes, belongs: str) -> bytes:
        """Return nonce and ciphertext of `plain`, bound to what it belongs to."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._aes.encrypt(nonce, plain, belongs.encode())

    def decrypt(self, encrypted: bytes, belongs: str) -> bytes:
        """Return what was encrypted; `StorageError` where it is not what `encrypt` gave."""
        try:
            return self._aes.decrypt(
                encrypted[:_NONCE_BYTES], encrypted[_NONCE_BYTES:], belongs.encode()
            )
        except (self._wrong, ValueError) as error:
            raise StorageError(
                f"{belongs} can't be decrypted: the record was changed or moved, or the key was; "
                "restore a backup, or delete it"
            ) from error

    def proof(self) -> bytes:
        """Return what a database keeps to know this key again."""
        return self.encrypt(_CHECK, "key")

    def proves(self, proof: bytes) -> bool:
        """Tell whether `proof` was made with this key."""
        try:
            return self.decrypt(proof, "key") == _CHECK
        except StorageError:
            return False


def read_key(path: str | Path) -> bytes:
    """Read a key from a file: 32 bytes as they are, as 64 hexadecimal digits or as Base64."""
    raw = existing(path).read_bytes()
    if len(raw) == KEY_BYTES:
        return raw
    text = raw.strip()
    for decode in (bytes.fromhex, _base64):
        try:
            key = decode(text.decode("ascii"))
        except (ValueError, binascii.Error):
            continue
        if len(key) == KEY_BYTES:
            return key
    raise ParameterError(
        f"{path}: expected a key of {KEY_BYTES} bytes (raw, 64 hexadecimal digits or Base64); "
        f"make one with: openssl rand -hex {KEY_BYTES} > FILE"
    )


def _base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
