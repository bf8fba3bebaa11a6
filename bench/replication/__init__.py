"""Replication measured: what SYNC_MASTER costs beside Apache's, and how far a slave is behind."""
