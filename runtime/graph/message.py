"""Conversations: the messages state and its reducer."""

from runtime.schema.messages import MessagesState, add_messages

__all__ = ["MessagesState", "add_messages"]
