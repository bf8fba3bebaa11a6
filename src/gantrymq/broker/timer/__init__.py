"""Messages that wait for a moment of their own, to the second, and can be taken back (5.x)."""
