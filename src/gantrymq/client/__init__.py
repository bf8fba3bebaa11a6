"""What speaks to name servers and brokers from outside. Today: the load of `gantrymq bench`."""
