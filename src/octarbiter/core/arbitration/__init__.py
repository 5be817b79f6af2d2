"""Who deserves what, who gets what now, and who gives back? Pure decisions over queues, claims and pods."""
