"""Checks on the database's path, made before anything is opened: opening creates the file."""

from __future__ import annotations

from pathlib import Path

from runtime.cli.failing import CommandError


def require_file(db: str) -> None:
    """Raise CommandError unless the database exists already."""
    if not Path(db).is_file():
        msg = f"There is no file {db!r}, so there is no thread to go on with."
        raise CommandError(msg, kind="ThreadNotFound")


def folder_of(db: str) -> str:
    """Return the directory that a database lies or is to be made in. Raises CommandError if it does not exist."""
    folder = Path(db).absolute().parent
    if not folder.is_dir():
        msg = f"{db} cannot be opened: there is no directory {folder}."
        raise CommandError(msg, kind="FileNotFoundError")
    return str(folder)
