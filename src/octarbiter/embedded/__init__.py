"""The whole cluster in one process: the embedded Kubernetes and our own services on it."""
