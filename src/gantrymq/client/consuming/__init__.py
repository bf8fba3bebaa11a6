"""The inside of the consumers: `client.push_consumer` and `client.pull_consumer` show it."""
