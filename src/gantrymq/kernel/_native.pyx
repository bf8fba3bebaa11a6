# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled twin of `gantrymq.kernel.reference`, for speed alone.

The meaning of every function is in `interface.py`; the readable form is in `reference/`. This file only
joins the parts, lowest first, into one extension module, so that the C compiler can inline across them:

    numbers, crc, text, buffers   bytes as numbers and text; growing output; checked ranges
    frames                        where frames begin and end
    shapes, json, headers, known_headers, requests
                                  the four hot requests from either header codec
    replies                       their replies
    send_replies                  the replies to sends, as a client gets them
    records                       stored messages: encode, decode, walk
    pages, torn                   pages of mapped files, touched; records torn by a power cut
    properties, hashing, queue_runs, dispatch, queue_tails, tags, gather, audit, index
                                  consume queue units, index keys, tag matching
    columns                       records as Arrow columns
    saving                        many small writes to many files
    topics, sends, lane           the send lane: frames in, records and replies out
    pull_lane                     pulls that are known again

Loops over a range, a frame or a file run without the GIL; Python objects are touched before and
after them.
"""

from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memset

from os import fsencode, strerror, urandom

from gantrymq.errors import InvalidValue, ProtocolError, RecordError
from gantrymq.kernel.values import (
    COLUMN_NAMES,
    Audit,
    AuditRun,
    Column,
    Columns,
    Dispatch,
    Frame,
    Gathered,
    KnownPull,
    LaneStop,
    PullRequest,
    QueueRun,
    Record,
    Refused,
    Scan,
    SendAnswer,
    SendRequest,
    SendRun,
    SendTurn,
    Stop,
)
from gantrymq.limits import FRAME_BYTES_MAX

KERNEL_NAME = "compiled"

# A NamedTuple's own constructor is a Python function; this is the same without the call.
cdef object make = tuple.__new__
cdef tuple STOPS = tuple(Stop)
cdef tuple LANE_STOPS = tuple(LaneStop)

include "native/numbers.pxi"
include "native/crc.pxi"
include "native/text.pxi"
include "native/buffers.pxi"
include "native/frames.pxi"
include "native/shapes.pxi"
include "native/json.pxi"
include "native/headers.pxi"
include "native/known_headers.pxi"
include "native/requests.pxi"
include "native/replies.pxi"
include "native/refusals.pxi"
include "native/send_replies.pxi"
include "native/records.pxi"
include "native/pages.pxi"
include "native/torn.pxi"
include "native/properties.pxi"
include "native/hashing.pxi"
include "native/queue_runs.pxi"
include "native/dispatch.pxi"
include "native/queue_tails.pxi"
include "native/tags.pxi"
include "native/gather.pxi"
include "native/audit.pxi"
include "native/index.pxi"
include "native/columns.pxi"
include "native/saving.pxi"
include "native/topics.pxi"
include "native/sends.pxi"
include "native/lane.pxi"
include "native/pull_lane.pxi"
