"""Call one function on many inputs, in several processes.

Each worker has its own pipe and gets its next input when it has returned the last result. So if a worker breaks, it is
known which input it was working on. An input whose function raises is processed again in this process, in its place in
the order. So the exception has its traceback, and it is that of the first such input, as with one process. The progress
that a worker reports (`advance`) comes through the same pipe.

No worker outlives this process. When an exception, such as Ctrl-C, ends the call, the workers are killed. When this
process is killed, a pipe is closed to which only this process could write, and a thread in each worker waits for that.
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
"""Called with the progress so far, in the unit of the work."""
Work = Callable[[str, Advance], Result]
"""Called with an input, and with the function to report progress."""


class _Worker(NamedTuple):
    process: BaseProcess
    pipe: Connection


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def mapped(work: Work[Result], items: Sequence[str], advance: Advance, processes: int) -> list[Result]:
    """Return the results of `work` for each of `items`, in order. Call it while this process has one thread.

    Raises what `work` raises, and McpspyError if a worker breaks.
    """
    found: dict[int, Result] = {}
    if processes > 1 and len(items) > 1:
        with _workers(work, min(processes, len(items))) as workers:
            _share_out(items, workers, found, advance)
    return [found[place] if place in found else work(item, advance) for place, item in enumerate(items)]


def _share_out(items: Sequence[str], workers: list[_Worker], found: dict[int, Any], advance: Advance) -> None:
    """Distribute the inputs over the workers, until all are done or one has failed."""
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
    # On Linux a worker is a copy of this process, which has everything imported. Elsewhere that is not safe.
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
                except OSError:  # no more processes allowed: use those that exist, or only this one
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
    """Block Ctrl-C while workers are started, because each must ignore it from its start."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(work: Work[Any], pipe: Connection, lives: Connection, lifeline: Connection) -> None:
    """Run a worker. Ctrl-C in a terminal reaches it too, so it ignores that; its parent kills it then."""
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
    wait([lives])  # nothing is ever written to it; it becomes ready when the parent ends
    os._exit(1)
