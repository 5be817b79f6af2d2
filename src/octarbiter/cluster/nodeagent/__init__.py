"""Who runs the pods of the embedded cluster? An agent that does a kubelet's work without containers."""
