"""Where does the embedded server answer otherwise than Kubernetes, known and not yet mended?

Each of these cases is expected to fail: mending one fails the suite until its line is gone. A sentence says what we do.
"""

from __future__ import annotations

_SHOWS = "the object shown inside the message has its fields in another order, or in JSON instead of Go"
_PROTOBUF = "another sentence for a body that is no protobuf message"
_SURPRISE = "no warning that the name of a pod makes an odd host name"
_GO = "values inside a message are shown as JSON, where Kubernetes shows a Go struct or a comparison of two"
_AT_ONCE = "names are accepted within the request, not a moment later: the answer already says so"
_TELLS = "says in a cause what is wrong with the patch, which Kubernetes keeps to itself"
_ONCE = "a bad label is told once, where Kubernetes checks, and tells, it four times"
_NOWHERE_IN_CORE = "an unknown path below the core is answered with a page, not with a Status"
_NOWHERE = "an unknown path below a custom group is answered with a Status, not with a page"
_NO_SUCH_VERB = "answered 405 at once, where Kubernetes first complains about the body"
_ANONYMOUS = "single health checks are open to everybody, as the sum of them is"
_UID = "the administrator has no uid"
_TOKEN = "another sentence for a token that cannot be decoded"
_FORM = "another refusal of watches that are not JSON"
_MISTAKE = "the client's mistake is answered with 400, where Kubernetes blames itself with 500"

KNOWN_DIFFERENCES: dict[str, str] = {
    "a_binding_with_something_odd[another uid]": "the conflict does not tell where the object is stored",
    "a_budget_guards_pods[one]": "an eviction counts, and leaves the condition of the budget to the controller",
    "a_budget_with_something_odd": _GO,
    "a_continue_token_and_a_revision_exclude_each_other": "a page that asks for any state keeps its limit",
    "a_continue_token_that_was_never_given_is_refused[%21]": _TOKEN,
    "a_continue_token_that_was_never_given_is_refused[nonsense]": _TOKEN,
    "a_definition_changes": "a definition whose group or plural changes is told also that its name does not fit",
    "a_definition_is_accepted": _AT_ONCE,
    "a_definition_with_something_odd[a reference]": "a reference without a type is told twice what it lacks",
    "a_definition_with_something_odd[a rule that does not parse]": (
        "a syntax error in a rule does not list all tokens that could follow"
    ),
    "a_definition_with_something_odd[a schema without type]": _AT_ONCE,
    "a_definition_with_something_odd[an unknown field]": _AT_ONCE,
    "a_field_manager[unprintable]": "unprintable characters are escaped as in JSON, not as in Go",
    "a_graceful_deletion_is_seen_step_by_step": "a pod whose grace is taken away goes in one step, not in two",
    "a_json_patch[a path without slash]": _TELLS,
    "a_json_patch[a wrong type]": _SHOWS,
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
    "a_lease_is_taken_and_renewed": "the strategy of a lease, which Kubernetes hides behind a switch, is kept",
    "a_list_is_no_single_thing": "whoever asks for the metadata of one object gets those of a list",
    "a_merge_patch[a bad label]": _ONCE,
    "a_merge_patch[a wrong container]": _SHOWS,
    "a_merge_patch[a wrong type]": _SHOWS,
    "a_name_of_a_service_or_pod[a.b]": _SURPRISE,
    "a_name_of_a_service_or_pod[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]": _SURPRISE,
    "a_new_node_is_not_ready": (
        "who gave a range of addresses by one of its names does not own the other, and it can be changed"
    ),
    "a_patch_that_is_no_document[apply]": "another sentence for an applied document that is no YAML",
    "a_path_that_leads_nowhere[/api/v1//namespaces]": _NOWHERE_IN_CORE,
    "a_path_that_leads_nowhere[/api/v2]": _NOWHERE_IN_CORE,
    "a_path_that_leads_nowhere[/apis/contract.example.com/v1/gadgets/x]": _NOWHERE,
    "a_path_that_leads_nowhere[/apis/contract.example.com/v1/namespaces/default/gizmos]": _NOWHERE,
    "a_path_that_leads_nowhere[/apis/contract.example.com/v9]": _NOWHERE,
    "a_pod_with_something_odd[a bad gate]": "two problems of one gate come in another order",
    "a_pod_with_something_odd[a bad pull secret]": "no warning of a pull secret without a name",
    "a_pod_with_something_odd[an unknown resource]": "a resource that nobody knows is told also that it needs a limit",
    "a_priority_class_keeps_its_value": "the generation of a priority class counts its changes",
    "a_protobuf_body_that_is_none[cut off]": _PROTOBUF,
    "a_protobuf_body_that_is_none[empty]": _PROTOBUF,
    "a_protobuf_body_that_is_none[magic alone]": _PROTOBUF,
    "a_revision_from_the_future_is_an_error": (
        "a watch from the future is told so, where Kubernetes says nothing and ends it"
    ),
    "a_role[both]": "a rule for both paths and resources is told one of its two problems",
    "a_specification[a whole float]": "whole numbers that were written with a fraction or an exponent keep it",
    "a_strategic_patch[a bad label]": _ONCE,
    "a_strategic_patch[a wrong container]": _SHOWS,
    "a_strategic_patch[a wrong type]": _SHOWS,
    "a_strategic_patch_of_lists[a list that is none]": _SHOWS,
    "a_verb_that_is_not_for_this_path[POST a custom object]": _NO_SUCH_VERB,
    "a_verb_that_is_not_for_this_path[POST custom objects over all namespaces]": _NOWHERE,
    "a_verb_that_is_not_for_this_path[PUT custom objects]": _NO_SUCH_VERB,
    "a_verb_that_is_not_for_this_path[nonsense]": "a method that HTTP does not know is refused before it is looked at",
    "a_view_of_a_thing_without_one_is_not_acceptable": "reviews are not shown as metadata alone",
    "a_watch_in_another_form[application/yaml]": _FORM,
    "a_watch_in_another_form[text/plain]": _FORM,
    "a_watch_that_makes_no_sense[continue=x]": "a watch does not look at a token for the next page",
    "aggregated_discovery_describes_the_resources[v2]": (
        "the versions and the subresources of custom kinds come in another order"
    ),
    "aggregated_discovery_describes_the_resources[v2beta1]": (
        "the older form of aggregated discovery is served, which Kubernetes 1.35 no longer does"
    ),
    "aggregated_discovery_is_not_sent_twice": "an answer without contents has a content type",
    "an_accept_header[application/*]": "any kind of application data may be JSON",
    "an_accept_header[application/json;as=Table;v=v1beta1;g=meta.k8s.io]": "the metadata in a v1beta1 table are v1",
    "an_account_is_given_a_token": "a refusal for want of rights lacks a header about content types",
    "an_event_with_something_odd[a new event without time]": (
        "an event of the newer group is called by it in a refusal, and its namespace is not looked at"
    ),
    "an_object_that_says_nothing_is_invalid[definitions]": (
        "a definition without a name is told more of what is wrong with the name"
    ),
    "an_object_that_says_nothing_is_invalid[services]": (
        "a service without a name is told so, where Kubernetes fails to find it an address"
    ),
    "an_object_without_a_proper_specification[a bad status is ignored]": (
        "a status of the wrong type does not cost the record of who wrote what"
    ),
    "an_object_without_a_proper_specification[only other fields]": (
        "an object that is refused for its contents is not warned of unknown fields as well"
    ),
    "an_object_without_a_proper_specification[text]": (
        "no second complaint that the replicas cannot be read from a specification that is a text"
    ),
    "an_owner[two controllers]": _GO,
    "an_update_of_another_life_is_a_conflict": "the conflict does not tell where the object is stored",
    "an_update_without_a_revision": _GO,
    "cluster_objects_have_tables": "the columns of storage classes have no descriptions",
    "custom_objects_are_not_spoken_in_protobuf": "refusals are JSON also for those who ask for protobuf",
    "custom_objects_are_scaled": "ownership by scaling has a time",
    "discovery_describes_the_resources[v1]": "the list of core resources says its apiVersion, as all others do",
    "fields_that_nobody_knows_in_updates_and_patches[Strict]": _SHOWS,
    "health_is_told_in_a_word[/healthz/nonsense]": _ANONYMOUS,
    "health_is_told_in_a_word[/healthz/ping]": _ANONYMOUS,
    "health_is_told_in_a_word[/livez/ping]": _ANONYMOUS,
    "health_is_told_in_a_word[/readyz/ping]": _ANONYMOUS,
    "json_that_is_no_config_map[null]": "null is no object, not an empty one",
    "json_that_is_no_config_map[very deep]": (
        "documents may be nested 128 levels deep, not 10,000, and another sentence says so"
    ),
    "json_that_is_no_gadget[null]": "null is no object, and another sentence says so",
    "numbers_come_back_as_they_were": "whole numbers that were written with a fraction or an exponent keep it",
    "pods_are_chosen_by_their_fields[status.podIPs=]": (
        "pods cannot be chosen by a list of addresses, of which Kubernetes says yes to any"
    ),
    "status_and_specification_are_written_apart": (
        "who writes labels through the status, where they are ignored, does not come to own them"
    ),
    "the_initial_events_of_nothing_end_with_a_bookmark": (
        "a bookmark has metadata and nothing else, where Kubernetes shows an empty job"
    ),
    "the_log_of_a_pod_that_does_not_run": "an empty log carries no header about caches",
    "the_smallest_cluster_object_gets_its_defaults[clusterroles]": "an empty list of rules stays an empty list",
    "the_smallest_cluster_object_gets_its_defaults[persistentvolumes]": (
        "no finalizer protects volumes that are in use: nobody would remove it"
    ),
    "the_smallest_object_gets_its_defaults[daemonsets]": "no annotation with the generation of the template",
    "the_smallest_object_gets_its_defaults[persistentvolumeclaims]": (
        "no finalizer protects claims that are in use: nobody would remove it"
    ),
    "the_status_of_jobs_is_written_apart": "the counts in the status of a job are not checked",
    "the_status_of_nodes_and_namespaces_is_written_apart": "the phase in the status of a namespace is not checked",
    "trailing_slashes_do_not_matter": "a slash at the end does not matter for health either",
    "upper_case_fields_are_not_known": (
        "an object that is refused for its contents is not warned of unknown fields as well"
    ),
    "what_is_no_status_is_refused": "a problem in a status is told with its whole path",
    "what_may_not_change[a job's selector]": (
        "a selector that does not fit the template of a job is told once, not twice"
    ),
    "what_may_not_change[a job's template]": _GO,
    "what_may_not_change[a kind]": _SHOWS,
    "what_may_not_change[a pod's command]": _GO,
    "what_may_not_change[a pod's grace]": _GO,
    "what_may_not_change[a pod's node]": _GO,
    "what_may_not_change[a pod's priority]": _GO,
    "what_may_not_change[a role binding's role]": _GO,
    "what_may_not_change[a version]": _SHOWS,
    "what_the_server_sets_cannot_be_given": (
        "the generation of a config map cannot be given, where Kubernetes takes whatever is given"
    ),
    "who_am_i": _UID,
    "whose_token_is_this": _UID,
    "workloads_are_scaled": "replicas that are no number are a bad request, not an invalid patch",
    "yaml_is_understood_and_spoken": "errors are always JSON",
    "yaml_that_is_none[a duplicate]": "a key that is twice in YAML is named by its path, not by its line",
    "yaml_that_is_none[an alias]": "an object that is refused for its contents is not warned of unknown fields as well",
    "an_object_with_a_revision_cannot_be_made": _MISTAKE,
    "a_get_obeys_the_rules_of_revisions[x]": _MISTAKE,
    "a_get_obeys_the_rules_of_revisions[-1]": _MISTAKE,
    "an_update_with_a_revision_that_is_none": _MISTAKE,
    "a_watch_that_makes_no_sense[resourceVersion=x]": _MISTAKE,
    "a_watch_that_makes_no_sense[resourceVersion=-1]": _MISTAKE,
}
