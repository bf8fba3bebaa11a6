"""Topics and store directories as Spark tables: the format `rocketmq`.

    spark.read.format("rocketmq").option("nameServer", "127.0.0.1:9876").option("topic", "Orders")

`docs/internals/spark.md` says how it works, `docs/spark.md` how it is used.
"""
