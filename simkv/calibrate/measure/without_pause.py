"""Something that goes on in a thread of its own while something else is timed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def without_pause(call: Callable[[], object]) -> Iterator[None]:
    """Make ``call`` over and over in a thread, from before the block until its end; raises what it raised."""
    under_way, over = threading.Event(), threading.Event()
    wrong: list[BaseException] = []

    def loop() -> None:
        try:
            while not over.is_set():
                call()
                under_way.set()
        except BaseException as error:  # raised again below, in the thread that waits
            wrong.append(error)
            under_way.set()

    thread = threading.Thread(target=loop, name="simkv-without-pause", daemon=True)
    thread.start()
    try:
        under_way.wait()
        yield
    finally:
        over.set()
        thread.join()
    if wrong:
        raise wrong[0]
