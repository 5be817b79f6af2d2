"""What tests are built from, ours and our users': real clusters that start in seconds and leave nothing behind."""
