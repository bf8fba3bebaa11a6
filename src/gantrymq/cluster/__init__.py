"""Replication of a broker's log, the roles in a group, and their change."""
