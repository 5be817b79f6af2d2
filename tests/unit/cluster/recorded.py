"""What a real API server answered; `python -m tools.kubernetes_answers` asks it again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]

_DIRECTORY = Path(__file__).parent / "answers"


def of(name: str) -> list[Json]:
    found: list[Json] = json.loads((_DIRECTORY / f"{name}.json").read_text())
    return found


def kind_of(obj: Json) -> tuple[str, str, str]:
    """Group, version, kind."""
    group, _, version = obj["apiVersion"].rpartition("/")
    return group, version, obj["kind"]
