"""Header schemas by family of requests; `wire.registry` says which code has which."""
