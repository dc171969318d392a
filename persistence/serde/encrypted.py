"""Stored values that only the holder of a key can read, change or move.

AES in Galois/Counter mode, from the ``cryptography`` package. Type and place of a value are bound to it: a row
copied to another thread, checkpoint or channel does not open. Thread ids, channel names and metadata are not hidden.

Nonces are random, so one key should seal fewer than 2**32 values; change it before, and keep the old one in
``old_keys`` for reading.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from persistence.errors import DecryptionError
from persistence.serde.serializer import ENCRYPTED, Serializer, Typed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from persistence.serde.registry import Registry

KEY_VARIABLE: Final = "ACTORGRAPH_AES_KEY"
"""Environment variable that holds the key if none is given."""

_KEY_SIZES: Final = (16, 24, 32)
_ID_SIZE: Final = 4
_NONCE_SIZE: Final = 12
_HEAD_SIZE: Final = _ID_SIZE + _NONCE_SIZE


class EncryptedSerializer(Serializer):
    """A serializer whose ``seal`` encrypts and whose ``open`` accepts nothing that is not sealed.

    Sealed data is four bytes that tell keys apart, a nonce of twelve, and ciphertext with its tag.
    """

    encrypts = True

    def __init__(
        self,
        key: bytes | str | None = None,
        *,
        old_keys: Iterable[bytes | str] = (),
        registry: Registry | None = None,
        strict: bool = True,
    ) -> None:
        """Take the key, or that of the environment variable ``ACTORGRAPH_AES_KEY``; ``old_keys`` only open.

        A key is 16, 24 or 32 bytes. Text of exactly so many ASCII characters is the key itself; any other text is its
        hexadecimal or base64 form.

        Raises:
            ValueError: no key, or not one of these.
            ImportError: the ``cryptography`` package is not installed.
        """
        super().__init__(registry=registry, strict=strict)
        if key is None:
            key = os.environ.get(KEY_VARIABLE)
        if key is None:
            msg = f"EncryptedSerializer needs a key: pass key=, or set the environment variable {KEY_VARIABLE}."
            raise ValueError(msg)
        current = _key_bytes(key)
        self._key_id = _key_id(current)
        self._ciphers = {_key_id(each): _cipher(each) for each in (*map(_key_bytes, old_keys), current)}
        self._cipher = self._ciphers[self._key_id]

    @classmethod
    def from_pycryptodome_aes(cls, serde: Serializer | None = None, *, key: bytes | str | None = None) -> Self:
        """Return a serializer for a key, under the name that LangGraph has for it; made with ``cryptography`` here.

        ``serde`` is a serializer whose registered types are to be read and written; ``key`` is as for the class.
        """
        if serde is None:
            return cls(key)
        return cls(key, registry=serde.registry, strict=serde.strict)

    def seal(self, typed: Typed, place: bytes) -> Typed:
        """Encrypt a stored value for one place."""
        kind, data = typed
        kind += ENCRYPTED
        nonce = os.urandom(_NONCE_SIZE)
        return kind, self._key_id + nonce + self._cipher.encrypt(nonce, data, _bound(kind, place))

    def open(self, typed: Typed, place: bytes) -> Typed:
        """Decrypt a stored value that was sealed for this place.

        Raises:
            DecryptionError: it is plain, damaged, from another place, or made with a key that is not at hand.
        """
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - optional package

        kind, data = typed
        if not kind.endswith(ENCRYPTED):
            msg = f"A stored value ({kind}) is not encrypted; a serializer that encrypts reads no plain values."
            raise DecryptionError(msg)
        data = bytes(data)
        cipher = self._ciphers.get(data[:_ID_SIZE])
        if cipher is None:
            msg = "A stored value was encrypted with a key that is not at hand (see old_keys), or was damaged."
            raise DecryptionError(msg)
        nonce, sealed = data[_ID_SIZE:_HEAD_SIZE], data[_HEAD_SIZE:]
        try:
            return kind.removesuffix(ENCRYPTED), cipher.decrypt(nonce, sealed, _bound(kind, place))
        except (InvalidTag, ValueError):  # ValueError: too short for nonce or tag
            msg = "A stored value does not decrypt: it was damaged, cut short, or belongs to another place."
            raise DecryptionError(msg) from None

    def __repr__(self) -> str:
        """Tell keys apart without telling them."""
        return f"<{type(self).__name__} key {self._key_id.hex()}>"


def _bound(kind: str, place: bytes) -> bytes:
    return kind.encode() + b"\0" + place


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"actorgraph key id\0" + key).digest()[:_ID_SIZE]


def _cipher(key: bytes) -> AESGCM:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - optional package
    except ImportError as error:
        msg = "Encryption needs the cryptography package: pip install 'actorgraph[encrypted]'."
        raise ImportError(msg) from error
    return AESGCM(key)


def _key_bytes(key: bytes | str) -> bytes:
    for candidate in _candidates(key):
        if len(candidate) in _KEY_SIZES:
            return candidate
    msg = f"An AES key is 16, 24 or 32 bytes, or their hexadecimal or base64 text; this one has length {len(key)}."
    raise ValueError(msg)


def _candidates(key: bytes | str) -> Iterable[bytes]:
    if isinstance(key, bytes | bytearray | memoryview):
        yield bytes(key)
        return
    text = key.strip()
    if not text.isascii():
        return
    yield text.encode()
    with suppress(ValueError):  # not hexadecimal
        yield bytes.fromhex(text)
    with suppress(binascii.Error):  # not base64
        yield base64.b64decode(text, altchars=b"-_" if {"-", "_"} & set(text) else None, validate=True)
