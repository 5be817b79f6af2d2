"""What is a table made of?

`columns` reads a short notation: `"Up-to-date:integer*"` is a column of integers that only wide output shows. What a
column means is told once for all kinds, because the same word means the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from octarbiter.api.meta import Json

Cells = list[Any]


class Column(msgspec.Struct, frozen=True):
    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
    """0: always shown; more: only in wide output."""


class Layout(msgspec.Struct, frozen=True):
    columns: tuple[Column, ...]
    cells: Callable[[Json, datetime], Cells]
    conditions: Callable[[Json], list[Json]] | None = None
    """What a watcher should know about a row, e.g. that it will not change any more."""


def columns(*notations: str) -> tuple[Column, ...]:
    return tuple(_column(notation) for notation in notations)


def _column(notation: str) -> Column:
    name, _, type = notation.removesuffix("*").partition(":")
    return Column(
        name=name,
        type=type or "string",
        format="name" if name in ("Name", "Attacher") else "",
        description=_MEANINGS.get(name, ""),
        priority=1 if notation.endswith("*") else 0,
    )


_MEANINGS = {
    "Name": "Unique among objects of its kind in its namespace.",
    "ReclaimPolicy": "What becomes of a volume that nobody claims any more.",
    "VolumeBindingMode": "When a volume is made for a claim.",
    "AllowVolumeExpansion": "Whether volumes can be made larger.",
    "Age": "How long ago it was created.",
    "Created At": "When it was created.",
    "Status": "Its state, in a word.",
    "State": "Its state, in a word.",
    "Ready": "How many are ready, of how many.",
    "Restarts": "How often containers were restarted, and how long ago the last time was.",
    "IP": "The pod's address.",
    "Node": "The node it is on.",
    "Nominated Node": "The node on which room is being made for it.",
    "Readiness Gates": "How many further conditions of readiness hold, of how many.",
    "Containers": "Names of the containers.",
    "Images": "Images of the containers.",
    "Selector": "The labels of the pods it speaks of.",
    "Pod Labels": "Labels of the pods made from it.",
    "Min Available": "How many pods must stay.",
    "Max Unavailable": "How many pods may be away.",
    "Allowed Disruptions": "How many pods may be evicted now.",
    "Desired": "How many are wanted.",
    "Current": "How many there are.",
    "Up-to-date": "How many are of the latest version.",
    "Available": "How many have been ready for long enough.",
    "Node Selector": "Labels of the nodes it runs on.",
    "Completions": "How many have succeeded, of how many.",
    "Duration": "From start to end, or until now.",
    "Schedule": "When it runs, in cron's notation.",
    "Timezone": "The time zone of the schedule.",
    "Suspend": "Whether it pauses.",
    "Active": "How many are running.",
    "Last Schedule": "How long ago it ran last.",
    "Type": "Which kind of it.",
    "Cluster-IP": "Its address within the cluster.",
    "External-IP": "Addresses outside the cluster.",
    "Port(s)": "Ports and protocols.",
    "Class": "Who takes care of it.",
    "Hosts": "Host names it answers to.",
    "Address": "Where it can be reached.",
    "Ports": "Its ports.",
    "Endpoints": "The first few addresses.",
    "AddressType": "What kind of addresses these are.",
    "Roles": "What the node is for.",
    "Version": "The version of the kubelet.",
    "Internal-IP": "Its address within the cluster.",
    "OS-Image": "The operating system.",
    "Kernel-Version": "The kernel.",
    "Container-Runtime": "What runs the containers.",
    "Last Seen": "How long ago it happened last.",
    "First Seen": "How long ago it happened first.",
    "Reason": "Why, in a word.",
    "Object": "What it happened to.",
    "Subobject": "Which part of the object.",
    "Source": "Who reports it.",
    "Message": "What happened, for people.",
    "Count": "How often it happened.",
    "Data": "How many entries it has.",
    "Capacity": "How much it holds.",
    "Access Modes": "How it may be mounted.",
    "Reclaim Policy": "What becomes of it when it is released.",
    "Claim": "Who claims it.",
    "StorageClass": "Its storage class.",
    "VolumeAttributesClass": "Its class of attributes.",
    "VolumeMode": "File system or block device.",
    "Volume": "The volume behind it.",
    "Provisioner": "Who makes its volumes.",
    "Holder": "Who holds it.",
    "Value": "How much it counts.",
    "Global-Default": "Whether it holds for whoever names none.",
    "PreemptionPolicy": "Whether it may displace others.",
    "Request": "What is requested, of how much.",
    "Limit": "What limits add up to, of how much.",
    "Role": "What the binding grants.",
    "Users": "Users who get it.",
    "Groups": "Groups that get it.",
    "ServiceAccounts": "Service accounts that get it.",
    "Webhooks": "How many webhooks it has.",
    "Reference": "What is scaled.",
    "Targets": "Measured and wanted, per metric.",
    "MinPods": "Never fewer.",
    "MaxPods": "Never more.",
    "Replicas": "How many there are.",
    "Pod-Selector": "The pods it applies to.",
    "Controller": "Who owns it.",
    "Revision": "Its number among the revisions.",
}
