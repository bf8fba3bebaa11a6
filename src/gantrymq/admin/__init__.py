"""What an operator does with a cluster, as functions: typed, asyncio, values in and values out."""
