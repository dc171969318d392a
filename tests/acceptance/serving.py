"""A web application that runs durable graphs, the servers it stands behind, and a client on a bare socket."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

import anyio
import h11
import hypercorn
import hypercorn.trio
import uvicorn
from anyio.abc import SocketStream
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from persistence.sqlite import SqliteSaver
from runtime.graph import StateGraph


def application(builder: StateGraph[Any, Any, Any, Any], path: str) -> Starlette:
    """Return an app whose requests all run one graph, on one saver that is open as long as the app is."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with SqliteSaver(path) as saver:
            app.state.graph = builder.compile(saver)
            yield

    thread = "/threads/{thread_id}"
    routes = [
        Route(thread, run, methods=["POST"]),
        Route(thread, state),
        Route(f"{thread}/events", events, methods=["POST"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def _config(request: Request) -> dict[str, Any]:
    return {"configurable": {"thread_id": request.path_params["thread_id"]}}


async def run(request: Request) -> JSONResponse:
    """Run the thread to its end and answer with the output."""
    asked = await request.json()
    durability = request.query_params.get("durability")
    return JSONResponse(await request.app.state.graph.ainvoke(asked, _config(request), durability=durability))


async def state(request: Request) -> JSONResponse:
    """Answer with what the thread holds."""
    snapshot = await request.app.state.graph.aget_state(_config(request))
    return JSONResponse({"values": snapshot.values, "next": snapshot.next})


class Events(StreamingResponse):
    """Server-sent events whose source is closed with the response: a client may leave while one is being sent."""

    def __init__(self, source: AsyncGenerator[str, None]) -> None:
        """Take what yields the events."""
        super().__init__(source, media_type="text/event-stream")
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the source or the client has enough."""
        async with aclosing(self._source):
            await super().__call__(scope, receive, send)


async def events(request: Request) -> Events:
    """Answer with a server-sent event for each finished node."""
    asked = await request.json()
    graph, config = request.app.state.graph, _config(request)

    async def told() -> AsyncGenerator[str, None]:
        async with graph.astream(asked, config) as stream:
            async for update in stream:
                yield f"data: {json.dumps(update)}\n\n"

    return Events(told())


class Answer(NamedTuple):
    """A response that has been read to its end."""

    status: int
    body: bytes

    def json(self) -> Any:
        """Return the body's value."""
        return json.loads(self.body)


class Exchange:
    """One request on a connection of its own, and the response as it comes."""

    def __init__(self, stream: SocketStream) -> None:
        """Take an open connection."""
        self._stream = stream
        self._protocol = h11.Connection(h11.CLIENT)
        self._unread = b""

    async def ask(self, method: str, path: str, value: Any = None) -> None:
        """Send the request."""
        body = b"" if method == "GET" else json.dumps(value).encode()
        headers = [("Host", "here"), ("Connection", "close"), ("Content-Length", str(len(body)))]
        sent = [h11.Request(method=method, target=path, headers=headers), h11.Data(body), h11.EndOfMessage()]
        await self._stream.send(b"".join(self._protocol.send(event) or b"" for event in sent))

    async def next(self) -> h11.Event:
        """Return what comes next: the response's head, data, or its end."""
        while (event := self._protocol.next_event()) is h11.NEED_DATA:
            try:
                received = await self._stream.receive()
            except anyio.EndOfStream:
                received = b""
            self._protocol.receive_data(received)
        assert isinstance(event, h11.Event), event
        return event

    async def answer(self) -> Answer:
        """Read the response to its end."""
        head = await self.next()
        assert isinstance(head, h11.Response)
        body = b""
        while isinstance(event := await self.next(), h11.Data):
            body += event.data
        return Answer(head.status_code, body)

    async def event(self) -> Any:
        """Return the value of the next server-sent event."""
        while b"\n\n" not in self._unread:
            received = await self.next()
            if isinstance(received, h11.Response):
                assert received.status_code == 200
            else:
                assert isinstance(received, h11.Data), received
                self._unread += received.data
        event, self._unread = self._unread.split(b"\n\n", 1)
        return json.loads(event.removeprefix(b"data: "))


class Site(NamedTuple):
    """Where the application is served."""

    app: Starlette
    port: int

    @asynccontextmanager
    async def asking(self, method: str, path: str, value: Any = None) -> AsyncIterator[Exchange]:
        """Send a request; leaving the block closes the connection, whatever was read."""
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            exchange = Exchange(stream)
            await exchange.ask(method, path, value)
            yield exchange

    async def get(self, path: str) -> Answer:
        """Return what is there."""
        async with self.asking("GET", path) as exchange:
            return await exchange.answer()

    async def post(self, path: str, value: Any) -> Answer:
        """Return what comes of a value."""
        async with self.asking("POST", path, value) as exchange:
            return await exchange.answer()


@asynccontextmanager
async def served(app: Starlette, backend: str) -> AsyncIterator[Site]:
    """Serve on a free port, with the server that knows the event loop; return once it has shut down."""
    stop = anyio.Event()
    serve = _uvicorn if backend == "asyncio" else _hypercorn
    async with anyio.create_task_group() as nursery:
        port: int = await nursery.start(partial(serve, app, stop))
        try:
            yield Site(app, port)
        finally:
            stop.set()


async def _uvicorn(app: Starlette, stop: anyio.Event, *, task_status: anyio.abc.TaskStatus[int]) -> None:
    """Serve on asyncio, which is the only event loop that uvicorn knows."""
    config = uvicorn.Config(app, http="h11", ws="none", lifespan="on", log_config=None, backlog=2048)
    server = uvicorn.Server(config)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(config.backlog)
        async with anyio.create_task_group() as nursery:
            nursery.start_soon(server.serve, [listening])
            # Whoever connects before it accepts waits in the backlog.
            task_status.started(listening.getsockname()[1])
            await stop.wait()
            server.should_exit = True


async def _hypercorn(app: Starlette, stop: anyio.Event, *, task_status: anyio.abc.TaskStatus[int]) -> None:
    """Serve on trio."""
    config = hypercorn.Config()
    config.bind, config.backlog = ["127.0.0.1:0"], 2048
    async with anyio.create_task_group() as nursery:
        framework: Any = app
        (bound,) = await nursery.start(partial(hypercorn.trio.serve, framework, config, shutdown_trigger=stop.wait))
        task_status.started(int(bound.rsplit(":", 1)[1]))
