"""Changes of topics, groups and offsets as records of the log; see docs/internals/cluster.md."""
