"""The readable kernel: what every kernel function means, in plain Python.

The compiled twin must give the same result, or the same error, for the same bytes. Where they
differ, this one is right until the specification says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.kernel.reference import lane, pull_lane, queue_tails
from gantrymq.kernel.reference.audit import audit_records
from gantrymq.kernel.reference.columns import scan_columns
from gantrymq.kernel.reference.dispatch import dispatch_records
from gantrymq.kernel.reference.frames import split_frames
from gantrymq.kernel.reference.gather import gather_records
from gantrymq.kernel.reference.index import insert_keys
from gantrymq.kernel.reference.pages import touch_pages
from gantrymq.kernel.reference.queue_tails import extend_queues
from gantrymq.kernel.reference.records import (
    crc32,
    decode_record,
    encode_blank,
    encode_record,
    find_record,
    record_bytes,
    scan_records,
    string_hash,
)
from gantrymq.kernel.reference.refusals import refuse_sends
from gantrymq.kernel.reference.replies import encode_pull_reply, encode_send_reply
from gantrymq.kernel.reference.requests import decode_request
from gantrymq.kernel.reference.saving import write_files
from gantrymq.kernel.reference.send_replies import split_send_replies
from gantrymq.kernel.reference.torn import find_torn
from gantrymq.kernel.reference.units import scan_units

if TYPE_CHECKING:
    from gantrymq.kernel import lanes, tails

KERNEL_NAME = "readable"
# Of the interface's own type: a kernel's attribute may be exchanged, so a narrower one will not do.
SendLane: type[lanes.SendLane] = lane.SendLane
PullLane: type[lanes.PullLane] = pull_lane.PullLane
PullWay: type[lanes.PullWay] = pull_lane.PullWay
QueueTail: type[tails.QueueTail] = queue_tails.QueueTail

__all__ = [
    "KERNEL_NAME",
    "PullLane",
    "PullWay",
    "QueueTail",
    "SendLane",
    "audit_records",
    "crc32",
    "decode_record",
    "decode_request",
    "dispatch_records",
    "encode_blank",
    "encode_pull_reply",
    "encode_record",
    "encode_send_reply",
    "extend_queues",
    "find_record",
    "find_torn",
    "gather_records",
    "insert_keys",
    "record_bytes",
    "refuse_sends",
    "scan_columns",
    "scan_records",
    "scan_units",
    "split_frames",
    "split_send_replies",
    "string_hash",
    "touch_pages",
    "write_files",
]
