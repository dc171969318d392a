"""How values become bytes and come back: exactly, checked, and without importing what the bytes name."""

from persistence.serde.encrypted import EncryptedSerializer
from persistence.serde.registry import SHARED, Registry, register_types
from persistence.serde.serializer import Serializer, SerializerProtocol, place

__all__ = ["SHARED", "EncryptedSerializer", "Registry", "Serializer", "SerializerProtocol", "place", "register_types"]
