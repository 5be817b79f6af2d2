"""The embedded cluster's memory: keys, values, revisions, and everybody who watches them."""
