"""What do quotas say, and which pods are let in? Pure decisions."""
