# What the program of a fake pod does, as jq: answers selectors and delays. `$pod` is the pod.

# $(NAME) and ${NAME} stand for literal environment variables of the first container; later ones may use earlier ones.
def expanded:
  reduce ($pod.spec.containers[0].env // [] | reverse | .[] | select(.value)) as $variable
    (.; split("$(" + $variable.name + ")") | join($variable.value)
      | split("${" + $variable.name + "}") | join($variable.value));

# From a list by attempt of the TaskSet, index and attempt of the replica, which are the last numbers of the pod's name.
def at($separator; $place): split($separator) | .[[$place, length - 1] | min];
def chosen:
  ($pod.metadata.name | [scan("-([0-9]+)-([0-9]+)-([0-9]+)$")[] | tonumber] | if . == [] then [0, 0, 0] else . end)
    as [$taskset_attempt, $replica_attempt, $index]
  | at(";"; $taskset_attempt) | at("/"; $index) | at(","; $replica_attempt);

def annotation($key): $pod.metadata.annotations[$key] | select(.) | expanded | chosen;
def command: $pod.spec.containers[0] | (.command // []) + (.args // []) | join(" ") | expanded;

def milliseconds:
  {"ms": 1, "s": 1000, "": 1000, "m": 60000, "h": 3600000, "d": 86400000} as $units
  | map((.[0] | tonumber) * $units[.[1]]) | add;

# Milliseconds, or null for a program that never ends. Alternatives are wrapped, or `first` would pass over null.
def duration:
  first(
    (annotation("fake.octarbiter/duration") | [[scan("([0-9.]+)(ms|s|m|h|d)")] | milliseconds]),
    (command | select(test("\\b(sleep\\s+[0-9.]|exit\\b)"))
             | [[scan("\\bsleep\\s+([0-9.]+)([smhd]?)")] | milliseconds // 0]),
    [null])
  | .[0];

def exit_code:
  first(
    (annotation("fake.octarbiter/exit-code") | tonumber),
    (command | [scan("\\bexit\\s+([0-9]+)")[0]] | last | select(.) | tonumber),
    0);

def restarts:
  $pod.spec.restartPolicy as $policy
  | $policy == "Always" or ($policy == "OnFailure" and exit_code != 0);

# The status has whole seconds only; the container's id ends with the exact moment.
def started_ms: $pod.status.containerStatuses[0].containerID | split("/") | last | tonumber;

# Counted from the start each time, because any change of the pod makes kwok ask again.
def left($duration): "\($duration + started_ms - now * 1000 | if . < 0 then 0 else floor end)ms";

# From the moment its deletion was asked for, which lies before deletionTimestamp by the grace period.
def lingering:
  (first((annotation("fake.octarbiter/lingers") | [scan("([0-9.]+)(ms|s|m|h|d)")] | milliseconds), null) // 0) as $lingers
  | $pod.metadata
  | (.deletionTimestamp | fromdateiso8601) - (.deletionGracePeriodSeconds // 0) - now
  | "\([. * 1000 + $lingers, 0] | max | floor)ms";

def goes: $pod.metadata.deletionTimestamp != null;
# A pod is silent on demand, and a stuck one from the moment it should go.
def silent:
  $pod.metadata.annotations
  | .["fake.octarbiter/silent"] == "true" or (.["fake.octarbiter/stuck"] == "true" and goes);
def silenced: $pod.metadata.annotations["fake.octarbiter/silenced"] == "true";
