"""What becomes of a message whose handler fails: it comes again, then to the dead letters."""

import sys
import threading

from gantrymq import Later, ReceivedMessage
from gantrymq.blocking import Producer, PullConsumer, PushConsumer


def main(namesrv: str) -> None:
    """Handle a message that works at the second attempt, and one that never does."""
    done = threading.Event()
    lines: list[str] = []

    def handle(message: ReceivedMessage) -> None:
        text = message.body.decode()
        lines.append(f"{text}: attempt {message.attempt}")
        if text == "never" and message.attempt == 2:
            done.set()
        if text == "never" or message.attempt == 1:
            # Again in a second. Any other exception means again too, later with each attempt.
            raise Later(delay_level=1)

    with Producer(namesrv) as producer:
        producer.send("Work", b"second time")
        producer.send("Work", b"never")

    # Plain functions run in threads: they may block.
    consumer = PushConsumer(namesrv, "workers", start="first", reconsume_max=1)
    consumer.subscribe("Work", handler=handle)
    with consumer:
        done.wait()
    print(*sorted(lines), sep="\n")

    with PullConsumer(namesrv, "undertaker") as undertaker:
        (queue,) = undertaker.queues("%DLQ%workers")
        result = undertaker.pull(queue, 0, wait_s=5)
        print("dead:", *(message.body.decode() for message in result.messages))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9876")
