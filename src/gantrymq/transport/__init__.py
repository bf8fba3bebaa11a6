"""Sockets and frames: carries commands between peers and knows nothing of brokers."""
