"""What does the query string ask for?

Booleans are read as the real server reads them (only `0` and `false` are false), numbers must be numbers, and what
contradicts itself is refused with every contradiction at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from multidict import MultiMapping

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import deletion, objects, selectors, status, tables
from octarbiter.cluster.apiserver.kinds import Resource
from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation.problems import Problem

Query = MultiMapping[str]

_LONGEST_MANAGER: Final = 128
_POLICIES: Final = ("Foreground", "Background", "Orphan")


class Write(msgspec.Struct, frozen=True, kw_only=True):
    manager: str
    """Who is said to own the fields that are written."""
    field_validation: str = "Warn"
    dry_run: bool = False
    force: bool = False


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    labels: selectors.Labels = selectors.Labels()
    fields: selectors.Fields = selectors.Fields()
    limit: int = 0
    continue_: str = ""
    resource_version: str = ""
    match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout_s: int | None = None


def is_true(text: str | None) -> bool:
    return text is not None and text.lower() not in ("0", "false")


def write(query: Query, user_agent: str, kind: str = "CreateOptions", *, patch: str = "") -> Write:
    """`kind` names the options in refusals; `patch` is "apply" or "other" for a PATCH."""
    manager = query.get("fieldManager", "")
    validation = query.get("fieldValidation", "")
    problems: list[Problem] = []
    if patch == "apply" and not manager:
        problems.append(_problem("Required", "fieldManager", "Required value: is required for apply patch"))
    if patch == "other" and "force" in query:
        problems.append(_problem("Forbidden", "force", "Forbidden: may not be specified for non-apply patch"))
    if len(manager.encode()) > _LONGEST_MANAGER:
        problems.append(_problem("TooLong", "fieldManager", f"Too long: may not be more than {_LONGEST_MANAGER} bytes"))
    for position, character in enumerate(manager):
        if not character.isprintable():
            where = f"invalid character U+{ord(character):04X} (at position {position})"
            problems.append(_problem("Invalid", "fieldManager", f"Invalid value: {_quoted(manager)}: {where}"))
    problems += _dry_run_problems(query.getall("dryRun", []))
    if validation not in ("", "Ignore", "Warn", "Strict"):
        known = '"", "Ignore", "Strict", "Warn"'
        message = f"Unsupported value: {_quoted(validation)}: supported values: {known}"
        problems.append(_problem("NotSupported", "fieldValidation", message))
    if problems:
        raise status.invalid_options(kind, problems)
    return Write(
        manager=manager or _agent(user_agent),
        field_validation=validation or "Warn",
        dry_run="dryRun" in query,
        force=is_true(query.get("force")),
    )


def deleting(body: Json | None, query: Query) -> deletion.Options:
    """From the body if there is one, else from the query."""
    given: Mapping[str, object] = body if body is not None else _delete_query(query)
    preconditions = given.get("preconditions") or {}
    grace, propagation, orphan = (
        given.get(name) for name in ("gracePeriodSeconds", "propagationPolicy", "orphanDependents")
    )
    dry_run = given.get("dryRun") or []
    if not isinstance(preconditions, dict) or not isinstance(dry_run, list):
        raise status.bad_request("DeleteOptions: preconditions must be an object and dryRun a list")
    if not _is(grace, int) or not _is(propagation, str) or not _is(orphan, bool):
        raise status.bad_request(
            "DeleteOptions: gracePeriodSeconds, propagationPolicy or orphanDependents is of another type"
        )
    uid, version = preconditions.get("uid"), preconditions.get("resourceVersion")
    if not _is(uid, str) or not _is(version, str):
        raise status.bad_request("DeleteOptions: the preconditions uid and resourceVersion are strings")
    problems: list[Problem] = []
    if orphan is not None and propagation is not None:
        rule = "orphanDependents and deletionPropagation cannot be both set"
        problems.append(_problem("Invalid", "propagationPolicy", f"Invalid value: {_quoted(str(propagation))}: {rule}"))
    if propagation is not None and propagation not in _POLICIES:
        known = ", ".join(_quoted(each) for each in (*_POLICIES, "nil"))
        message = f"Unsupported value: {_quoted(str(propagation))}: supported values: {known}"
        problems.append(_problem("NotSupported", "propagationPolicy", message))
    problems += _dry_run_problems([str(each) for each in dry_run])
    if problems:
        raise status.invalid_options("DeleteOptions", problems)
    return deletion.Options(
        grace_s=grace,  # type: ignore[arg-type]
        propagation=propagation,  # type: ignore[arg-type]
        orphan=orphan,  # type: ignore[arg-type]
        uid=uid,
        resource_version=version,
        dry_run=bool(dry_run),
    )


def listing(query: Query, resource: Resource, *, forced_watch: bool = False) -> Listing:
    wants_watch = forced_watch or is_true(query.get("watch"))
    initial = is_true(query["sendInitialEvents"]) if "sendInitialEvents" in query else None
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    continue_ = query.get("continue", "")
    problems = (
        _watch_problems(version, match, continue_, initial)
        if wants_watch
        else _list_problems(version, match, continue_, initial)
    )
    if problems:
        raise status.invalid_options("ListOptions", problems)
    return Listing(
        labels=selectors.parse_labels(query.get("labelSelector", "")),
        fields=selectors.parse_fields(query.get("fieldSelector", ""), resource),
        # Whoever takes any state gets all of it: so do real servers, from their caches.
        limit=0 if version == "0" else _number(query, "limit") or 0,
        continue_=continue_,
        resource_version=version,
        match=match,
        watch=wants_watch,
        bookmarks=is_true(query.get("allowWatchBookmarks")),
        initial_events=initial,
        timeout_s=_number(query, "timeoutSeconds"),
    )


def revision(text: str, *, of_list: bool = False) -> int:
    """A resourceVersion as a number; 0 when it is unset. Raises a refusal. (For anything but lists Kubernetes answers
    500; but it is the client's mistake, and no client is helped by taking it for ours.)"""
    if text in ("", "0"):
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        what = f"Invalid value: {_quoted(text)}: strconv.ParseUint: parsing {_quoted(text)}: invalid syntax"
        if of_list:
            raise status.bad_request(f"invalid resource version: resourceVersion: {what}")
        raise status.bad_request(f"resourceVersion: {what}")
    return int(text)


def include_object(query: Query) -> tables.Include:
    """Of a table's rows."""
    wanted = query.get("includeObject", "")
    if wanted in ("", "Metadata"):
        return "Metadata"
    if wanted == "Object":
        return "Object"
    if wanted == "None":
        return "None"
    message = (
        "Unable to convert to Table as requested: includeObject: Invalid value: "
        f"{_quoted(wanted)}: must be 'Metadata', 'Object', 'None', or empty"
    )
    raise status.bad_request(message)


def _list_problems(version: str, match: str, continue_: str, initial: bool | None) -> list[Problem]:
    found: list[Problem] = []
    if match:
        if not version:
            found.append(_forbidden_match("resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if continue_:
            found.append(_forbidden_match("resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            known = '"Exact", "NotOlderThan", ""'
            message = f"Unsupported value: {_quoted(match)}: supported values: {known}"
            found.append(_problem("NotSupported", "resourceVersionMatch", message))
        if match == "Exact" and version == "0":
            found.append(_forbidden_match('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if initial is not None:
        rule = "Forbidden: sendInitialEvents is forbidden for list"
        found.append(_problem("Forbidden", "sendInitialEvents", rule))
    return found


def _watch_problems(version: str, match: str, continue_: str, initial: bool | None) -> list[Problem]:
    found: list[Problem] = []
    if initial is not None and match != "NotOlderThan":
        found.append(_forbidden_match("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match:
        if initial is None:
            rule = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            found.append(_forbidden_match(rule))
        if match != "NotOlderThan":
            message = f'Unsupported value: {_quoted(match)}: supported values: "NotOlderThan"'
            found.append(_problem("NotSupported", "resourceVersionMatch", message))
    # Whoever begins with the present state is taken to have asked for a match, too.
    if continue_ and (match or (initial is None and version in ("", "0"))):
        found.append(_forbidden_match("resourceVersionMatch is forbidden when continue is provided"))
    return found


def _forbidden_match(rule: str) -> Problem:
    return _problem("Forbidden", "resourceVersionMatch", f"Forbidden: {rule}")


def _dry_run_problems(values: Sequence[str]) -> list[Problem]:
    if all(value == "All" for value in values):
        return []
    said = objects.encode(list(values)).decode()
    return [_problem("NotSupported", "dryRun", f'Unsupported value: {said}: supported values: "All"')]


def _delete_query(query: Query) -> dict[str, object]:
    given: dict[str, object] = {"gracePeriodSeconds": _number(query, "gracePeriodSeconds")}
    if "propagationPolicy" in query:
        given["propagationPolicy"] = query["propagationPolicy"]
    if "orphanDependents" in query:
        given["orphanDependents"] = is_true(query["orphanDependents"])
    given["dryRun"] = query.getall("dryRun", [])
    return given


def _number(query: Query, name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        raise status.bad_request(f"strconv.ParseInt: parsing {_quoted(text)}: invalid syntax")
    return int(text)


def _agent(user_agent: str) -> str:
    """The program's name, from how it calls itself."""
    name = "".join(character for character in user_agent.split("/")[0] if character.isprintable())
    return name.encode()[:_LONGEST_MANAGER].decode(errors="ignore") or "unknown"


def _is(value: object, type_: type) -> bool:
    return value is None or (isinstance(value, type_) and (type_ is bool or not isinstance(value, bool)))


def _problem(reason: str, field: str, message: str) -> Problem:
    return Problem(f"FieldValue{reason}", field, message)


_quoted = wording.quoted
