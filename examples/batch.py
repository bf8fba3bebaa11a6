"""Send many messages in few requests. A batch that is too large is split by itself."""

import sys

from gantrymq import Message
from gantrymq.blocking import Producer


def main(namesrv: str) -> None:
    """Send a thousand messages."""
    messages = [Message(topic="Readings", body=f"{number}".encode()) for number in range(1000)]
    with Producer(namesrv, message_bytes_max=32 * 1024) as producer:
        results = producer.send_batch(messages)
    stored = sum(len(result.message_id.split(",")) for result in results)
    print(f"{stored} messages in {len(results)} requests")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9876")
