"""How much users, topics and groups may send and read in a second, and what happens beyond it."""
