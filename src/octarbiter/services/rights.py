"""What must our services be allowed to do? Exactly what they do: each rule names what it is for.

A test asks a real API server for every one of them, and for some that must not be there.
"""

from __future__ import annotations

from octarbiter.api import arbitrator, taskset
from octarbiter.api.meta import Json

TASKSET_CONTROLLER: list[Json] = [
    # What it works on. Deletion: ttlSecondsAfterFinished.
    {"apiGroups": [taskset.GROUP], "resources": ["tasksets"], "verbs": ["get", "list", "watch", "delete"]},
    {"apiGroups": [taskset.GROUP], "resources": ["tasksets/status"], "verbs": ["patch"]},
    # Owner references that block the owner's deletion are a right of their own where
    # OwnerReferencesPermissionEnforcement is on: a TaskSet owns control units, these own pods and Services.
    {"apiGroups": [taskset.GROUP], "resources": ["tasksets/finalizers"], "verbs": ["update"]},
    {"apiGroups": [""], "resources": ["configmaps/finalizers"], "verbs": ["update"]},
    # What it makes and removes; `get` to see whether something of the same name is its own.
    {
        "apiGroups": [""],
        "resources": ["pods"],
        "verbs": ["get", "list", "watch", "create", "delete", "deletecollection"],
    },
    # Control units, which are never changed, and the lists of replicas of large TaskSets, which are (patch).
    {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "verbs": ["get", "list", "watch", "create", "patch", "delete"],
    },
    # A Service goes with the control unit that owns it.
    {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list", "watch", "create"]},
    # Is the node of a pod that should go still Ready?
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
]

ARBITRATOR: list[Json] = [
    # What is shared, and among whom.
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]},
    {"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": ["list", "watch"]},
    # Queues are made from quotas, and in mode default-queue.
    {"apiGroups": [arbitrator.GROUP], "resources": ["queues"], "verbs": ["list", "watch", "create"]},
    {"apiGroups": [arbitrator.GROUP], "resources": ["queues/status"], "verbs": ["update"]},
    # A quota that is made belongs to its Queue.
    {"apiGroups": [arbitrator.GROUP], "resources": ["queues/finalizers"], "verbs": ["update"]},
    # Claims, also under their older name; one is made for a TaskSet that names a queue, and belongs to it.
    {"apiGroups": [arbitrator.GROUP], "resources": ["queuejobs", "tasksets"], "verbs": ["list", "watch", "create"]},
    {"apiGroups": [arbitrator.GROUP], "resources": ["queuejobs/status", "tasksets/status"], "verbs": ["update"]},
    {"apiGroups": [taskset.GROUP], "resources": ["tasksets/finalizers"], "verbs": ["update"]},
    # Workloads that claims refer to: only their `spec.suspend` is changed. Other kinds need a rule like this one.
    {"apiGroups": [taskset.GROUP], "resources": ["tasksets"], "verbs": ["list", "watch", "patch"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list", "watch", "patch"]},
    {
        "apiGroups": [""],
        "resources": ["resourcequotas"],
        "verbs": ["list", "watch", "create", "patch", "delete"],
    },
    # Gates are opened by a patch of the pod.
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch", "patch"]},
    {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    # The webhook is configured by ourselves, and kept right. Applied, so the first time it is created.
    {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        "verbs": ["get", "create", "patch"],
    },
]

ARBITRATOR_IN_ITS_NAMESPACE: list[Json] = [
    # The webhook's certificates.
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch", "create"]},
    {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": ["octarbiter-webhook-tls"],
        "verbs": ["get", "patch"],
    },
]


def lease(name: str) -> list[Json]:
    return [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [name],
            "verbs": ["get", "update"],
        },
    ]
