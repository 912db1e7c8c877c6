import asyncio
import os
import signal

import pytest

from mcpspy.process.ports import on_ending_signal
from tests import limits


class WithoutSignals:
    """An event loop without signal handlers, as on Windows."""

    def add_signal_handler(self, *_):
        raise NotImplementedError


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_processes_ends_the_loop_in_order(number):
    async def wait():
        stop = asyncio.Event()
        on_ending_signal(asyncio.get_running_loop(), stop.set)
        os.kill(os.getpid(), number)
        await asyncio.wait_for(stop.wait(), limits.LIMIT)

    asyncio.run(wait())


def test_a_loop_without_signals_is_left_as_it_is():
    on_ending_signal(WithoutSignals(), lambda: pytest.fail("nothing came"))
