"""What does it take to have one real kubelet, with real containers, beside a control plane on the same machine?

An enclosure (see there), Debian's containerd, runc, CNI plugins and registry, and the images of `images`. The node has
no way out of the machine: `image: busybox`, the only image there is, comes from a registry inside the enclosure that
containerd takes for Docker Hub. Pods reach each other and the API server by address; the machine reaches the pods.
There is no cluster DNS, no kube-proxy and hence no working Service: who needs names in a pod brings `hostAliases`.
"""

import json
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from octarbiter.testing.kubernetes import build, connection, controlplane, enclosure, images, processes

# What a Debian package brings -> the package.
_NEEDS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "docker-registry": "docker-registry",
    "iptables": "iptables",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
}
_CNI_PLUGINS = Path("/usr/lib/cni")
# In the enclosure's own loopback: nobody outside reaches it, so the port need not be free on the machine.
_REGISTRY = "127.0.0.1:5000"
_CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
_EVICTION_SIGNALS = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
)


class RealNode:
    """One node with a place of its own on this machine.

    with RealNode() as node, ControlPlane(bind_address=node.bind_address, node_names=[node.name]) as control_plane:
        node.start(control_plane)
    """

    def __init__(self, name: str = "real-node") -> None:
        self.name = name
        self._enclosure: enclosure.Enclosure | None = None
        self._programs: list[processes.Process] = []

    def __enter__(self) -> Self:
        self.prepare()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @staticmethod
    def unavailable() -> str | None:
        """Why there can be no real node here and what to do about it, in one sentence, or None."""
        packages = {package for program, package in _NEEDS.items() if shutil.which(program) is None}
        if not (_CNI_PLUGINS / "bridge").exists():
            packages.add("containernetworking-plugins")
        if images.static_busybox() is None:
            packages.add("busybox-static")
        problems = []
        if packages:
            problems.append(f"a real node needs more programs: `apt-get install -y {' '.join(sorted(packages))}`")
        if problem := enclosure.impossible():
            problems.append(problem)
        return "; ".join(problems) or None

    @property
    def place(self) -> enclosure.Enclosure:
        if self._enclosure is None:
            raise RuntimeError("the node has no place to be in: call prepare() first")
        return self._enclosure

    @property
    def bind_address(self) -> str:
        """The machine's end of the link to the node: the one address of the machine that the node reaches."""
        return self.place.machine_address

    @property
    def directory(self) -> Path:
        return self.place.directory

    def logs(self, component: str) -> str:
        """Of "kubelet", "containerd" or "docker-registry", until `stop`."""
        return (self.directory / f"{component}.log").read_text(errors="replace")

    def prepare(self) -> None:
        """Make the place the node will live in; what killed runs left behind is removed first."""
        enclosure.sweep()
        self._enclosure = enclosure.Enclosure()

    def start(self, control_plane: controlplane.ControlPlane) -> None:
        """Join a control plane that was told of this node's name. Returns when the node is Ready and takes pods."""
        self._control_plane = control_plane
        registry = self._start_registry()
        self._start_containerd()
        self._load_images(registry)
        self._start_kubelet()

    def set_resource(self, name: str, count: int) -> None:
        """Let the node claim `count` of an extended resource such as `nvidia.com/gpu`; 0 takes it away."""
        amount = {name: str(count)}
        status = {"status": {"capacity": amount, "allocatable": amount}}
        self._control_plane.request("PATCH", f"{self._path}/status", status, connection.MERGE_PATCH)

    def stop(self) -> None:
        """May be called at any point, and again. Containers end with everything else in the enclosure, at once."""
        if self._enclosure is not None:
            self._enclosure.close()
            self._enclosure = None
        for program in self._programs:
            program.stop()
        self._programs.clear()

    @property
    def _path(self) -> str:
        return f"/api/v1/nodes/{self.name}"

    def _launch(self, *command: str | Path) -> processes.Process:
        place, name = self.place, Path(command[0]).name
        log = place.directory / f"{name}.log"
        program = processes.Process(name, place.command(*command), log, env=place.environment)
        self._programs.append(program)
        program.start()
        return program

    def _start_registry(self) -> processes.Process:
        settings = self.directory / "registry.yaml"
        settings.write_text(json.dumps(_registry_settings(self.place)))
        return self._launch("docker-registry", "serve", settings)

    def _start_containerd(self) -> None:
        settings = self.directory / "containerd.toml"
        settings.write_text(_containerd_settings(self.place))
        network = self.directory / "cni" / "pods.conflist"
        network.parent.mkdir()
        network.write_text(json.dumps(_pod_network(self.place)))
        mirror = self.directory / "registries" / "docker.io" / "hosts.toml"
        mirror.parent.mkdir(parents=True)
        # As `server`, too: an image we do not have is then "not found" and not an unreachable Docker Hub.
        mirror.write_text(f'server = "http://{_REGISTRY}"\n\n[host."http://{_REGISTRY}"]\n')
        containerd = self._launch("containerd", "--config", settings)
        containerd.wait_until_ready(lambda: self._succeeds("ctr", "version"))

    def _load_images(self, registry: processes.Process) -> None:
        busybox = images.static_busybox()
        assert busybox is not None, RealNode.unavailable()
        pause_archive, busybox_archive = self.directory / "pause.tar", self.directory / "busybox.tar"
        images.write_pause(pause_archive, busybox)
        images.write_busybox(busybox_archive, busybox)
        self.place.run("ctr", "--namespace=k8s.io", "images", "import", pause_archive)
        # By way of a namespace kubelet does not see: what it runs, it must have pulled.
        self.place.run("ctr", "--namespace=push", "images", "import", busybox_archive)
        remote = f"{_REGISTRY}/{images.BUSYBOX.removeprefix('docker.io/')}"
        push = ("ctr", "--namespace=push", "images", "push", "--plain-http", remote, images.BUSYBOX)
        registry.wait_until_ready(lambda: self._succeeds(*push))

    def _start_kubelet(self) -> None:
        place, authority = self.place, self._control_plane.authority
        certificate, key = authority.issue_server(f"kubelet-{self.name}", [place.node_address])
        settings = self.directory / "kubelet.yaml"
        settings.write_text(json.dumps(_kubelet_settings(place, authority.file, certificate, key)))
        kubelet = self._launch(
            build.ensure(["kubelet"])["kubelet"],
            f"--config={settings}",
            f"--kubeconfig={self._control_plane.kubeconfig_of(f'node-{self.name}')}",
            f"--hostname-override={self.name}",
            f"--node-ip={place.node_address}",
            f"--root-dir={place.private}/kubelet",
            f"--cert-dir={place.private}/kubelet-certificates",
        )
        kubelet.wait_until_ready(self._takes_pods)

    def _succeeds(self, *command: str | Path) -> bool:
        try:
            self.place.run(*command)
        except OSError:
            return False
        return True

    def _takes_pods(self) -> bool:
        try:
            node = self._control_plane.request("GET", self._path)
        except (OSError, connection.ApiError):
            return False
        conditions = {condition["type"]: condition["status"] for condition in node["status"].get("conditions", ())}
        return conditions.get("Ready") == "True" and not node["spec"].get("taints")


def _registry_settings(place: enclosure.Enclosure) -> dict[str, Any]:
    return {
        "version": 0.1,
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": f"{place.private}/registry"}},
        "http": {"addr": _REGISTRY},
    }


def _containerd_settings(place: enclosure.Enclosure) -> str:
    return f"""version = 2
root = "{place.private}/containerd"
state = "/run/containerd"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{images.PAUSE}"
# Where root itself may not lower the score of a process, containers would not start otherwise.
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{_CNI_PLUGINS}"
conf_dir = "{place.directory}/cni"

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{place.directory}/registries"
"""


def _pod_network(place: enclosure.Enclosure) -> dict[str, Any]:
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": str(place.pod_network)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": "pods", "isGateway": True, "hairpinMode": True, "ipam": addresses}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]}


def _kubelet_settings(place: enclosure.Enclosure, authority: Path, certificate: Path, key: Path) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": place.node_address,
        "containerRuntimeEndpoint": f"unix://{_CONTAINERD_SOCKET}",
        "volumePluginDir": f"{place.private}/volume-plugins",
        # Logs and exec: asked for by the API server with a certificate, allowed by the API server's own rules.
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(certificate),
        "tlsPrivateKeyFile": str(key),
        # A machine without systemd, perhaps with cgroup v1. The root keeps our cgroups in one place, to be removed.
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": place.cgroup,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        # A nearly full disk of the machine is none of the pods' business.
        "evictionHard": dict.fromkeys(_EVICTION_SIGNALS, "0%"),
        "imageGCHighThresholdPercent": 100,
        # There is no DNS: so a name fails at once, and not after a timeout, and without a warning on every pod.
        "clusterDNS": ["127.0.0.1"],
        "resolvConf": "",
        # The limits of a fleet, and not of one node, where many short pods begin at once.
        "kubeAPIQPS": 500,
        "kubeAPIBurst": 1000,
        "eventRecordQPS": 0,
        "registryPullQPS": 0,
        "serializeImagePulls": False,
    }
