# The answers to sends, as a client gets them: the form that brokers write, and nothing else.

cdef enum:
    R_MESSAGE_ID = 0
    R_QUEUE = 1
    R_OFFSET = 2
    R_TRANSACTION = 3
    R_REGION = 4
    R_TRACE = 5
    REPLY_FIELDS = 6


cdef struct Reply:
    int32_t opaque
    int32_t queue_id
    int64_t queue_offset
    bint trace_on
    Slice[REPLY_FIELDS] fields


cdef int reply_field(const uint8_t* p, int64_t n) noexcept nogil:
    if equals(p, n, b"msgId", 5): return R_MESSAGE_ID
    if equals(p, n, b"queueId", 7): return R_QUEUE
    if equals(p, n, b"queueOffset", 11): return R_OFFSET
    if equals(p, n, b"TRACE_ON", 8): return R_TRACE
    if equals(p, n, b"MSG_REGION", 10): return R_REGION
    if equals(p, n, b"transactionId", 13): return R_TRANSACTION
    return -1


cdef inline bint is_plain_text(const uint8_t* p, int64_t n) noexcept nogil:
    """Printable ASCII without quotes and backslashes."""
    cdef int64_t i
    for i in range(n):
        if p[i] < 0x20 or p[i] > 0x7E or p[i] == c'"' or p[i] == c'\\':
            return False
    return True


cdef bint note_field(Reply* reply, Slice* name, Slice* content) noexcept nogil:
    """Keep an ext field; False for an unknown, empty or repeated one."""
    cdef int field = reply_field(name.p, name.n)
    if field < 0 or reply.fields[field].there or content.n == 0:
        return False
    reply.fields[field] = content[0]
    reply.fields[field].there = True
    return True


cdef bint binary_reply(const uint8_t* p, int64_t n, Reply* reply) noexcept nogil:
    cdef const uint8_t* end = p + n
    cdef Slice name
    cdef Slice content
    if n < 21 or load16(p) != 0 or load32(p + 9) != 1 or load32(p + 13) != 0:
        return False
    if <int64_t><int32_t>load32(p + 17) != n - 21:
        return False
    reply.opaque = <int32_t>load32(p + 5)
    p += 21
    while p < end:
        if end - p < 2:
            return False
        name.n = <int16_t>load16(p)
        name.p = p + 2
        if name.n <= 0 or name.n > end - name.p:
            return False
        p = name.p + name.n
        if end - p < 4:
            return False
        content.n = <int32_t>load32(p)
        content.p = p + 4
        if content.n <= 0 or content.n > end - content.p or not is_plain_text(content.p, content.n):
            return False
        p = content.p + content.n
        if not note_field(reply, &name, &content):
            return False
    return True


cdef bint plain_text(const uint8_t** at, const uint8_t* end, Slice* out) noexcept nogil:
    """A string from its opening quote on, without blanks and escapes."""
    cdef const uint8_t* p = at[0]
    if p >= end or p[0] != c'"':
        return False
    p += 1
    out.p = p
    while p < end and p[0] != c'"':
        if p[0] < 0x20 or p[0] > 0x7E or p[0] == c'\\':
            return False
        p += 1
    if p >= end:
        return False
    out.n = p - out.p
    at[0] = p + 1
    return True


cdef inline bint plain_symbol(const uint8_t** at, const uint8_t* end, uint8_t char) noexcept nogil:
    if at[0] >= end or at[0][0] != char:
        return False
    at[0] += 1
    return True


cdef bint plain_number(const uint8_t** at, const uint8_t* end, int32_t* out) noexcept nogil:
    cdef const uint8_t* p = at[0]
    cdef const uint8_t* begin = p
    if p < end and p[0] == c'-':
        p += 1
    while p < end and c'0' <= p[0] <= c'9':
        p += 1
    at[0] = p
    return parse_int(begin, p - begin, out)


cdef bint json_reply_fields(const uint8_t** at, const uint8_t* end, Reply* reply) noexcept nogil:
    cdef Slice name
    cdef Slice content
    if not plain_symbol(at, end, c'{'):
        return False
    if plain_symbol(at, end, c'}'):
        return False  # those that must be there are not
    while True:
        if not (plain_text(at, end, &name) and plain_symbol(at, end, c':') and plain_text(at, end, &content)):
            return False
        if not note_field(reply, &name, &content):
            return False
        if not plain_symbol(at, end, c','):
            return plain_symbol(at, end, c'}')


cdef int json_reply_number(const uint8_t* p, int64_t n) noexcept nogil:
    if equals(p, n, b"code", 4): return 0
    if equals(p, n, b"flag", 4): return 1
    if equals(p, n, b"opaque", 6): return 2
    if equals(p, n, b"version", 7): return 3
    return -1


cdef bint json_reply(const uint8_t* p, int64_t n, Reply* reply) noexcept nogil:
    cdef const uint8_t* end = p + n
    cdef Slice name
    cdef Slice content
    cdef int32_t[4] numbers
    cdef int seen = 0  # a bit for each number, then extFields, language, the serialization
    cdef int which
    if not plain_symbol(&p, end, c'{'):
        return False
    while True:
        if not (plain_text(&p, end, &name) and plain_symbol(&p, end, c':')):
            return False
        which = json_reply_number(name.p, name.n)
        if which >= 0:
            if not plain_number(&p, end, &numbers[which]):
                return False
        elif equals(name.p, name.n, b"extFields", 9):
            which = 4
            if not json_reply_fields(&p, end, reply):
                return False
        else:
            if equals(name.p, name.n, b"language", 8):
                which = 5
            elif equals(name.p, name.n, b"serializeTypeCurrentRPC", 23):
                which = 6
            if which < 0 or not plain_text(&p, end, &content):
                return False
        if seen & (1 << which):
            return False
        seen |= 1 << which
        if not plain_symbol(&p, end, c','):
            break
    if not plain_symbol(&p, end, c'}') or p != end or seen & 0b10111 != 0b10111:
        return False
    reply.opaque = numbers[2]
    return numbers[0] == 0 and numbers[1] == 1


cdef inline bint says_false(const uint8_t* p, int64_t n) noexcept nogil:
    return (n == 5 and (p[0] | 32) == c'f' and (p[1] | 32) == c'a' and (p[2] | 32) == c'l'
            and (p[3] | 32) == c's' and (p[4] | 32) == c'e')


cdef bint read_reply(const uint8_t* p, Split* split, Reply* reply) noexcept nogil:
    """Fill `reply` from a whole frame at `p`; False for everything that is not plain."""
    cdef Slice* f = reply.fields
    if <int64_t>split.header_bytes != split.total - 4:
        return False
    memset(reply, 0, sizeof(Reply))
    if split.serialize_type == 1:
        if not binary_reply(p + 8, split.header_bytes, reply):
            return False
    elif not json_reply(p + 8, split.header_bytes, reply):
        return False
    if not (f[R_MESSAGE_ID].there and f[R_QUEUE].there and f[R_OFFSET].there):
        return False
    reply.trace_on = not (f[R_TRACE].there and says_false(f[R_TRACE].p, f[R_TRACE].n))
    return (parse_int(f[R_QUEUE].p, f[R_QUEUE].n, &reply.queue_id)
            and parse_long(f[R_OFFSET].p, f[R_OFFSET].n, &reply.queue_offset))


def split_send_replies(buffer, start, end, frame_bytes_max, opaque_min):
    """Return the plain answers to sends at the front of a range, and the position behind them."""
    cdef View view = reading(buffer, start, end)
    cdef int64_t position = start
    cdef int64_t stop = end
    cdef int64_t bytes_max
    cdef int64_t least = opaque_min
    cdef Split split
    cdef Reply reply
    cdef Slice* f = reply.fields
    cdef list replies = []
    if not 8 <= frame_bytes_max <= 2147483647:
        raise InvalidValue("frames: frame_bytes_max must be between 8 and 2147483647")
    bytes_max = frame_bytes_max
    while look_at_frame(view.p + position, stop - position, bytes_max, &split) == FRAME_WHOLE:
        if not read_reply(view.p + position, &split, &reply) or reply.opaque < least:
            break
        replies.append(make(SendAnswer, (
            reply.opaque, reply.queue_id, reply.queue_offset, text_of(&f[R_MESSAGE_ID]),
            optional_text(&f[R_TRANSACTION]), optional_text(&f[R_REGION]), bool(reply.trace_on),
        )))
        position += 4 + <int64_t>split.total
    return replies, position
