"""What does a node read of a pod? All of it that decides what runs, and how; and the status it wrote before."""

from __future__ import annotations

from datetime import datetime

from msgspec import field

from octarbiter.api.meta import Condition, Noun, Object
from octarbiter.api.pod import Running, Waiting
from octarbiter.api.scheme import Resource

Port = int | str
Amounts = dict[str, str | int | float]


class NameRef(Noun, frozen=True):
    name: str = ""
    optional: bool = False


class KeyRef(Noun, frozen=True):
    name: str = ""
    key: str = ""
    optional: bool = False


class FieldRef(Noun, frozen=True):
    field_path: str = ""


class ResourceFieldRef(Noun, frozen=True):
    container_name: str = ""
    resource: str = ""
    divisor: str | int | float = "0"


class EnvSource(Noun, frozen=True):
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None
    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None


class EnvVar(Noun, frozen=True):
    name: str = ""
    value: str = ""
    value_from: EnvSource | None = None


class EnvFrom(Noun, frozen=True):
    prefix: str = ""
    config_map_ref: NameRef | None = None
    secret_ref: NameRef | None = None


class Exec(Noun, frozen=True):
    command: list[str] = []


class Header(Noun, frozen=True):
    name: str = ""
    value: str = ""


class HttpGet(Noun, frozen=True):
    path: str = "/"
    port: Port = 80
    host: str = ""
    scheme: str = "HTTP"
    http_headers: list[Header] = []


class TcpSocket(Noun, frozen=True):
    port: Port = 0
    host: str = ""


class Grpc(Noun, frozen=True):
    port: int = 0


class Sleep(Noun, frozen=True):
    seconds: int = 0


class Handler(Noun, frozen=True):
    """What a hook does; a probe does the same, and `grpc`, but not `sleep`."""

    exec: Exec | None = None
    http_get: HttpGet | None = None
    tcp_socket: TcpSocket | None = None
    grpc: Grpc | None = None
    sleep: Sleep | None = None


class Probe(Handler, frozen=True):
    initial_delay_seconds: int = 0
    timeout_seconds: int = 1
    period_seconds: int = 10
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace_period_seconds: int | None = None


class Lifecycle(Noun, frozen=True):
    post_start: Handler | None = None
    pre_stop: Handler | None = None
    stop_signal: str = ""


class VolumeMount(Noun, frozen=True):
    name: str = ""
    mount_path: str = ""
    sub_path: str = ""
    sub_path_expr: str = ""
    read_only: bool = False


class ContainerPort(Noun, frozen=True):
    name: str = ""
    container_port: int = 0


class ResourceRequirements(Noun, frozen=True):
    limits: Amounts = {}
    requests: Amounts = {}


class ExitCodes(Noun, frozen=True):
    operator: str = "In"
    values: list[int] = []


class RestartRule(Noun, frozen=True):
    action: str = ""
    exit_codes: ExitCodes | None = None


class Container(Noun, frozen=True):
    name: str = ""
    image: str = ""
    command: list[str] = []
    args: list[str] = []
    working_dir: str = ""
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    env: list[EnvVar] = []
    env_from: list[EnvFrom] = []
    ports: list[ContainerPort] = []
    resources: ResourceRequirements = ResourceRequirements()
    volume_mounts: list[VolumeMount] = []
    restart_policy: str = ""
    restart_policy_rules: list[RestartRule] = []
    startup_probe: Probe | None = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    lifecycle: Lifecycle = Lifecycle()
    termination_message_path: str = "/dev/termination-log"
    termination_message_policy: str = "File"


class KeyToPath(Noun, frozen=True):
    key: str = ""
    path: str = ""
    mode: int | None = None


class EmptyDir(Noun, frozen=True):
    pass


class ConfigMapVolume(Noun, frozen=True):
    name: str = ""
    items: list[KeyToPath] = []
    default_mode: int | None = None
    optional: bool = False


class SecretVolume(Noun, frozen=True):
    secret_name: str = ""
    items: list[KeyToPath] = []
    default_mode: int | None = None
    optional: bool = False


class SecretProjection(Noun, frozen=True):
    name: str = ""
    items: list[KeyToPath] = []
    optional: bool = False


class DownwardFile(Noun, frozen=True):
    path: str = ""
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None
    mode: int | None = None


class DownwardVolume(Noun, frozen=True):
    items: list[DownwardFile] = []
    default_mode: int | None = None


class TokenProjection(Noun, frozen=True):
    path: str = ""
    audience: str = ""
    expiration_seconds: int = 3600


class Projection(Noun, frozen=True):
    config_map: ConfigMapVolume | None = None
    secret: SecretProjection | None = None
    downward_api: DownwardVolume | None = field(name="downwardAPI", default=None)
    service_account_token: TokenProjection | None = None


class ProjectedVolume(Noun, frozen=True):
    sources: list[Projection] = []
    default_mode: int | None = None


class HostPath(Noun, frozen=True):
    path: str = ""
    type: str = ""


class Volume(Noun, frozen=True):
    name: str = ""
    empty_dir: EmptyDir | None = None
    config_map: ConfigMapVolume | None = None
    secret: SecretVolume | None = None
    projected: ProjectedVolume | None = None
    downward_api: DownwardVolume | None = field(name="downwardAPI", default=None)
    host_path: HostPath | None = None


class ReadinessGate(Noun, frozen=True):
    condition_type: str = ""


class PodSpec(Noun, frozen=True):
    node_name: str = ""
    containers: list[Container] = []
    init_containers: list[Container] = []
    volumes: list[Volume] = []
    restart_policy: str = "Always"
    termination_grace_period_seconds: int = 30
    active_deadline_seconds: int | None = None
    readiness_gates: list[ReadinessGate] = []
    service_account_name: str = ""
    hostname: str = ""
    host_network: bool = False


class Terminated(Noun, frozen=True):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    container_id: str = field(name="containerID", default="")


class ContainerState(Noun, frozen=True):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Noun, frozen=True):
    name: str = ""
    image: str = ""
    image_id: str = field(name="imageID", default="")
    container_id: str = field(name="containerID", default="")
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class Address(Noun, frozen=True):
    ip: str = ""


class PodStatus(Noun, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    host_ip: str = field(name="hostIP", default="")
    host_ips: list[Address] = field(name="hostIPs", default_factory=list)
    pod_ip: str = field(name="podIP", default="")
    pod_ips: list[Address] = field(name="podIPs", default_factory=list)
    start_time: datetime | None = None
    observed_generation: int = 0
    conditions: list[Condition] = []
    init_container_statuses: list[ContainerStatus] = []
    container_statuses: list[ContainerStatus] = []

    def of_container(self, name: str) -> ContainerStatus | None:
        statuses = (*self.init_container_statuses, *self.container_statuses)
        return next((status for status in statuses if status.name == name), None)


class Pod(Object, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def full_name(self) -> str:
        """As the kubelet writes it in messages."""
        meta = self.metadata
        return f"{meta.name}_{meta.namespace}({meta.uid})"

    def container(self, name: str) -> Container:
        everything = (*self.spec.init_containers, *self.spec.containers)
        return next(container for container in everything if container.name == name)


PODS = Resource("", "v1", "Pod", "pods", True, Pod)
