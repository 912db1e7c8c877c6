"""One function on many items, in several processes.

The theory. Each worker has a pipe of its own and gets its next item when it has answered the last one, so that it is
known which item a worker was at when it broke. An item whose function raises is done again in this process, in its
turn: the exception has its traceback then, and is that of the first such item, as it would be with one process. What
the worker reports on its way (`advance`) comes through the same pipe.

No worker outlives this process. When an exception, Ctrl-C among them, ends the call, the workers are killed. When this
process is killed, a pipe that it alone could write to is closed, and each worker has a thread that waits for that.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, TypeVar

from mcpspy.errors import McpspyError

Result = TypeVar("Result")
Advance = Callable[[int], None]
"""Called with how far the work is, in the unit of the work."""
Work = Callable[[str, Advance], Result]
"""Takes an item, and what it may call with numbers of its progress."""


class _Worker(NamedTuple):
    process: BaseProcess
    pipe: Connection


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def mapped(work: Work[Result], items: Sequence[str], advance: Advance, processes: int) -> list[Result]:
    """The results of `work` on each item, in the order of the items. Call it while this process has one thread.

    Raises what `work` raises, and McpspyError where a worker breaks.
    """
    found: dict[int, Result] = {}
    if processes > 1 and len(items) > 1:
        with _workers(work, min(processes, len(items))) as workers:
            _share_out(items, workers, found, advance)
    return [found[place] if place in found else work(item, advance) for place, item in enumerate(items)]


def _share_out(items: Sequence[str], workers: list[_Worker], found: dict[int, Any], advance: Advance) -> None:
    """Let the workers work on the items, until all are done or one has failed."""
    waiting = deque(enumerate(items))
    busy: dict[Connection, tuple[_Worker, int]] = {}

    def give(worker: _Worker) -> None:
        if waiting:
            place, item = waiting.popleft()
            busy[worker.pipe] = worker, place
            worker.pipe.send(item)

    for worker in workers:
        give(worker)
    while busy:
        for pipe in wait(list(busy)):
            assert isinstance(pipe, Connection)
            worker, place = busy[pipe]
            try:
                kind, value = pipe.recv()
            except (EOFError, OSError):
                raise McpspyError(f"{items[place]}: {_how_it_ended(worker.process)}, so there is no result") from None
            if kind == "advance":
                advance(value)
                continue
            del busy[pipe]
            if kind == "failed":
                waiting.clear()
            else:
                found[place] = value
                give(worker)


def _how_it_ended(process: BaseProcess) -> str:
    process.join()
    code = process.exitcode or 0
    how = f"was killed by signal {-code}" if code < 0 else f"exited with status {code}"
    return f"the process that worked on it {how}"


@contextmanager
def _workers(work: Work[Any], number: int) -> Iterator[list[_Worker]]:
    # Linux: a copy of this process, which has everything imported. Elsewhere that is not safe.
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    lives, lifeline = context.Pipe(duplex=False)
    workers: list[_Worker] = []
    try:
        with _interrupts_held():
            for _ in range(number):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(work, theirs, lives, lifeline), daemon=True)
                try:
                    process.start()
                except OSError:  # no more processes: those that there are do all of it, or this one
                    break
                theirs.close()
                workers.append(_Worker(process, ours))
        yield workers
    finally:
        for worker in workers:
            worker.process.kill()
        for worker in workers:
            worker.process.join()
            worker.pipe.close()
        lives.close()
        lifeline.close()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keep Ctrl-C waiting while workers are started: each is to ignore it from its first moment on."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(work: Work[Any], pipe: Connection, lives: Connection, lifeline: Connection) -> None:
    """What a worker does. Ctrl-C in a terminal reaches it too; its parent ends it then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lifeline.close()
    threading.Thread(target=_end_with_parent, args=(lives,), daemon=True).start()
    while True:
        item = pipe.recv()
        try:
            answer = "done", work(item, lambda number: pipe.send(("advance", number)))
        except Exception:
            answer = "failed", None
        pipe.send(answer)


def _end_with_parent(lives: Connection) -> None:
    wait([lives])  # nothing is ever written to it
    os._exit(1)
