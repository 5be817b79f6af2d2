"""`make demo`: the manual's first TaskSet on a Kubernetes of its own, from nothing to Succeeded.

A real node (kubelet and containerd) where this machine allows it, else fake nodes, which honour the `sleep` of the
manual's commands. Everything is taken down at the end, also after Ctrl-C.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from octarbiter.api import crd
from octarbiter.testing.kubernetes import bed

MANIFEST = Path(__file__).parent.parent / "examples" / "manual-1-tensorflowdemo.yaml"
GPU = "nvidia.com/gpu"
OCTO = [sys.executable, "-m", "octarbiter"]


def main() -> int:
    start = time.monotonic()

    def say(message: str) -> None:
        print(f"[{time.monotonic() - start:5.1f} s] {message}", flush=True)

    say("starting a Kubernetes control plane (the first time it is built, which takes minutes)")
    wants_real = bed.node.RealNode.unavailable() is None
    with bed.Testbed(fake_nodes=0 if wants_real else 3, resources={GPU: "3"}, real_node=True) as testbed:
        plane = testbed.control_plane
        if testbed.real_node is not None:
            say("a real kubelet with containerd runs the pods; it pretends to have 3 GPUs")
            testbed.real_node.set_resource(GPU, 3)
        else:
            say("fake nodes pretend to run the pods")
        plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(crd.render()))
        plane.kubectl("wait", "--for=condition=Established", f"crd/{crd.NAME}")
        with controller(plane.kubeconfig):
            say(f"octo submit -f examples/{MANIFEST.name} --wait")
            code = octo(plane.kubeconfig, "submit", "-f", str(MANIFEST), "--wait")
            say("octo describe taskset tensorflowdemo")
            octo(plane.kubeconfig, "describe", "taskset", "tensorflowdemo")
        say("Succeeded" if code == 0 else f"octo submit ended with {code}")
        return code


@contextmanager
def controller(kubeconfig: Path) -> Iterator[None]:
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [*OCTO, "controller", "--health-address", ""], env=environment(kubeconfig), stdout=log, stderr=log
        )
        try:
            yield
        finally:
            ended = process.poll()
            process.terminate()
            process.wait(30)
            if ended is not None:
                log.seek(0)
                print(f"the controller ended with {ended}:\n{log.read().decode()[-4000:]}", file=sys.stderr)


def octo(kubeconfig: Path, *args: str) -> int:
    return subprocess.run([*OCTO, *args], env=environment(kubeconfig), check=False).returncode


def environment(kubeconfig: Path) -> dict[str, str]:
    return {**os.environ, "KUBECONFIG": str(kubeconfig)}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
