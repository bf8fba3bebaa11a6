"""Pop: messages handed out for a while and acknowledged one by one (5.x)."""
