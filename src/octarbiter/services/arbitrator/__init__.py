"""The shell of arbitration: sees queues, claims, pods and nodes, asks the core, and carries out what it answers."""
