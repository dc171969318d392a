"""The demo's second half: the history of a thread, and a branch off an earlier point of it."""

from __future__ import annotations

from typing import Any, Final

from persistence.sqlite import SqliteSaver
from runtime.cli.demo_graph import describe_graph

NEW_TOPIC: Final = "dogs: corgi"


async def travel(db: str, thread: str) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return a thread's history, and what a fork came to: the topic changed before poem and joke were written.

    The fork is None where the history has no such point, as after a run that was saved only at its end.
    """
    async with SqliteSaver(db) as saver:
        graph = describe_graph().compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": thread}}
        history = [snapshot async for snapshot in graph.aget_state_history(config)]
        shown = [
            {
                "step": (snapshot.metadata or {}).get("step"),
                "source": (snapshot.metadata or {}).get("source"),
                "checkpoint_id": snapshot.config["configurable"]["checkpoint_id"],
                "values": snapshot.values,
                "next": list(snapshot.next),
            }
            for snapshot in history
        ]
        at = next((snapshot for snapshot in history if set(snapshot.next) == {"poem", "joke"}), None)
        if at is None:
            return shown, None
        forked = await graph.aupdate_state(at.config, {"topic": NEW_TOPIC}, as_node="change_topic")
        result = await graph.ainvoke(None, forked)
        old = await graph.aget_state(history[0].config)
        return shown, {
            "from": at.config["configurable"]["checkpoint_id"],
            "step": (at.metadata or {}).get("step"),
            "update": {"topic": NEW_TOPIC},
            "checkpoint_id": forked["configurable"]["checkpoint_id"],
            "output": result["final_output"],
            "old_output": old.values["final_output"],
            "old_branch_unchanged": old.values == history[0].values,
        }
