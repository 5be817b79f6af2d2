"""The embedded cluster: a Kubernetes for one machine, in one process."""
