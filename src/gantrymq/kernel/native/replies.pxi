# Replies to sends and pulls, written straight into a growing buffer.

cdef enum:
    LANGUAGE_PYTHON = 3


cdef inline size_t begin_frame(Out* out) noexcept nogil:
    """Leave room for the lengths; return where the frame begins."""
    cdef size_t at = out.size
    out.size += 8
    return at


cdef inline void end_frame(Out* out, size_t at, uint32_t serialize_type, int64_t body_bytes) noexcept nogil:
    cdef size_t header = out.size - at - 8
    store32(out.data + at, <uint32_t>(4 + header + <size_t>body_bytes))
    store32(out.data + at + 4, (serialize_type << 24) | <uint32_t>header)


cdef inline void put_text(Out* out, const char* p, size_t n) noexcept nogil:
    put(out, p, n)


cdef inline void put_binary_head(Out* out, int32_t code, int32_t version, int32_t opaque) noexcept nogil:
    """Code, language, version, opaque and the flag of a response."""
    cdef uint8_t* at = out.data + out.size
    store16(at, <uint32_t>code & 0xFFFFu)
    at[2] = LANGUAGE_PYTHON
    store16(at + 3, <uint32_t>version & 0xFFFFu)
    store32(at + 5, <uint32_t>opaque)
    store32(at + 9, 1)
    out.size += 13


cdef inline void put_size(Out* out, size_t n) noexcept nogil:
    store32(out.data + out.size, <uint32_t>n)
    out.size += 4


cdef inline void put_entry(Out* out, const char* key, size_t key_size, const uint8_t* p, size_t n) noexcept nogil:
    store16(out.data + out.size, <uint32_t>key_size)
    out.size += 2
    put(out, key, key_size)
    put_size(out, n)
    put(out, p, n)


cdef inline void put_number_entry(Out* out, const char* key, size_t key_size, int64_t number) noexcept nogil:
    store16(out.data + out.size, <uint32_t>key_size)
    out.size += 2
    put(out, key, key_size)
    put_size(out, <size_t>decimal_digits(number))
    put_number(out, number)


cdef inline void json_tail(Out* out, int32_t opaque, int32_t version, const uint8_t* remark, size_t n) noexcept nogil:
    put_text(out, b'"},"flag":1,"language":"PYTHON","opaque":', 41)
    put_number(out, opaque)
    if n:
        put_text(out, b',"remark":"', 11)
        put(out, remark, n)
        put_text(out, b'"', 1)
    put_text(out, b',"serializeTypeCurrentRPC":"JSON","version":', 44)
    put_number(out, version)
    put_text(out, b'}', 1)


cdef struct SendReply:
    int32_t opaque
    int32_t version
    int32_t queue_id
    int64_t queue_offset
    const uint8_t* region
    size_t region_size
    bint trace_on


cdef inline size_t send_reply_room(size_t ids, size_t region) noexcept nogil:
    return 400 + ids + region


cdef inline size_t begin_send_reply(Out* out, uint32_t serialize_type, SendReply* r, size_t ids) noexcept nogil:
    """Everything up to the message ids, of which `ids` bytes follow."""
    cdef size_t at = begin_frame(out)
    cdef size_t ext
    if serialize_type == 0:
        put_text(out, b'{"code":0,"extFields":{"msgId":"', 32)
    else:
        put_binary_head(out, 0, r.version, r.opaque)
        put_size(out, 0)
        ext = 6 + 5 + ids
        ext += 6 + 7 + <size_t>decimal_digits(r.queue_id)
        ext += 6 + 11 + <size_t>decimal_digits(r.queue_offset)
        ext += 6 + 8 + <size_t>(4 if r.trace_on else 5)
        if r.region_size:
            ext += 6 + 10 + r.region_size
        put_size(out, ext)
        store16(out.data + out.size, 5)
        out.size += 2
        put_text(out, b'msgId', 5)
        put_size(out, ids)
    return at


cdef inline void end_send_reply(Out* out, size_t at, uint32_t serialize_type, SendReply* r) noexcept nogil:
    """Everything behind the message ids."""
    if serialize_type == 0:
        put_text(out, b'","queueId":"', 13)
        put_number(out, r.queue_id)
        put_text(out, b'","queueOffset":"', 17)
        put_number(out, r.queue_offset)
        if r.trace_on:
            put_text(out, b'","TRACE_ON":"true","MSG_REGION":"', 34)
        else:
            put_text(out, b'","TRACE_ON":"false","MSG_REGION":"', 35)
        put(out, r.region, r.region_size)
        json_tail(out, r.opaque, r.version, NULL, 0)
    else:
        put_number_entry(out, b'queueId', 7, r.queue_id)
        put_number_entry(out, b'queueOffset', 11, r.queue_offset)
        if r.trace_on:
            put_entry(out, b'TRACE_ON', 8, b'true', 4)
        else:
            put_entry(out, b'TRACE_ON', 8, b'false', 5)
        if r.region_size:
            put_entry(out, b'MSG_REGION', 10, r.region, r.region_size)
    end_frame(out, at, serialize_type, 0)


cdef bint is_plain(const uint8_t* p, int64_t n) noexcept nogil:
    """Printable ASCII that JSON takes as it is."""
    cdef int64_t i
    for i in range(n):
        if p[i] < 0x20 or p[i] > 0x7E or p[i] == c'"' or p[i] == c'\\':
            return False
    return True


cdef void check_plain(bytes text, str what) except *:
    if not is_plain(<const uint8_t*>PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)):
        raise InvalidValue(f"reply: {what} must be printable ASCII without quotes")


cdef void check_header_bytes(int64_t n) except *:
    if n > 0xFFFFFF:
        raise InvalidValue(f"reply: a header of {n} bytes is over 16777215")


cdef void check_type(object serialize_type) except *:
    if serialize_type != 0 and serialize_type != 1:
        raise InvalidValue(f"reply: serialize type {serialize_type} is neither 0 nor 1")


def encode_send_reply(
    opaque, serialize_type, version, queue_id, queue_offset, bytes message_ids, bytes region, trace_on
):
    """Return the whole frame of a SUCCESS reply to a send."""
    cdef Out out
    cdef SendReply reply
    cdef size_t at
    cdef uint32_t kind
    check_type(serialize_type)
    check_plain(message_ids, "message ids")
    check_plain(region, "region")
    try:
        reply.opaque = opaque
        reply.version = version
        reply.queue_id = queue_id
        reply.queue_offset = queue_offset
    except OverflowError:
        raise InvalidValue("reply: a number is out of range") from None
    kind = serialize_type
    reply.region = <const uint8_t*>PyBytes_AS_STRING(region)
    reply.region_size = <size_t>PyBytes_GET_SIZE(region)
    reply.trace_on = bool(trace_on)
    memset(&out, 0, sizeof(Out))
    try:
        if not ensure(&out, send_reply_room(<size_t>PyBytes_GET_SIZE(message_ids), reply.region_size)):
            raise MemoryError
        at = begin_send_reply(&out, kind, &reply, <size_t>PyBytes_GET_SIZE(message_ids))
        put(&out, PyBytes_AS_STRING(message_ids), <size_t>PyBytes_GET_SIZE(message_ids))
        end_send_reply(&out, at, kind, &reply)
        check_header_bytes(<int64_t>out.size - 8)
        return taken(&out)
    finally:
        free(out.data)


cdef void put_pull_reply(
    Out* out, uint32_t kind, int32_t opaque, int32_t version, int32_t code, const uint8_t* remark, size_t n,
    int64_t suggest, int64_t next_begin, int64_t least, int64_t most, int64_t body_bytes,
) noexcept nogil:
    cdef size_t at = begin_frame(out)
    cdef size_t area
    if kind == 0:
        put_text(out, b'{"code":', 8)
        put_number(out, code)
        put_text(out, b',"extFields":{"suggestWhichBrokerId":"', 38)
        put_number(out, suggest)
        put_text(out, b'","nextBeginOffset":"', 21)
        put_number(out, next_begin)
        put_text(out, b'","minOffset":"', 15)
        put_number(out, least)
        put_text(out, b'","maxOffset":"', 15)
        put_number(out, most)
        json_tail(out, opaque, version, remark, n)
    else:
        put_binary_head(out, code, version, opaque)
        put_size(out, n)
        put(out, remark, n)
        area = out.size
        out.size += 4
        put_number_entry(out, b'suggestWhichBrokerId', 20, suggest)
        put_number_entry(out, b'nextBeginOffset', 15, next_begin)
        put_number_entry(out, b'minOffset', 9, least)
        put_number_entry(out, b'maxOffset', 9, most)
        store32(out.data + area, <uint32_t>(out.size - area - 4))
    end_frame(out, at, kind, body_bytes)


def encode_pull_reply(
    opaque, serialize_type, version, code, bytes remark, suggest_broker_id, next_begin_offset, min_offset,
    max_offset, body_bytes,
):
    """Return length and header of a pull reply; `body_bytes` of body follow it on the wire."""
    cdef Out out
    cdef int32_t c_opaque, c_version, c_code
    cdef int64_t suggest, next_begin, least, most
    cdef int64_t n = PyBytes_GET_SIZE(remark)
    check_type(serialize_type)
    check_plain(remark, "remark")
    try:
        c_opaque = opaque
        c_version = version
        c_code = code
        suggest = suggest_broker_id
        next_begin = next_begin_offset
        least = min_offset
        most = max_offset
    except OverflowError:
        raise InvalidValue("reply: a number is out of range") from None
    memset(&out, 0, sizeof(Out))
    try:
        if not ensure(&out, <size_t>(600 + n)):
            raise MemoryError
        put_pull_reply(
            &out, serialize_type, c_opaque, c_version, c_code, <const uint8_t*>PyBytes_AS_STRING(remark),
            <size_t>n, suggest, next_begin, least, most, 0,
        )
        check_header_bytes(<int64_t>out.size - 8)
        if not 0 <= body_bytes <= 2147483647 - <int64_t>out.size + 4:
            raise InvalidValue("reply: a number is out of range")
        store32(out.data, load32(out.data) + <uint32_t>body_bytes)
        return taken(&out)
    finally:
        free(out.data)
