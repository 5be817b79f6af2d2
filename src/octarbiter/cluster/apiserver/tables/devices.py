"""Devices and claims on them."""

from __future__ import annotations

from datetime import datetime

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.tables import ages
from octarbiter.cluster.apiserver.tables.cluster import age_of, name_and_age, name_of
from octarbiter.cluster.apiserver.tables.layout import Cells, Layout, columns
from octarbiter.cluster.apiserver.tables.reading import dig, many, mapping, text


def _claim(claim: Json, now: datetime) -> Cells:
    deleted = dig(claim, "metadata", "deletionTimestamp") is not None
    states = ["deleted"] if deleted else []
    if dig(claim, "status", "allocation") is None:
        states += [] if deleted else ["pending"]
    else:
        states += ["allocated", "reserved"] if many(claim, "status", "reservedFor") else ["allocated"]
    return [name_of(claim), ",".join(states), age_of(claim, now)]


def _slice(found: Json, now: datetime) -> Cells:
    spec = mapping(found, "spec")
    return [
        name_of(found),
        text(spec, "nodeName"),
        text(spec, "driver"),
        text(spec, "pool", "name"),
        age_of(found, now),
    ]


def _taint(rule: Json, now: datetime) -> Cells:
    taint = mapping(rule, "spec", "taint")
    added = taint.get("timeAdded")
    return [
        name_of(rule),
        text(taint, "key"),
        text(taint, "value"),
        text(taint, "effect"),
        "" if added is None else ages.since(added, now),
        age_of(rule, now),
    ]


_GROUP = "resource.k8s.io"

LAYOUTS: dict[tuple[str, str], Layout] = {
    (_GROUP, "DeviceClass"): Layout(columns("Name", "Age"), name_and_age),
    (_GROUP, "ResourceClaim"): Layout(columns("Name", "State", "Age"), _claim),
    (_GROUP, "ResourceClaimTemplate"): Layout(columns("Name", "Age"), name_and_age),
    (_GROUP, "ResourceSlice"): Layout(columns("Name", "Node", "Driver", "Pool", "Age"), _slice),
    (_GROUP, "DeviceTaintRule"): Layout(columns("Name", "Key", "Value", "Effect", "TimeAdded", "Age"), _taint),
}
