"""Signs of life of many nodes, to a server that takes its time."""

from __future__ import annotations

import asyncio

from faulty_server import Line, Seen, serving

from octarbiter.cluster.nodeagent import nodes
from octarbiter.runtime import client

NODES = [nodes.NodeSettings(name=f"n-{number}", capacity={}) for number in range(100)]


async def test_nodes_do_not_wait_for_each_other_to_give_a_sign_of_life() -> None:
    """One after the other, the last of them would be taken for dead when the server is slow."""
    at_once, enough, all_heard = 20, asyncio.Event(), asyncio.Event()
    heard: set[str] = set()

    async def slow(seen: Seen, line: Line) -> None:
        heard.add(seen.target)
        if len(heard) >= at_once:
            enough.set()
        if len(heard) == len(NODES):
            all_heard.set()
        await enough.wait()
        await line.answer(200, {"kind": "Lease", "metadata": {"name": "n"}})

    async with serving(slow) as server, client.Client(server.connection()) as api, asyncio.timeout(30):
        keeping = asyncio.create_task(nodes.Registration(api, NODES).keep())
        await all_heard.wait()
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)

    assert heard == {f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{each.name}" for each in NODES}
