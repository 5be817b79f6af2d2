"""What does each field of our kinds mean, in one sentence?

Keys are `<type>.<field as users write it>`. `kubectl explain`, the CRDs and the reference pages print these sentences;
a test fails when a field has none, or a sentence has no field.
"""

from __future__ import annotations

MEANING: dict[str, str] = {
    "TaskSet.spec": "What should run.",
    "TaskSet.status": "What has happened so far; written by the controller only.",
    # spec
    "TaskSetSpec.roles": "The groups of equal replicas this job is made of; none can be added, removed or moved.",
    "TaskSetSpec.retryPolicy": "Whether an attempt of the whole TaskSet that did not succeed is repeated from scratch.",
    "TaskSetSpec.suspend": (
        "true stops all pods without failing or charging them, and keeps the TaskSet Waiting; "
        "false starts the unfinished replicas again in the same attempt."
    ),
    "TaskSetSpec.queue": "The queue this job is accounted to.",
    "TaskSetSpec.priorityClassName": "The PriorityClass given to every pod whose template names none.",
    "TaskSetSpec.minAvailable": (
        "The gang: so many pods start together or not at all. Absent means no gang. At most the sum of all replicas."
    ),
    "TaskSetSpec.activeDeadlineSeconds": (
        "The job fails, and is not retried, when it has run so long since startAt, over all attempts; "
        "suspended time does not count."
    ),
    "TaskSetSpec.ttlSecondsAfterFinished": "Delete the TaskSet so long after its end. Absent means keep it.",
    "TaskSetSpec.podRetention": (
        "Which pods of the last attempt stay after the end, each replica's last one: All, Failed or None. "
        "Absent means None."
    ),
    "RetryPolicy.retry": "true allows retries; false ignores maxRetryCount and delay.",
    "RetryPolicy.maxRetryCount": "How many times to try again, so that attempts = maxRetryCount + 1.",
    "RetryPolicy.delay": "Seconds to wait before the next try.",
    "Role.name": (
        "Unique in the TaskSet and a DNS label; the host name <name>-<index> must have at most 63 characters."
    ),
    "Role.replicas": (
        "How many equal pods the role has. May be changed until the role has finished: "
        "raised, new indices start; lowered, the highest indices are stopped."
    ),
    "Role.completionPolicy": "When the role as a whole has succeeded or failed.",
    "Role.retryPolicy": "Whether a failed replica gets a new pod; its peers are not touched.",
    "Role.eventPolicy": (
        "What the end of this role means for the TaskSet, each event at most once. "
        "An event that is not declared takes the action of RoleCompleted if that is declared, "
        "else RoleFailed means TaskSetFailed and RoleSucceeded means NoAction."
    ),
    "Role.template": (
        "The PodTemplateSpec of the role's pods, passed through. An absent restartPolicy is Never; Always is refused."
    ),
    "Role.dependsOn": (
        "Names of other roles: this one starts when all their replicas run or they have succeeded, "
        "and fails when one of them fails. Must not form a circle."
    ),
    "Role.failurePolicy": "What a failed pod means, by its exit code or reason.",
    "Role.deletionTimeoutSeconds": (
        "Force-delete a pod that is stuck on a node that is not Ready or gone, so long after its deletion was asked. "
        "Absent means wait."
    ),
    "CompletionPolicy.minSucceeded": (
        "The role has succeeded when so many replicas have, 1 to replicas; absent means all of them. "
        "Success is tested before failure."
    ),
    "CompletionPolicy.maxFailed": (
        "The role has failed when so many replicas have (it is not the number that is tolerated), "
        "1 to replicas; -1 means never by count."
    ),
    "EventPolicy.event": "RoleFailed, RoleSucceeded, or RoleCompleted for both.",
    "EventPolicy.action": (
        "TaskSetFailed, TaskSetSucceeded, TaskSetCompleted (the TaskSet ends as the role did) or NoAction."
    ),
    "FailurePolicy.rules": "The first rule that matches a failed pod wins; a pod that none matches is retried.",
    "FailureRule.action": "Fail: the replica has failed for good. Ignore: it is retried without charge.",
    "FailureRule.exitCodes": "Matches when a container ended with one of these, 1 to 255. Excludes podReasons.",
    "FailureRule.podReasons": "Matches when the pod's reason is one of these, such as Evicted. Excludes exitCodes.",
    # the parts of a pod template that we look at
    "template.metadata": "Labels and annotations of the pods.",
    "template.metadata.labels": "Labels of the pods; TaskSet, PodTaskRole and PodTaskIndex are added.",
    "template.metadata.annotations": "Annotations of the pods.",
    "template.spec": "The PodSpec.",
    "template.spec.containers": (
        "At least one. The main one, whose exit is reported, is the first "
        "or the one named by the annotation kubectl.kubernetes.io/default-container."
    ),
    "template.spec.containers.name": "Unique in the pod.",
    "template.spec.restartPolicy": "Never or OnFailure; absent means Never.",
    # status
    "TaskSetStatus.observedGeneration": "The generation of the spec that this status answers to.",
    "TaskSetStatus.phase": "Where the current attempt is, from TaskSetValidation to TaskSetCompleted.",
    "TaskSetStatus.phaseMessage": "What the phase waits for, or why it was entered.",
    "TaskSetStatus.transitionTime": "When the phase was entered.",
    "TaskSetStatus.state": "Waiting, Running, Failed or Succeeded.",
    "TaskSetStatus.stateMessage": "Why the state is what it is.",
    "TaskSetStatus.controlUnitUID": "UID of the ConfigMap that owns the pods of the current attempt.",
    "TaskSetStatus.createdAt": "When the controller accepted the TaskSet.",
    "TaskSetStatus.startAt": "When the first pod of the first attempt ran.",
    "TaskSetStatus.finishAt": "When the TaskSet ended.",
    "TaskSetStatus.totalRetriedCount": "How many times the whole TaskSet was tried again.",
    "TaskSetStatus.preemptCount": "How many pods were lost by preemption.",
    "TaskSetStatus.attempt": "The number of the current attempt, from 0; part of the pods' names.",
    "TaskSetStatus.attemptStartedAt": "When the current attempt began.",
    "TaskSetStatus.verdict": (
        "What the current attempt came to (Succeeded, Failed, or Lost with its control unit) before it is cleared away."
    ),
    "TaskSetStatus.retryAt": "When the pending retry is due.",
    "TaskSetStatus.suspendedAt": "Since when the TaskSet is suspended.",
    "TaskSetStatus.suspendedSeconds": "How long it was suspended in all, not counting the present suspension.",
    "TaskSetStatus.trigger": "What decided the outcome.",
    "TaskSetStatus.conditions": "The state as conditions, for `kubectl wait`.",
    "TaskSetStatus.roleStatus": "The roles, in the order of the spec.",
    "TaskSetStatus.history": "The last attempts before the current one.",
    "Condition.type": "The name of the condition.",
    "Condition.status": "True, False or Unknown.",
    "Condition.reason": "One CamelCase word for programs.",
    "Condition.message": "One sentence for people.",
    "Condition.lastTransitionTime": "When the status of the condition last changed.",
    "Condition.observedGeneration": "The generation of the spec that the condition answers to.",
    "RoleStatus.name": "The role.",
    "RoleStatus.phase": "TaskRoleWaiting, TaskRoleRunning, TaskRoleCleaningPending or TaskRoleCompleted.",
    "RoleStatus.phaseMessage": "What the phase waits for, or why it was entered.",
    "RoleStatus.transitionTime": "When the phase was entered.",
    "RoleStatus.state": "Waiting, Running, Failed or Succeeded.",
    "RoleStatus.stateMessage": "Why the state is what it is.",
    "RoleStatus.active": "Replicas that have a pod which has not ended.",
    "RoleStatus.succeeded": "Replicas that have succeeded.",
    "RoleStatus.failed": "Replicas that have failed, their retries used up.",
    "RoleStatus.stopped": "Replicas that were stopped before they had ended.",
    "RoleStatus.trigger": "What decided the role's outcome.",
    "RoleStatus.replicaStatus": (
        "The replicas. Above 500 in all, only those that failed, were retried or were lost, at most 100 a role."
    ),
    "RoleStatus.ledger": "Above 500 replicas: counters and outcome of every replica, run-length encoded.",
    "ReplicaStatus.index": "The number of the replica in its role, from 0.",
    "ReplicaStatus.name": "<role>-<index>, which is also its host name.",
    "ReplicaStatus.phase": "Where the replica is, from TaskRoleReplicaAttemptPending to TaskRoleReplicaCompleted.",
    "ReplicaStatus.phaseMessage": "What the phase waits for, or why it was entered.",
    "ReplicaStatus.stopped": "true when the replica was stopped before it had ended.",
    "ReplicaStatus.transitionTime": "When the phase was entered.",
    "ReplicaStatus.startAt": "When the current pod ran first.",
    "ReplicaStatus.finishAt": "When the replica ended.",
    "ReplicaStatus.totalRetriedCount": "How many times it failed and was tried again.",
    "ReplicaStatus.lostCount": "How many of its pods were lost: evicted, preempted, deleted or gone with a node.",
    "ReplicaStatus.podName": "The current or last pod.",
    "ReplicaStatus.podUID": "Its UID.",
    "ReplicaStatus.podIP": "Its address.",
    "ReplicaStatus.podHostIP": "The address of its node.",
    "ReplicaStatus.podReason": "Why the last lost pod was lost.",
    "ReplicaStatus.containerName": "The main container.",
    "ReplicaStatus.containerID": "Its ID in the container runtime.",
    "ReplicaStatus.terminatedInfo": "How the main container ended.",
    "ReplicaStatus.outcome": "Succeeded, Failed or Stopped once the replica is final.",
    "ReplicaStatus.attempt": "The number of the current pod, from 0; part of its name.",
    "ReplicaStatus.retryAt": "When the pending retry is due.",
    "ReplicaStatus.retryCharged": "Whether the pending retry counts against maxRetryCount.",
    "TerminatedInfo.exitCode": "The exit code.",
    "TerminatedInfo.exitMessage": "The termination message, or the end of the log.",
    "TerminatedInfo.signal": "The signal that ended it.",
    "TerminatedInfo.reason": "The reason, such as Error or OOMKilled.",
    "Trigger.role": "The role it happened in.",
    "Trigger.index": "The replica it happened to.",
    "Trigger.event": "What happened.",
    "Trigger.at": "When it happened.",
    "Trigger.message": "The sentence for people.",
    "AttemptRecord.attempt": "The number of the attempt, from 0.",
    "AttemptRecord.startAt": "When it began.",
    "AttemptRecord.finishAt": "When it ended.",
    "AttemptRecord.state": "Succeeded, Failed, or Lost with its control unit.",
    "AttemptRecord.trigger": "What decided its outcome.",
    "AttemptRecord.failedReplicas": "Up to 10 replicas that failed in it.",
    "FailedReplica.role": "The role.",
    "FailedReplica.index": "The number of the replica.",
    "FailedReplica.exitCode": "The exit code of its main container.",
    "FailedReplica.message": "The end of its termination message.",
    # Queue
    "Queue.spec": "What the queue asks for, and how it shares with others.",
    "Queue.status": "What the queue gets, and why; written by the arbitrator only.",
    "QueueSpec.weight": "How much it counts beside others: with twice the weight it deserves twice the share.",
    "QueueSpec.request": (
        "What the queue asks for while it has no unfinished QueueJobs; with one or more it asks for what these ask for."
    ),
    "QueueSpec.parent": (
        "The queue whose deserved resources this one shares with its siblings: a name in the same namespace or "
        "namespace/name. Absent means the root, which has the whole cluster."
    ),
    "QueueSpec.guarantee": "What the queue is given first and what is never taken back, as far as it asks for it.",
    "QueueSpec.capability": "What the queue never gets more of, for each resource that is named here.",
    "QueueSpec.deserved": (
        "What the queue is promised by the policy `capacity`, before the rest is shared by weight. "
        "At least the guarantee, at most the capability."
    ),
    "QueueSpec.priority": "Under the policy `priority` a higher number is served first.",
    "QueueSpec.reclaimable": "false: what the queue uses beyond what it deserves is not taken back.",
    "QueueSpec.namespaceSelector": (
        "One queue over several namespaces: those whose labels match, besides its own. Absent means its own only."
    ),
    "QueueSpec.policy": (
        "How what this queue deserves is shared among its children: drf, hdrf, proportion, capacity, priority, fifo "
        "or one of your own. Absent means as above it."
    ),
    "QueueSpec.oversubscription": (
        "By resource, a factor from 1 to 100: the queue's ResourceQuota is written as allocated times this factor, "
        "because its pods ask for more than they use."
    ),
    "ResourceList.resources": "By the name of the resource, a quantity such as 500m, 2 or 1Gi; 0 to 2^63-1.",
    "LabelSelector.matchLabels": "Labels that must be there, with these values.",
    "LabelSelector.matchExpressions": "Requirements that must be met, all of them.",
    "Requirement.key": "The label.",
    "Requirement.operator": "In, NotIn, Exists or DoesNotExist.",
    "Requirement.values": "For In and NotIn, at least one; for the others none.",
    "QueueStatus.observedGeneration": "The generation of the spec that this status answers to.",
    "QueueStatus.demand": "What the queue asks for: its QueueJobs, or its request, or what it uses if that is more.",
    "QueueStatus.deserved": "Its share of the cluster, by the policy.",
    "QueueStatus.allocated": "What it may use now: as much of the deserved as others do not hold any more.",
    "QueueStatus.used": "What its unfinished pods ask for, terminating ones included.",
    "QueueStatus.preempting": "What it deserves and others still hold: deserved less allocated.",
    "QueueStatus.share": "The largest share of the cluster that its allocated amounts make up, and of which resource.",
    "QueueStatus.conditions": "Satisfied and Reclaiming, each with the sentence that explains the numbers.",
    "ToldResources.resources": "By the name of the resource.",
    # QueueJob
    "QueueJob.spec": "What the job claims.",
    "QueueJob.status": "What the job has got, and why; written by the arbitrator only.",
    "QueueJobSpec.queue": (
        "The name of its queue, in the same namespace or, failing that, one whose namespaceSelector covers it. "
        "While there is no such queue the job waits."
    ),
    "QueueJobSpec.resourceunit": (
        "What one unit needs, as {resources: {cpu: 1}} or {cpu: 1}; the job gets whole units only. "
        "At least one amount is above 0."
    ),
    "QueueJobSpec.resourceno": "How many units the job asks for.",
    "QueueJobSpec.minResourceno": (
        "With fewer units than this it gets none; at most resourceno. Absent means 1: any number is welcome."
    ),
    "QueueJobSpec.priority": "In its queue, a higher number is served first; then the older job, then by name.",
    "QueueJobSpec.workloadRef": (
        "An object in the same namespace with spec.suspend, such as a TaskSet or a Job: it is started when the units "
        "are allocated, and its end finishes the claim."
    ),
    "WorkloadRef.apiVersion": "Its apiVersion, such as batch/v1.",
    "WorkloadRef.kind": "Its kind.",
    "WorkloadRef.name": "Its name.",
    "resourceunit.resources": "By the name of the resource, a quantity such as 500m, 2 or 1Gi.",
    "resourceunit.cpu": "CPUs, where resources is left out; other names of resources may stand here as well.",
    "resourceunit.memory": "Bytes, where resources is left out.",
    "QueueJobStatus.observedGeneration": "The generation of the spec that this status answers to.",
    "QueueJobStatus.allocated": "What it may use now: allocatedNo units.",
    "QueueJobStatus.allocatedNo": "How many units it has.",
    "QueueJobStatus.position": (
        "Its place among those of its queue that do not have all they ask for, from 1; 0 or absent: it has."
    ),
    "QueueJobStatus.conditions": "Allocated, Started and Finished, each with the sentence that explains it.",
}
