"""What runs the containers: real processes, or nothing at all."""
