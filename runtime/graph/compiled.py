"""A compiled graph: run it, stream it, read and edit its threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self

from persistence.contracts.saver import takes_units
from runtime.engine.vocabulary import register
from runtime.engine.writing import require_node
from runtime.errors import ConfigError
from runtime.graph.arguments import check_control, check_saver, check_store
from runtime.graph.batching import at_once, configs_of
from runtime.graph.blocking import streaming, waiting
from runtime.graph.breakpoints import breakpoints
from runtime.graph.inspecting import Inspectable
from runtime.graph.outlining import Drawable
from runtime.graph.stream import GraphStream
from runtime.graph.threads import ThreadDoors, has_saver, require_thread
from runtime.run.adapting import adapted, given
from runtime.run.conducting import conduct
from runtime.run.nesting import enclosing
from runtime.run.program import Call, Program
from runtime.run.views import RunStatistics
from runtime.schema.introspect import introspect
from runtime.streaming.hub import Hub, check_modes, check_version, parted
from runtime.types.config import merge_configs, parse_config
from runtime.types.parameters import ContextT, InputT, OutputT, StateT
from runtime.types.policy import DURABILITIES
from runtime.types.telling import add_note

if TYPE_CHECKING:
    from runtime.context.runtime import RunControl
    from runtime.context.scope import Scope
    from runtime.graph.builder import StateGraph
    from runtime.types.parameters import All
    from runtime.types.policy import Durability, MultitaskStrategy
    from runtime.types.streams import StreamVersion


class CompiledStateGraph(ThreadDoors, Inspectable, Drawable, Generic[StateT, ContextT, InputT, OutputT]):
    """What ``StateGraph.compile()`` returns. Reusable, and safe to run many times at once."""

    def __init__(self, builder: StateGraph[StateT, ContextT, InputT, OutputT], program: Program) -> None:
        self.builder = builder
        self.program = program
        program.graph = self
        self._register_types()

    def _register_types(self) -> None:
        """Let saver and cache rebuild the types that the graph's schemas mention, and the runtime's own."""
        register()
        saver, caching = self.program.saver, self.program.caching
        keepers: list[Any] = [saver] if takes_units(saver) else []
        if caching is not None:
            keepers.append(caching.cache)
        if keepers:
            hints = [self.builder.state_schema, self.builder.input_schema, self.builder.output_schema]
            hints += getattr(self.builder, "hints", ())
            if self.program.context_schema is not None:
                hints.append(self.program.context_schema)
            for keeper in keepers:
                self.program.register_types(keeper, *hints)

    @property
    def name(self) -> str:
        """Name given at compile time."""
        return self.program.plan.name

    @property
    def checkpointer(self) -> Any:
        """The saver, or None."""
        return given(self.program.saver)

    @checkpointer.setter
    def checkpointer(self, saver: Any) -> None:
        """Give the runs that follow another."""
        check_saver(saver)
        self.program.saver = adapted(saver)
        self._register_types()

    @property
    def store(self) -> Any:
        """The store, or None."""
        return self.program.store

    @store.setter
    def store(self, store: Any) -> None:
        """Give the runs that follow another."""
        check_store(store)
        self.program.store = store

    @property
    def cache(self) -> Any:
        """What keeps the results of nodes with a CachePolicy, or None."""
        return None if self.program.caching is None else self.program.caching.cache

    @property
    def step_timeout(self) -> float | None:
        """Seconds for a whole superstep; None: no limit."""
        return self.program.step_timeout

    @step_timeout.setter
    def step_timeout(self, seconds: float | None) -> None:
        """Set it for the runs that follow."""
        self.program.step_timeout = seconds

    def with_config(self, config: Mapping[str, Any] | None = None, **options: Any) -> Self:
        """Return the same graph with settings that every call starts from."""
        copied = copy(self)
        copied.program.defaults = merge_configs(self.program.defaults, config, options)
        return copied

    def __copy__(self) -> Self:
        program = self.program
        return type(self)(self.builder, Program(**{slot: getattr(program, slot) for slot in Program.__slots__}))

    def statistics(self) -> tuple[RunStatistics, ...]:
        """Return, for each run of this graph at work, where it stands and how full its buffers are."""
        return tuple(run.statistics() for run in tuple(self.program.active))

    # ---- running -----------------------------------------------------------------------------------------------

    async def ainvoke(
        self,
        input: Any,  # noqa: A002 - LangGraph's public name
        config: Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] = "values",
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: All | Sequence[str] | None = None,
        interrupt_after: All | Sequence[str] | None = None,
        durability: Durability | None = None,
        multitask_strategy: MultitaskStrategy | None = None,
        control: RunControl | None = None,
        version: StreamVersion = "v1",
        print_mode: str | Sequence[str] = (),
        debug: bool | None = None,
        checkpoint_during: bool | None = None,
    ) -> Any:
        """Run until the graph is done or paused, and return its output.

        When this returns, everything is durable. Pending questions are in the output's ``__interrupt__``.

        Args:
            input: state to start from; None resumes the thread; a Command answers, updates or routes.
            config: ``configurable.thread_id`` names the thread, ``configurable.checkpoint_id`` a point in it.
            context: passed to nodes as ``runtime.context``; never stored.
            stream_mode: ``values`` returns the output; any other mode, or a list of modes, the list of its chunks.
            output_keys: which keys to return, or the one whose value alone to return; the output schema's by default.
            interrupt_before: nodes to pause before, instead of those given to ``compile``.
            interrupt_after: nodes to pause after, likewise.
            durability: ``exit``, ``async`` (the default) or ``sync``; does nothing without a checkpointer.
            multitask_strategy: what to do if the thread is busy, instead of what was given to ``compile``.
            control: handle to drain the run.
            version: ``v2`` returns a ``GraphOutput``, with the questions apart from the output.
            print_mode: stream modes whose chunks are also printed, to watch a run.
            debug: print ``updates`` and ``values``.
            checkpoint_during: old form of ``durability``.

        Raises:
            RuntimeLibraryError: see ``runtime.errors``; a node's own error comes as it is, with notes.

        """
        if output_keys is None and self.program.plan.keyed:  # it is all that observers see of it, too
            output_keys = self.program.plan.output_keys
        if stream_mode != "values":
            stream = self.astream(
                input,
                config,
                context=context,
                stream_mode=stream_mode,
                output_keys=output_keys,
                interrupt_before=interrupt_before,
                interrupt_after=interrupt_after,
                durability=durability,
                multitask_strategy=multitask_strategy,
                control=control,
                version=version,
                print_mode=print_mode,
                debug=debug,
                checkpoint_during=checkpoint_during,
            )
            async with stream:
                return [chunk async for chunk in stream]
        parts = check_version(version)
        printed = _printed(print_mode, debug=debug)
        around = enclosing(self.program.defaults, config)
        call = self._call(
            input,
            config,
            around=around,
            context=context,
            output_keys=output_keys,
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            durability=durability,
            multitask_strategy=multitask_strategy,
            control=control,
            hub=Hub(frozenset(), single=True, version=version, printed=printed) if printed else None,
            checkpoint_during=checkpoint_during,
        )
        output = await conduct(self.program, call, around, config)
        return parted(self.program.plan, output, bare=call.output_key is not None) if parts else output

    def astream(
        self,
        input: Any,  # noqa: A002 - LangGraph's public name
        config: Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] | None = None,
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: All | Sequence[str] | None = None,
        interrupt_after: All | Sequence[str] | None = None,
        durability: Durability | None = None,
        multitask_strategy: MultitaskStrategy | None = None,
        control: RunControl | None = None,
        subgraphs: bool = False,
        version: StreamVersion = "v1",
        print_mode: str | Sequence[str] = (),
        debug: bool | None = None,
        checkpoint_during: bool | None = None,
    ) -> GraphStream:
        """Run, yielding what happens: an async iterator that is also an async context manager.

        Leaving it (``break``, ``aclose``, a cancelled scope, dropping it) ends the run; ``async with`` also waits until
        every node has stopped and what had finished is saved. A slow consumer slows the run.

        Args:
            input: as for ``ainvoke``, like all that is not said here.
            config: as for ``ainvoke``.
            context: as for ``ainvoke``.
            stream_mode: ``values``, ``updates`` (the default), ``custom``, ``messages``, ``tools``, ``tasks``,
                ``checkpoints``, ``debug``; a list of modes yields ``(mode, chunk)``.
            output_keys: restricts ``values`` and ``updates``.
            interrupt_before: as for ``ainvoke``.
            interrupt_after: as for ``ainvoke``.
            durability: as for ``ainvoke``.
            multitask_strategy: as for ``ainvoke``.
            control: as for ``ainvoke``.
            subgraphs: yield ``(namespace, chunk)``, with what happens in subgraphs.
            version: ``v2`` yields a ``StreamPart`` whatever the modes: type, ns, data, durable_upto.
            print_mode: as for ``ainvoke``.
            debug: as for ``ainvoke``.
            checkpoint_during: as for ``ainvoke``.

        Raises:
            UnknownStreamModeError: a mode that does not exist.
            ConfigError: another argument is wrong, or has a setting in a wrong place.
            UnknownNodeError: a breakpoint names no node.
            StreamOverflowError: while iterating; a node writes faster than it is read, and never waits.
            RuntimeLibraryError: while iterating, as for ``ainvoke``.

        """
        modes, single = check_modes("updates" if stream_mode is None else stream_mode)
        printed = _printed(print_mode, debug=debug)
        hub = Hub(modes, single=single, subgraphs=subgraphs, version=version, printed=printed)
        around = enclosing(self.program.defaults, config)
        call = self._call(
            input,
            config,
            around=around,
            context=context,
            output_keys=output_keys,
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            durability=durability,
            multitask_strategy=multitask_strategy,
            control=control,
            hub=hub,
            checkpoint_during=checkpoint_during,
        )
        return GraphStream(partial(conduct, self.program, call, around, config), hub)

    async def abatch(
        self,
        /,
        inputs: Sequence[Any],
        config: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        *,
        return_exceptions: bool = False,
        **options: Any,
    ) -> list[Any]:
        """Run for each of the inputs, all at once, and return their outputs in the order of the inputs.

        Args:
            inputs: what each run starts from, as for ``ainvoke``.
            config: of all runs, or one for each; its ``max_concurrency`` also limits how many run at once.
            return_exceptions: return what a run raises in place of its output. Otherwise the first failure ends the
                other runs, and is raised.
            options: of each run, as for ``ainvoke``.

        Raises:
            ConfigError: there are not as many configs as inputs.
            RuntimeLibraryError: as for ``ainvoke``.

        """
        configs = configs_of(config, len(inputs))
        limits = [parse_config(self.program.defaults, one).max_concurrency for one in configs]
        limit = min((limit for limit in limits if limit), default=None)
        run = partial(self.ainvoke, **options)
        return await at_once(run, inputs, configs, limit, return_exceptions=return_exceptions)

    invoke = waiting(ainvoke)
    batch = waiting(abatch)
    stream = streaming("Run, yielding what happens; leaving it (by ``with``, ``close()``) ends the run.")(astream)

    def _call(
        self,
        given: Any,
        config: Mapping[str, Any] | None,
        *,
        context: Any,
        output_keys: str | Sequence[str] | None,
        interrupt_before: All | Sequence[str] | None,
        interrupt_after: All | Sequence[str] | None,
        durability: Durability | None,
        multitask_strategy: MultitaskStrategy | None,
        control: RunControl | None,
        around: Scope | None,
        hub: Hub | None = None,
        checkpoint_during: bool | None = None,
    ) -> Call:
        """Check everything that a call can get wrong, before anything runs or is saved."""
        program = self.program
        parsed = parse_config(program.defaults, config)
        if around is None and has_saver(program):
            require_thread(parsed)
        return Call(
            input=given,
            config=parsed,
            context=coerce_context(program.context_schema, context),
            durability=_durability(durability, checkpoint_during=checkpoint_during),
            interrupt_before=self._breakpoints(interrupt_before, program.interrupt_before, "interrupt_before"),
            interrupt_after=self._breakpoints(interrupt_after, program.interrupt_after, "interrupt_after"),
            multitask_strategy=check_strategy(multitask_strategy or program.multitask_strategy),
            control=check_control(control),
            hub=hub,
            output_keys=self._output_keys(output_keys),
            output_key=output_keys if isinstance(output_keys, str) and program.plan.keyed else None,
            aside=around is not None and around.beside,
        )

    def _breakpoints(
        self, given: All | Sequence[str] | None, compiled: frozenset[str] | None, what: str
    ) -> frozenset[str] | None:
        if given is None:
            return compiled
        names = breakpoints(given, what)
        for name in names or ():
            require_node(self.program.plan, name, what)
        return names

    def _output_keys(self, keys: str | Sequence[str] | None) -> tuple[str, ...] | None:
        if keys is None:
            return None
        wanted = (keys,) if isinstance(keys, str) else tuple(keys)
        unknown = [key for key in wanted if key not in self.program.plan.state]
        if unknown:
            msg = f"output_keys: {unknown[0]!r} is no key of the state. Known: {', '.join(self.program.plan.state)}."
            raise ConfigError(msg)
        return wanted

    def __repr__(self) -> str:
        return f"<CompiledStateGraph {self.name!r} nodes={[n for n in self.program.plan.nodes if n != '__start__']}>"


def _printed(modes: str | Sequence[str], *, debug: bool | None) -> frozenset[str]:
    wanted = [*((modes,) if isinstance(modes, str) else modes), *(("updates", "values") if debug else ())]
    return check_modes(wanted)[0] if wanted else frozenset()


def coerce_context(schema: Any, context: Any) -> Any:
    """Return the context as its schema's class, where a dict was given for one that builds instances.

    Whatever else was given is passed on as it is, and a dict for a TypedDict too.
    """
    if schema is None or not isinstance(context, Mapping):
        return context
    kind = introspect(schema).kind
    if kind not in ("dataclass", "pydantic", "struct"):
        return context
    try:
        return schema(**context)
    except Exception as error:
        name = getattr(schema, "__name__", repr(schema))
        add_note(
            error, f"While making a {name}, the context_schema, of what was given as context= (keys: {list(context)})."
        )
        raise


def _durability(durability: Durability | None, *, checkpoint_during: bool | None) -> Durability:
    if checkpoint_during is not None:
        if durability is not None:
            msg = "Give durability or checkpoint_during, not both."
            raise ConfigError(msg)
        return "async" if checkpoint_during else "exit"
    if durability is None:
        return "async"
    if durability not in DURABILITIES:
        msg = f"durability must be one of {', '.join(DURABILITIES)}, got {durability!r}."
        raise ConfigError(msg)
    return durability


def check_strategy(strategy: MultitaskStrategy) -> MultitaskStrategy:
    """Return the strategy. Raises ConfigError for one that does not exist."""
    if strategy not in ("enqueue", "reject"):
        msg = f"multitask_strategy must be 'enqueue' or 'reject', got {strategy!r}."
        raise ConfigError(msg)
    return strategy
