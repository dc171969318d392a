"""A newest checkpoint that cannot be read any more: the thread goes on from an older one."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from persistence.errors import CorruptDataError
from persistence.sqlite import SqliteSaver
from tests.stories.graphs import CONFIG, chain

DAMAGES = {
    "a value": "UPDATE checkpoint_blobs SET blob = x'00' WHERE version = (SELECT max(version) FROM checkpoint_blobs)",
    "a lost value": "DELETE FROM checkpoint_blobs WHERE version = (SELECT max(version) FROM checkpoint_blobs)",
    "the checkpoint": "UPDATE checkpoints SET checkpoint = '{' "
    "WHERE checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints)",
}
WAYS: dict[str, Any] = {
    "replayed": lambda graph, old: graph.ainvoke(None, old),
    "given input": lambda graph, old: graph.ainvoke({"log": ["more"]}, old),
    "updated": lambda graph, old: graph.aupdate_state(old, {"log": ["mended"]}, as_node="c"),
}


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("damage", list(DAMAGES))
async def test_the_thread_goes_on_from_an_older_checkpoint(tmp_path: Path, damage: str, way: str) -> None:
    async def node(_state: Any) -> Any:
        return {"log": ["x"]}

    path = tmp_path / "threads.db"
    async with SqliteSaver(path) as saver:
        graph = chain(("a", node), ("b", node), ("c", node)).compile(checkpointer=saver)
        await graph.ainvoke({"log": []}, CONFIG)
        newest, older = [state async for state in graph.aget_state_history(CONFIG)][:2]
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute(DAMAGES[damage]).rowcount == 1
            connection.commit()
        with pytest.raises(CorruptDataError, match=newest.config["configurable"]["checkpoint_id"]):
            await graph.aget_state(CONFIG)
        await WAYS[way](graph, older.config)
        state = await graph.aget_state(CONFIG)
        assert state.values["log"][:2] == ["x", "x"]
        assert state.config["configurable"]["checkpoint_id"] > newest.config["configurable"]["checkpoint_id"]
        assert (await graph.ainvoke({"log": ["next"]}, CONFIG))["log"][-3:] == ["x", "x", "x"]
