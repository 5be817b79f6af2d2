"""What does an absent field of our kinds mean?

The same defaults as the API server writes into the stored object (they come from the same tree), so that an object
looks alike before and after it was sent. As there, a null counts as absent where there is a default. Not written:
`minSucceeded`, which follows `replicas`, and `restartPolicy`, which is set on the pods.
"""

from __future__ import annotations

from typing import Any

import msgspec

from octarbiter.api import kinds, schema
from octarbiter.api.meta import Json


def with_defaults(obj: Json) -> Json:
    """A copy with the defaults filled in; the argument stays as it is. What has the wrong shape is left alone."""
    kind = kinds.meant(obj)
    if kind is None:
        return obj
    filled: Json = _filled(kind.root, obj)
    return filled


def _filled(node: schema.Node, value: Any) -> Any:
    if isinstance(value, dict) and node.fields:
        filled = dict(value)
        for name, child in node.fields.items():
            default = child.facts.default
            if filled.get(name) is None and default is not msgspec.UNSET:
                filled[name] = _filled(child, default)
            elif name in filled:
                filled[name] = _filled(child, filled[name])
        return filled
    if isinstance(value, list) and node.items:
        return [_filled(node.items, item) for item in value]
    return value
