"""What should happen to a TaskSet next, given what is seen of it."""
