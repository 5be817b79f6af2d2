"""What does a process tell about itself? Log lines and metrics.

Logs go to stderr, one JSON object a line, or one readable line on a terminal. A log call is a constant sentence plus
`extra` keys. Whatever is logged passes `without_secrets` first: a token in somebody else's error text is still a
token.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec
import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

LONGEST_TEXT = 16_384

_SECRET_KEY = re.compile(r"(?i)token|password|passwd|secret|authorization|credential|private.?key|client.?key")
_SECRETS = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S), "[redacted]"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"), r"\1 [redacted]"),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"), "[redacted]"),  # a JSON web token, wherever it stands
    (re.compile(r"(://[^/\s:@]+:)[^/\s@]+@"), r"\1[redacted]@"),
    (
        re.compile(
            r"(?i)\b((?:[\w-]{0,40}[_-])?(?:token|password)|client[_-](?:key-data|secret))(\"?\s*[=:]\s*\"?)[^\s\"',;}]+"
        ),
        r"\1\2[redacted]",
    ),
)
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}


def without_secrets(text: str) -> str:
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        text = without_secrets(value[:LONGEST_TEXT])
        return text if len(value) <= LONGEST_TEXT else f"{text}... ({len(value)} characters)"
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        return {str(k): "[redacted]" if _SECRET_KEY.search(str(k)) else _safe(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_safe(item) for item in value]
    return _safe(str(value))


class _Formatter(logging.Formatter):
    def parts(self, record: logging.LogRecord) -> tuple[str, dict[str, Any], str]:
        """Message, extra keys, exception text: none holds a secret."""
        extra = _safe({key: value for key, value in vars(record).items() if key not in _STANDARD})
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        return _safe(record.getMessage()), extra, _safe(trace)


class JsonFormatter(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        message, extra, trace = self.parts(record)
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message,
        }
        for key, value in extra.items():
            line[f"{key}_" if key in line else key] = value
        if trace:
            line["exception"] = trace
        return msgspec.json.encode(line).decode()


class TextFormatter(_Formatter):
    """For people at a terminal: control characters of foreign text are shown, not obeyed."""

    def format(self, record: logging.LogRecord) -> str:
        message, extra, trace = self.parts(record)
        at = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        keys = "".join(f" {key}={value}" for key, value in extra.items())
        text = f"{at} {record.levelname:<7} {record.name}: {message}{keys}" + (f"\n{trace}" if trace else "")
        return text.translate(_CONTROL)


def set_up_logs(log_format: str, level: str, stream: TextIO | None = None) -> None:
    """`log_format`: json, text, or auto (text on a terminal, else json)."""
    stream = stream or sys.stderr
    as_text = stream.isatty() if log_format == "auto" else log_format == "text"
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter() if as_text else JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


class QueueMetrics:
    """A workqueue's observer."""

    def __init__(self, depth: Gauge, adds: Counter, latency: Histogram) -> None:
        self.added: Callable[[], None] = adds.inc
        self.depth: Callable[[int], None] = depth.set
        self.handed_out: Callable[[float], None] = latency.observe


class Metrics:
    """Every metric of the runtime, in a registry of its own: two processes' worth can live in one test."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "octarbiter_requests",
            "Requests to the API server by verb, resource and status code (0: no answer).",
            ["verb", "resource", "code"],
            registry=registry,
        )
        self.reconciles = Histogram(
            "octarbiter_reconcile_duration_seconds",
            "How long one look at one key took, by outcome.",
            ["controller", "outcome"],
            buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0),
            registry=registry,
        )
        self._queue_depth = Gauge(
            "octarbiter_queue_depth", "Keys that are due and wait for a worker.", ["queue"], registry=registry
        )
        self._queue_adds = Counter("octarbiter_queue_adds", "Reasons to look at a key.", ["queue"], registry=registry)
        self._queue_latency = Histogram(
            "octarbiter_queue_latency_seconds",
            "How long a due key waited for a worker.",
            ["queue"],
            buckets=(0.001, 0.01, 0.1, 1.0, 10.0, 60.0),
            registry=registry,
        )
        self.leader = Gauge("octarbiter_leader", "1 while this process holds the lease.", ["lease"], registry=registry)
        self.events = Counter(
            "octarbiter_events",
            "Kubernetes Events by what became of them: created, updated, dropped (limits), failed (refused).",
            ["outcome"],
            registry=registry,
        )
        self.writes_in_flight = Gauge("octarbiter_writes_in_flight", "Writes under way.", registry=registry)
        self.writes_allowed = Gauge(
            "octarbiter_writes_allowed",
            "Writes that may be under way; falls when the server is busy.",
            registry=registry,
        )
        prometheus_client.ProcessCollector(registry=registry)
        prometheus_client.PlatformCollector(registry=registry)
        prometheus_client.GCCollector(registry=registry)

    def queue(self, name: str) -> QueueMetrics:
        return QueueMetrics(
            self._queue_depth.labels(name), self._queue_adds.labels(name), self._queue_latency.labels(name)
        )
