"""Sealed values open with their key, at their place, unchanged, and in no other way."""

from __future__ import annotations

import base64
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persistence.errors import DecryptionError
from persistence.serde import EncryptedSerializer, Registry, Serializer, place
from persistence.serde.encrypted import KEY_VARIABLE
from tests.persistence.serde.samples import REGISTERED, SAMPLES, Point, same

pytest.importorskip("cryptography")

KEY = bytes(range(32))
HERE = place("thread", "", "checkpoint", "channel")


@pytest.fixture
def encrypted() -> EncryptedSerializer:
    """Return a serializer with a key."""
    serializer = EncryptedSerializer(KEY)
    serializer.register_types(REGISTERED)
    return serializer


@pytest.mark.parametrize("name", ["none", "bytes", "text", "model", "nested tuple", "huge int"])
def test_what_was_sealed_opens(encrypted: EncryptedSerializer, name: str) -> None:
    """Any value comes back from its place; neither it nor that it is None can be seen."""
    typed = encrypted.dumps_typed(SAMPLES[name])
    kind, data = encrypted.seal(typed, HERE)
    assert kind == typed[0] + "+aes"
    assert typed[1] == b"" or typed[1] not in data
    assert same(encrypted.loads_typed(encrypted.open((kind, data), HERE)), SAMPLES[name])
    assert same(encrypted.loads_typed(encrypted.open((kind, memoryview(data)), HERE)), SAMPLES[name])  # type: ignore[arg-type]


def test_the_same_value_never_looks_the_same(encrypted: EncryptedSerializer) -> None:
    """Two seals of one value have nothing in common but the mark of the key."""
    typed = encrypted.dumps_typed("secret")
    (_, one), (_, other) = encrypted.seal(typed, HERE), encrypted.seal(typed, HERE)
    assert one[:4] == other[:4]
    assert one[4:] != other[4:]


def test_every_flipped_bit_and_every_cut_is_noticed(encrypted: EncryptedSerializer) -> None:
    """Damage of any part, the mark of the key included, is a DecryptionError."""
    kind, data = encrypted.seal(encrypted.dumps_typed({"a": 1}), HERE)
    for position in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            with pytest.raises(DecryptionError):
                encrypted.open((kind, bytes(damaged)), HERE)
        with pytest.raises(DecryptionError):
            encrypted.open((kind, data[:position]), HERE)
    with pytest.raises(DecryptionError):
        encrypted.open((kind, data + b"\0"), HERE)


def test_a_value_stays_in_its_place(encrypted: EncryptedSerializer) -> None:
    """A row copied elsewhere, or whose type was changed, does not open."""
    kind, data = encrypted.seal(encrypted.dumps_typed("balance: 100"), HERE)
    places = [
        place("other", "", "checkpoint", "channel"),
        place("thread", "ns", "checkpoint", "channel"),
        place("thread", "", "older", "channel"),
        place("thread", "", "checkpoint", "other"),
        place("thread", "", "checkpointchannel"),
        b"",
    ]
    for there in places:
        with pytest.raises(DecryptionError, match="another place"):
            encrypted.open((kind, data), there)
    with pytest.raises(DecryptionError):
        encrypted.open(("bytes+aes", data), HERE)


def test_plain_values_are_not_accepted(encrypted: EncryptedSerializer) -> None:
    """There is no downgrade: who can write rows but has no key cannot make one that opens."""
    for value in (None, b"x", {"a": 1}):
        with pytest.raises(DecryptionError, match="not encrypted"):
            encrypted.open(encrypted.dumps_typed(value), HERE)


def test_a_plain_serializer_does_not_read_sealed_values(encrypted: EncryptedSerializer) -> None:
    """It says what is missing; plain values pass through it untouched."""
    plain = Serializer()
    sealed = encrypted.seal(encrypted.dumps_typed(1), HERE)
    with pytest.raises(DecryptionError, match="EncryptedSerializer"):
        plain.open(sealed, HERE)
    typed = plain.dumps_typed(1)
    assert plain.open(plain.seal(typed, HERE), HERE) is typed
    assert not plain.encrypts
    assert encrypted.encrypts


def test_another_key(encrypted: EncryptedSerializer) -> None:
    """Without the key a value does not open; the error does not tell keys."""
    sealed = encrypted.seal(encrypted.dumps_typed(1), HERE)
    with pytest.raises(DecryptionError, match="old_keys"):
        EncryptedSerializer(bytes(32)).open(sealed, HERE)


def test_a_change_of_keys(encrypted: EncryptedSerializer) -> None:
    """Old keys open; only the new one seals."""
    sealed = encrypted.seal(encrypted.dumps_typed(1), HERE)
    newer = EncryptedSerializer(bytes(16), old_keys=[bytes(24), KEY.hex()])
    assert newer.loads_typed(newer.open(sealed, HERE)) == 1
    with pytest.raises(DecryptionError):
        encrypted.open(newer.seal(newer.dumps_typed(1), HERE), HERE)


@pytest.mark.parametrize("size", [16, 24, 32])
def test_keys_as_bytes_and_text(size: int) -> None:
    """Text of just the length of a key is the key; longer text is its hexadecimal or base64 form."""
    raw = bytes(range(0xC0, 0xC0 + size))
    sealed = EncryptedSerializer(raw).seal(("null", b""), HERE)
    encoded = [base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode(), raw.hex(), raw.hex() + "\n"]
    for text in encoded:
        if len(text.strip()) not in {16, 24, 32}:
            assert EncryptedSerializer(text).open(sealed, HERE) == ("null", b"")
    letters = "k" * size
    sealed = EncryptedSerializer(letters.encode()).seal(("null", b""), HERE)
    assert EncryptedSerializer(letters).open(sealed, HERE) == ("null", b"")


@pytest.mark.parametrize("key", [b"short", b"x" * 33, "short", "", "ü" * 16, "z" * 64, "=" * 44])
def test_what_is_no_key(key: bytes | str) -> None:
    """The error tells the length, not the key."""
    with pytest.raises(ValueError, match=f"length {len(key)}"):
        EncryptedSerializer(key)


def test_the_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key argument the environment is asked; without either, the error names the variable."""
    monkeypatch.setenv(KEY_VARIABLE, KEY.hex())
    sealed = EncryptedSerializer().seal(("null", b""), HERE)
    assert EncryptedSerializer(KEY).open(sealed, HERE) == ("null", b"")
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(ValueError, match=KEY_VARIABLE):
        EncryptedSerializer()


def test_the_key_is_not_shown(encrypted: EncryptedSerializer) -> None:
    """A repr tells keys apart without telling them."""
    assert KEY.hex() not in repr(encrypted)
    assert repr(encrypted) != repr(EncryptedSerializer(bytes(32)))


def test_registry_and_strictness_are_passed_on() -> None:
    """It differs from the plain serializer in nothing else."""
    registry = Registry()
    serializer = EncryptedSerializer(KEY, registry=registry, strict=False)
    sealed = serializer.seal(serializer.dumps_typed(Point(1)), HERE)
    assert registry.knows(Point)
    assert serializer.loads_typed(serializer.open(sealed, HERE)) == Point(1)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(ImportError, match="encrypted"):
        EncryptedSerializer(KEY)


words = st.lists(st.text(st.characters(categories=["L", "N", "C"]), max_size=4), max_size=4)


@given(words, words)
def test_no_two_places_look_alike(one: list[str], other: list[str]) -> None:
    """Whatever the parts contain, and however many there are."""
    assert (place(*one) == place(*other)) == (one == other)


def test_the_name_that_langgraph_has_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Serializer(registry=Registry(), strict=False)
    plain.register_types(REGISTERED)
    named = EncryptedSerializer.from_pycryptodome_aes(plain, key=KEY)
    assert (named.registry, named.strict) == (plain.registry, False)
    sealed = named.seal(named.dumps_typed(Point(1, 2)), HERE)
    assert named.loads_typed(EncryptedSerializer(KEY).open(sealed, HERE)) == Point(1, 2)
    assert EncryptedSerializer.from_pycryptodome_aes(key=KEY).open(sealed, HERE)
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with pytest.raises(ValueError, match="needs a key"):
        EncryptedSerializer.from_pycryptodome_aes()
