"""Plumbing for anything that watches a Kubernetes API and reacts."""
