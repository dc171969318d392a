"""A saver that keeps checkpoints in MongoDB, and a store and a cache that can share the database."""

try:
    import pymongo as _driver
except ModuleNotFoundError as error:
    message = "persistence.mongo needs the driver PyMongo: pip install 'actorgraph[mongo]'."
    raise ModuleNotFoundError(message, name="pymongo") from error
if not hasattr(_driver, "AsyncMongoClient"):
    message = f"persistence.mongo needs PyMongo 4.13 or newer, not {_driver.version}: pip install 'actorgraph[mongo]'."
    raise ImportError(message, name="pymongo")

from persistence.mongo.cache import MongoDBCache
from persistence.mongo.options import Options
from persistence.mongo.saver import MongoDBSaver
from persistence.mongo.store import MongoDBStore

AsyncMongoDBSaver = MongoDBSaver
AsyncMongoDBStore = MongoDBStore

__all__ = ["AsyncMongoDBSaver", "AsyncMongoDBStore", "MongoDBCache", "MongoDBSaver", "MongoDBStore", "Options"]
