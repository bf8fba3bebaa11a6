# Stored messages. The layout is drawn at the head of reference/records.py.

cdef enum:
    MAGIC_V1 = 0xDAA320A7
    MAGIC_V2 = 0xDAA320AB
    MAGIC_BLANK = 0xCBD43194
    BORN_V6 = 0x10
    STORE_V6 = 0x20
    HEAD_BYTES = 48          # up to the born host
    FIXED_BYTES = 72         # head, store timestamp, reconsume times, prepared offset, body length
    RECORD_BYTES_MIN = 91
    WALK_GOOD = -1
    WALK_END = 0
    WALK_BLANK = 1
    WALK_INCOMPLETE = 2
    WALK_BAD_MAGIC = 3
    WALK_BAD_SIZE = 4
    WALK_BAD_OFFSET = 5
    WALK_BAD_CRC = 6
    WALK_LIMIT = 7


cdef struct Rec:
    const uint8_t* p
    int32_t size
    uint32_t magic
    uint32_t crc
    int32_t queue_id
    int32_t flag
    int64_t queue_offset
    int64_t log_offset
    int32_t sys_flag
    int64_t born_timestamp
    const uint8_t* born_host
    int born_bytes
    int64_t store_timestamp
    const uint8_t* store_host
    int store_bytes
    int32_t reconsume_times
    int64_t prepared_offset
    const uint8_t* body
    int32_t body_bytes
    const uint8_t* topic
    int32_t topic_bytes
    const uint8_t* properties
    int32_t properties_bytes


cdef bint read_lengths(Rec* r) noexcept nogil:
    """Find the variable parts of a record whose head is known; False when they do not add up to its size."""
    cdef const uint8_t* p = r.p
    cdef int topic_length_bytes = 1 if r.magic == MAGIC_V1 else 2
    cdef int64_t left
    r.sys_flag = <int32_t>load32(p + 36)
    r.born_bytes = 20 if r.sys_flag & BORN_V6 else 8
    r.store_bytes = 20 if r.sys_flag & STORE_V6 else 8
    left = <int64_t>r.size - FIXED_BYTES - r.born_bytes - r.store_bytes - topic_length_bytes - 2
    if left < 0:
        return False
    r.born_host = p + HEAD_BYTES
    r.store_host = r.born_host + r.born_bytes + 8
    r.body = r.store_host + r.store_bytes + 16
    r.body_bytes = <int32_t>load32(r.body - 4)
    if r.body_bytes < 0 or r.body_bytes > left:
        return False
    left -= r.body_bytes
    r.topic = r.body + r.body_bytes + topic_length_bytes
    if topic_length_bytes == 1:
        r.topic_bytes = <int8_t>(r.topic - 1)[0]
    else:
        r.topic_bytes = <int16_t>load16(r.topic - 2)
    if r.topic_bytes < 0 or r.topic_bytes > left:
        return False
    left -= r.topic_bytes
    r.properties = r.topic + r.topic_bytes + 2
    r.properties_bytes = <int16_t>load16(r.properties - 2)
    return r.properties_bytes >= 0 and r.properties_bytes == left


cdef inline void read_numbers(Rec* r) noexcept nogil:
    cdef const uint8_t* p = r.p
    r.crc = load32(p + 8)
    r.queue_id = <int32_t>load32(p + 12)
    r.flag = <int32_t>load32(p + 16)
    r.queue_offset = <int64_t>load64(p + 20)
    r.log_offset = <int64_t>load64(p + 28)
    r.born_timestamp = <int64_t>load64(p + 40)
    r.store_timestamp = <int64_t>load64(r.store_host - 8)
    r.reconsume_times = <int32_t>load32(r.store_host + r.store_bytes)
    r.prepared_offset = <int64_t>load64(r.store_host + r.store_bytes + 4)


cdef int walk(const uint8_t* base, int64_t position, int64_t end, int64_t log_base, bint verify, Rec* r) noexcept nogil:
    """Read and check the record at `position`: WALK_GOOD, or why there is none."""
    cdef int64_t left = end - position
    r.p = base + position
    if left < 8:
        return WALK_END if left == 0 else WALK_INCOMPLETE
    r.size = <int32_t>load32(r.p)
    r.magic = load32(r.p + 4)
    if r.magic == MAGIC_BLANK:
        return WALK_BLANK
    if r.magic != MAGIC_V1 and r.magic != MAGIC_V2:
        return WALK_BAD_MAGIC
    if r.size < RECORD_BYTES_MIN + (1 if r.magic == MAGIC_V2 else 0):
        return WALK_BAD_SIZE
    if r.size > left:
        return WALK_INCOMPLETE
    if not read_lengths(r):
        return WALK_BAD_SIZE
    read_numbers(r)
    if log_base >= 0 and r.log_offset != log_base + position:
        return WALK_BAD_OFFSET
    if verify and r.body_bytes and crc_of(r.body, r.body_bytes) != r.crc:
        return WALK_BAD_CRC
    return WALK_GOOD


cdef struct NewRecord:
    int64_t size
    uint32_t magic
    int32_t queue_id
    int32_t flag
    int64_t queue_offset
    int64_t log_offset
    int32_t sys_flag
    int64_t born_timestamp
    const uint8_t* born_host
    int born_bytes
    int64_t store_timestamp
    const uint8_t* store_host
    int store_bytes
    int32_t reconsume_times
    int64_t prepared_offset
    const uint8_t* body
    int64_t body_bytes
    const uint8_t* topic
    int64_t topic_bytes
    const uint8_t* properties
    int64_t properties_bytes


cdef inline void measure(NewRecord* r) noexcept nogil:
    """Set size and magic from the parts."""
    r.magic = MAGIC_V1 if r.topic_bytes <= 127 else MAGIC_V2
    r.size = (FIXED_BYTES + r.born_bytes + r.store_bytes + r.body_bytes + (1 if r.magic == MAGIC_V1 else 2)
              + r.topic_bytes + 2 + r.properties_bytes)


cdef void write_record(uint8_t* at, NewRecord* r) noexcept nogil:
    """The magic comes last: a process that is killed in between leaves no record, not half of one."""
    cdef uint8_t* p = at
    store32(p, <uint32_t>r.size)
    store32(p + 8, crc_of(r.body, r.body_bytes) if r.body_bytes else 0)
    store32(p + 12, <uint32_t>r.queue_id)
    store32(p + 16, <uint32_t>r.flag)
    store64(p + 20, <uint64_t>r.queue_offset)
    store64(p + 28, <uint64_t>r.log_offset)
    store32(p + 36, <uint32_t>r.sys_flag)
    store64(p + 40, <uint64_t>r.born_timestamp)
    p += HEAD_BYTES
    memcpy(p, r.born_host, <size_t>r.born_bytes)
    p += r.born_bytes
    store64(p, <uint64_t>r.store_timestamp)
    memcpy(p + 8, r.store_host, <size_t>r.store_bytes)
    p += 8 + r.store_bytes
    store32(p, <uint32_t>r.reconsume_times)
    store64(p + 4, <uint64_t>r.prepared_offset)
    store32(p + 12, <uint32_t>r.body_bytes)
    memcpy(p + 16, r.body, <size_t>r.body_bytes)
    p += 16 + r.body_bytes
    if r.magic == MAGIC_V1:
        p[0] = <uint8_t>r.topic_bytes
        p += 1
    else:
        store16(p, <uint32_t>r.topic_bytes)
        p += 2
    memcpy(p, r.topic, <size_t>r.topic_bytes)
    p += r.topic_bytes
    store16(p, <uint32_t>r.properties_bytes)
    memcpy(p + 2, r.properties, <size_t>r.properties_bytes)
    store32_last(at + 4, r.magic)


cdef void check_host(object host, bint wide, str what) except *:
    cdef int want = 20 if wide else 8
    if len(host) != want:
        raise InvalidValue(f"record: {what} host has {len(host)} bytes, its sysFlag asks for {want}")


cdef tuple fill(NewRecord* r, object record):
    """Take a Record apart, checked; what is returned keeps the parts alive."""
    cdef bytes born_host = record.born_host
    cdef bytes store_host = record.store_host
    cdef bytes topic = record.topic
    cdef bytes properties = record.properties
    cdef bytes body = record.body
    try:
        r.queue_id = record.queue_id
        r.flag = record.flag
        r.queue_offset = record.queue_offset
        r.log_offset = record.log_offset
        r.sys_flag = record.sys_flag
        r.born_timestamp = record.born_timestamp
        r.store_timestamp = record.store_timestamp
        r.reconsume_times = record.reconsume_times
        r.prepared_offset = record.prepared_offset
    except OverflowError:
        raise InvalidValue("record: a number is out of range") from None
    check_host(born_host, r.sys_flag & BORN_V6, "born")
    check_host(store_host, r.sys_flag & STORE_V6, "store")
    if not topic:
        raise InvalidValue("record: the topic is empty")
    if len(topic) > 32767:
        raise InvalidValue(f"record: topic of {len(topic)} bytes is over 32767")
    if len(properties) > 32767:
        raise InvalidValue(f"record: properties of {len(properties)} bytes are over 32767")
    r.born_host = <const uint8_t*>PyBytes_AS_STRING(born_host)
    r.born_bytes = <int>len(born_host)
    r.store_host = <const uint8_t*>PyBytes_AS_STRING(store_host)
    r.store_bytes = <int>len(store_host)
    r.body = <const uint8_t*>PyBytes_AS_STRING(body)
    r.body_bytes = len(body)
    r.topic = <const uint8_t*>PyBytes_AS_STRING(topic)
    r.topic_bytes = len(topic)
    r.properties = <const uint8_t*>PyBytes_AS_STRING(properties)
    r.properties_bytes = len(properties)
    measure(r)
    if r.size > 2147483647:
        raise InvalidValue(f"record: {r.size} bytes are over 2147483647")
    return born_host, store_host, topic, properties, body


def record_bytes(record):
    """Return the size of a record when encoded."""
    cdef NewRecord r
    fill(&r, record)
    return r.size


def encode_record(target, position, limit, record):
    """Write a record at `position`; return the position behind it, or -1 if it does not fit."""
    cdef View view = writing(target, position, limit)
    cdef int64_t at = position
    cdef int64_t stop = limit
    cdef NewRecord r
    cdef tuple parts = fill(&r, record)
    if r.size + 8 > stop - at:
        return -1
    with nogil:
        write_record(<uint8_t*>view.p + at, &r)
    return at + r.size


def encode_blank(target, position, limit):
    """Write the 8-byte blank record that makes `target[position:limit]` end-of-file filler."""
    cdef View view = writing(target, position, limit)
    cdef int64_t at = position
    cdef int64_t left = limit - position
    if left < 8:
        raise InvalidValue(f"blank: {left} bytes left, 8 needed")
    store32(<uint8_t*>view.p + at, <uint32_t>left)
    store32_last(<uint8_t*>view.p + at + 4, MAGIC_BLANK)


cdef inline bytes copy_of(const uint8_t* p, int64_t n):
    return PyBytes_FromStringAndSize(<const char*>p, <Py_ssize_t>n)


def decode_record(buffer, position, end, verify_crc):
    """Return the record at `position` and the position behind it."""
    cdef View view = reading(buffer, position, end)
    cdef int64_t at = position
    cdef int64_t stop = end
    cdef bint verify = bool(verify_crc)
    cdef Rec r
    cdef int state
    with nogil:
        state = walk(view.p, at, stop, -1, verify, &r)
    if state != WALK_GOOD:
        if state == WALK_END or state == WALK_INCOMPLETE:
            raise RecordError("record.size", f"{stop - at} bytes left, a record needs more")
        if state == WALK_BLANK or state == WALK_BAD_MAGIC:
            raise RecordError("record.magic", f"0x{r.magic:08X} is no message record")
        if state == WALK_BAD_SIZE:
            raise RecordError(
                "record.lengths", f"the inner lengths do not add up to the total size of {r.size}"
            )
        raise RecordError(
            "record.bodyCrc", f"0x{r.crc:08X} stored, 0x{crc_of(r.body, r.body_bytes):08X} computed"
        )
    return make(Record, (
        r.queue_id, r.flag, r.queue_offset, r.log_offset, r.sys_flag, r.born_timestamp,
        copy_of(r.born_host, r.born_bytes), r.store_timestamp, copy_of(r.store_host, r.store_bytes),
        r.reconsume_times, r.prepared_offset, copy_of(r.body, r.body_bytes), copy_of(r.topic, r.topic_bytes),
        copy_of(r.properties, r.properties_bytes),
    )), at + r.size


cdef void check_records_max(object records_max) except *:
    if records_max < 1:
        raise InvalidValue("scan: records_max must be positive")


def scan_records(buffer, start, end, log_base, verify_crc, records_max):
    """Walk the records of a range and check them."""
    cdef View view = reading(buffer, start, end)
    cdef int64_t position = start
    cdef int64_t stop = end
    cdef int64_t base = checked_base(log_base)
    cdef bint verify = bool(verify_crc)
    cdef int64_t most
    cdef int64_t records = 0
    cdef int64_t first = 0
    cdef int64_t last = 0
    cdef Rec r
    cdef int state
    check_records_max(records_max)
    most = min(records_max, 0x7FFFFFFFFFFFFFFF)
    with nogil:
        while True:
            if records == most and position < stop:
                state = WALK_LIMIT
                break
            state = walk(view.p, position, stop, base, verify, &r)
            if state != WALK_GOOD:
                break
            if records == 0:
                first = r.store_timestamp
            last = r.store_timestamp
            records += 1
            position += r.size
    return make(Scan, (position, records, STOPS[state], first, last))


def find_record(buffer, start, end, log_base):
    """Return the first position in the range that looks like a record's start, or -1."""
    cdef View view = reading(buffer, start, end)
    cdef int64_t position = start
    cdef int64_t last = end - 36
    cdef int64_t base = checked_base(log_base)
    cdef int64_t found = -1
    cdef const uint8_t* p
    cdef uint32_t magic
    with nogil:
        while position <= last:
            # The magic's first byte stands 4 bytes into a record.
            p = <const uint8_t*>memchr(view.p + position + 4, 0xDA, <size_t>(last - position + 1))
            if p == NULL:
                break
            position = p - view.p - 4
            magic = load32(p)
            if ((magic == MAGIC_V1 or magic == MAGIC_V2)
                    and <int32_t>load32(view.p + position) >= RECORD_BYTES_MIN
                    and <int64_t>load64(view.p + position + 28) == base + position):
                found = position
                break
            position += 1
    return found
