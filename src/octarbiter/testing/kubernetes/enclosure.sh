# The first process of an enclosure: sh enclosure.sh DIRECTORY CGROUP. See enclosure.py.
# Furnishes the namespaces it finds itself in, says "ready", and ends, with all that runs in them, when its input does.
set -eu
directory=$1 cgroup=$2

# In memory: gone with the namespace, and an overlay may be put on it even where the machine's own disk is one.
mount -t tmpfs -o mode=0700 private "$directory/private"

# The runtime, its plugins and kubelet write to these whatever their configuration says: a layer catches it.
for place in /run /var/lib /var/log; do
    layer="$directory/private/layers$place"
    mkdir -p "$layer/upper" "$layer/work"
    mount -t overlay -o "lowerdir=$place,upperdir=$layer/upper,workdir=$layer/work" layer "$place"
done

# kubelet sets these, and they have no namespace: it gets files in their place.
for variable in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops \
        kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
    [ -e "/proc/sys/$variable" ] || continue
    mkdir -p "$directory/private/sysctl/${variable%/*}"
    cat "/proc/sys/$variable" > "$directory/private/sysctl/$variable"
    mount --bind "$directory/private/sysctl/$variable" "/proc/sys/$variable"
done

# The cgroup that will hold all pods: one in cgroup v2, where a child has the controllers its parent hands down,
# one in each hierarchy of v1, where a new cpuset is empty.
for parent in /sys/fs/cgroup /sys/fs/cgroup/*; do
    [ -e "$parent/cgroup.procs" ] || continue
    if [ -e "$parent/cgroup.controllers" ]; then
        for controller in $(cat "$parent/cgroup.controllers"); do
            # One that cannot be handed down matters only if kubelet needs it, and then kubelet says so.
            echo "+$controller" > "$parent/cgroup.subtree_control" || :
        done
    fi
    mkdir "$parent$cgroup"
    if [ -e "$parent/tasks" ] && [ -e "$parent/cpuset.cpus" ]; then
        cat "$parent/cpuset.cpus" > "$parent$cgroup/cpuset.cpus"
        cat "$parent/cpuset.mems" > "$parent$cgroup/cpuset.mems"
    fi
done

ip link set lo up
# A shell gives what it starts in the background another input, hence the detour.
exec 3<&0
{ echo ready; cat > /dev/null; } <&3 &
# Also reaps processes that have lost their parent, which is what a first process is for.
wait "$!"
