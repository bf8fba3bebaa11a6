"""Read queues at offsets of your own, as often as you like: for audits, replays, exports."""

import sys

from gantrymq import PullStatus
from gantrymq.blocking import Producer, PullConsumer


def main(namesrv: str) -> None:
    """Read a topic twice, and remember with the broker where the second time ended."""
    with Producer(namesrv) as producer:
        for number in range(10):
            producer.send("Ledger", f"entry {number}".encode())

    with PullConsumer(namesrv, "audit") as consumer:
        for _ in range(2):
            count = 0
            for queue in consumer.queues("Ledger"):
                offset = consumer.min_offset(queue)
                while True:
                    result = consumer.pull(queue, offset, count=4)
                    if result.status is not PullStatus.FOUND:
                        break
                    count += len(result.messages)
                    offset = result.next_offset
                consumer.commit(queue, offset)
            print(f"{count} entries")
        committed = [consumer.committed(queue) or 0 for queue in consumer.queues("Ledger")]
        print(f"{sum(committed)} committed")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9876")
