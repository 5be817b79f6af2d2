"""Runs a cluster in this process, until it is told to end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec

from octarbiter.cli import embedding
from octarbiter.embedded.cluster import Cluster, Options
from octarbiter.runtime import telemetry


def serve(order: embedding.Order, *, debug: bool = False) -> None:
    telemetry.set_up_logs("auto", "debug" if debug else "info")
    asyncio.run(_serve(order))


async def _serve(order: embedding.Order) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if order.until_closed:
        # The caller holds the other end and never writes: that it can be read means that the caller is gone.
        loop.add_reader(sys.stdin.fileno(), stop.set)
    settings = order.settings
    options = Options(
        directory=order.directory,
        nodes=settings.nodes,
        resources=settings.resources,
        pretend=settings.pretend,
        port=settings.port,
        policy=settings.policy,
    )
    async with Cluster(options) as cluster:
        _say_who_we_are(order.directory)
        if order.ready_fd is not None:
            os.write(order.ready_fd, b"ready\n")
            os.close(order.ready_fd)
        stopping = asyncio.create_task(stop.wait())
        ended = asyncio.create_task(cluster.ended())
        await asyncio.wait({stopping, ended}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        ended.cancel()
    (order.directory / embedding.PROCESS).unlink(missing_ok=True)


def _say_who_we_are(directory: Path) -> None:
    pid = os.getpid()
    record = msgspec.json.encode(embedding.Process(pid, embedding.began(pid)))
    file = directory / embedding.PROCESS
    file.touch(0o600)
    file.write_bytes(record)


def main() -> None:
    order = msgspec.json.decode(sys.argv[1], type=embedding.Order, dec_hook=lambda _, path: Path(path))
    serve(order)


if __name__ == "__main__":
    main()
