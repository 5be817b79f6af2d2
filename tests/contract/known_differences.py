"""Where does the embedded server answer otherwise than Kubernetes?

Each of these cases is expected to fail: mending one fails the suite until its line is gone. A sentence says what we do.
"""

from __future__ import annotations

_MISTAKE = "the client's mistake is answered with 400, where Kubernetes blames itself with 500"
_AT_ONCE = "names are accepted within the request, not a moment later: the answer already says so"
_TELLS = "a warning says what is wrong with the patch, which Kubernetes keeps to itself"
_PROTECTION = "no finalizer protects what is in use: nobody would remove it"
_NOBODY = "who says nothing about himself is not known (401), where Kubernetes knows him as anonymous (403)"

ON_PURPOSE: dict[str, str] = {
    "a_binding_with_something_odd[another kind of target]": _MISTAKE,
    "a_binding_with_something_odd[no target]": _MISTAKE,
    "a_definition_is_accepted": _AT_ONCE,
    "a_definition_with_something_odd[a schema without type]": _AT_ONCE,
    "a_definition_with_something_odd[an unknown field]": _AT_ONCE,
    "a_get_obeys_the_rules_of_revisions[-1]": _MISTAKE,
    "a_get_obeys_the_rules_of_revisions[x]": _MISTAKE,
    "a_json_patch[a path without slash]": _TELLS,
    "a_json_patch[add a list's end]": _TELLS,
    "a_json_patch[add deep]": _TELLS,
    "a_json_patch[an unknown operation]": _TELLS,
    "a_json_patch[no operation]": _TELLS,
    "a_json_patch[no path]": _TELLS,
    "a_json_patch[remove nothing]": _TELLS,
    "a_json_patch[test of nothing]": _TELLS,
    "a_json_patch[test that fails]": _TELLS,
    "a_json_patch_of_a_custom_object[add deep]": _TELLS,
    "a_json_patch_of_a_custom_object[add]": _TELLS,
    "a_json_patch_of_a_custom_object[an object]": _TELLS,
    "a_json_patch_of_a_custom_object[replace nothing]": _TELLS,
    "a_json_patch_of_a_custom_object[test that fails]": _TELLS,
    "a_revision_from_the_future_is_an_error": (
        "a watch from the future is told so, where Kubernetes says nothing and ends it"
    ),
    "a_watch_that_makes_no_sense[resourceVersion=-1]": _MISTAKE,
    "a_watch_that_makes_no_sense[resourceVersion=x]": _MISTAKE,
    "an_object_that_says_nothing_is_invalid[services]": (
        "a service without a name is told so, where Kubernetes fails to find it an address"
    ),
    "an_object_with_a_revision_cannot_be_made": _MISTAKE,
    "an_object_without_a_proper_specification[a bad status is ignored]": (
        "a status of the wrong type does not cost the record of who wrote what"
    ),
    "an_update_with_a_revision_that_is_none": _MISTAKE,
    "custom_objects_are_not_spoken_in_protobuf": "refusals are JSON also for those who ask for protobuf",
    "custom_objects_are_scaled": _MISTAKE,
    "json_that_is_no_config_map[very deep]": (
        "documents may be nested 128 levels deep, not 10,000, and another sentence says so"
    ),
    "the_initial_events_of_nothing_end_with_a_bookmark": (
        "a bookmark has metadata and nothing else, where Kubernetes shows an empty job"
    ),
    "the_smallest_cluster_object_gets_its_defaults[persistentvolumes]": _PROTECTION,
    "the_smallest_object_gets_its_defaults[persistentvolumeclaims]": _PROTECTION,
    "who_says_nothing_is_nobody": _NOBODY,
}
"""Ours to keep: it helps people, or it guards the server."""

NOT_YET: dict[str, str] = {
    "a_verb_that_is_not_for_this_path[nonsense]": "a method that HTTP does not know is refused before it is looked at",
    "an_update_without_a_revision": "a template inside a message is shown as JSON, where Kubernetes shows a Go struct",
    "what_may_not_change[a job's template]": (
        "a template inside a message is shown as JSON, where Kubernetes shows a Go struct"
    ),
    "what_may_not_change[a kind]": "what is patched into another kind is told so, and not what that kind would miss",
    "workloads_are_scaled": "the Scale shown inside a message does not say who owns its replicas",
    "yaml_that_is_none[a duplicate]": "a key that is twice in YAML is named by its path, not by its line",
}
"""Worth mending, but nobody is known to mind."""

KNOWN_DIFFERENCES: dict[str, str] = ON_PURPOSE | NOT_YET
