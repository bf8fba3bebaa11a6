# A header of a hot request, JSON or binary, into one flat struct: no dict, no object a field.

cdef enum:
    SEND = 10
    PULL = 11
    SEND_V2 = 310
    SEND_BATCH = 320
    FIELDS_MAX = 14
    # Fields of a send, in the order of their one-letter names a to n.
    F_GROUP = 0
    F_TOPIC = 1
    F_DEFAULT_TOPIC = 2
    F_DEFAULT_QUEUES = 3
    F_QUEUE = 4
    F_SYS_FLAG = 5
    F_BORN = 6
    F_FLAG = 7
    F_PROPERTIES = 8
    F_RECONSUME = 9
    F_UNIT = 10
    F_MAX_RECONSUME = 11
    F_BATCH = 12
    F_BROKER = 13
    # Fields of a pull.
    P_GROUP = 0
    P_TOPIC = 1
    P_QUEUE = 2
    P_OFFSET = 3
    P_MAX_MESSAGES = 4
    P_SYS_FLAG = 5
    P_COMMIT = 6
    P_SUSPEND = 7
    P_SUBSCRIPTION = 8
    P_SUB_VERSION = 9
    P_EXPRESSION_TYPE = 10
    P_MAX_BYTES = 11
    P_BROKER = 12


cdef struct Header:
    int32_t code
    int32_t flag
    int32_t opaque
    int32_t version
    bint has_code
    bint has_opaque
    bint extra
    Slice[FIELDS_MAX] fields


cdef inline bint is_hot(int32_t code) noexcept nogil:
    return code == SEND_V2 or code == SEND_BATCH or code == SEND or code == PULL


cdef int send_field(const uint8_t* p, int64_t n) noexcept nogil:
    if n == 5:
        if memcmp(p, b"topic", 5) == 0: return F_TOPIC
        if memcmp(p, b"batch", 5) == 0: return F_BATCH
        if memcmp(p, b"bname", 5) == 0: return F_BROKER
    elif n == 7:
        if memcmp(p, b"queueId", 7) == 0: return F_QUEUE
        if memcmp(p, b"sysFlag", 7) == 0: return F_SYS_FLAG
    elif n == 13:
        if memcmp(p, b"producerGroup", 13) == 0: return F_GROUP
        if memcmp(p, b"bornTimestamp", 13) == 0: return F_BORN
    elif equals(p, n, b"defaultTopic", 12): return F_DEFAULT_TOPIC
    elif equals(p, n, b"defaultTopicQueueNums", 21): return F_DEFAULT_QUEUES
    elif equals(p, n, b"flag", 4): return F_FLAG
    elif equals(p, n, b"properties", 10): return F_PROPERTIES
    elif equals(p, n, b"reconsumeTimes", 14): return F_RECONSUME
    elif equals(p, n, b"unitMode", 8): return F_UNIT
    elif equals(p, n, b"maxReconsumeTimes", 17): return F_MAX_RECONSUME
    return -1


cdef int pull_field(const uint8_t* p, int64_t n) noexcept nogil:
    if n == 5:
        if memcmp(p, b"topic", 5) == 0: return P_TOPIC
        if memcmp(p, b"bname", 5) == 0: return P_BROKER
    elif n == 7:
        if memcmp(p, b"queueId", 7) == 0: return P_QUEUE
        if memcmp(p, b"sysFlag", 7) == 0: return P_SYS_FLAG
    elif n == 10:
        if memcmp(p, b"maxMsgNums", 10) == 0: return P_MAX_MESSAGES
        if memcmp(p, b"subVersion", 10) == 0: return P_SUB_VERSION
    elif n == 11:
        if memcmp(p, b"queueOffset", 11) == 0: return P_OFFSET
        if memcmp(p, b"maxMsgBytes", 11) == 0: return P_MAX_BYTES
    elif n == 12:
        if memcmp(p, b"commitOffset", 12) == 0: return P_COMMIT
        if memcmp(p, b"subscription", 12) == 0: return P_SUBSCRIPTION
    elif equals(p, n, b"consumerGroup", 13): return P_GROUP
    elif equals(p, n, b"suspendTimeoutMillis", 20): return P_SUSPEND
    elif equals(p, n, b"expressionType", 14): return P_EXPRESSION_TYPE
    return -1


cdef inline int field_of(int32_t code, const uint8_t* p, int64_t n) noexcept nogil:
    if code == SEND_V2 or code == SEND_BATCH:
        return p[0] - c'a' if n == 1 and c'a' <= p[0] <= c'n' else -1
    if code == SEND:
        return send_field(p, n)
    return pull_field(p, n)


cdef inline void clear_fields(Header* h) noexcept nogil:
    memset(h.fields, 0, sizeof(h.fields))
    h.extra = False


# -- JSON ----------------------------------------------------------------------------------------------

cdef bint json_ext(Json* j, Header* h) noexcept nogil:
    """`extFields`, at its opening brace, for the code in `h`."""
    cdef Slice key
    cdef Slice content
    cdef const uint8_t* begin
    cdef int field
    cdef int kind
    clear_fields(h)
    j.p += 1
    blanks(j)
    if j.p < j.end and j.p[0] == c'}':
        j.p += 1
        return True
    while True:
        if j.p >= j.end or j.p[0] != c'"':
            return False
        j.p += 1
        if not text(j, &key) or not symbol(j, c':'):
            return False
        begin = j.p
        kind = value(j, &content)
        # A null here would have to undo an earlier value of the same name: too rare to be fast.
        if kind < 0 or kind == VALUE_OBJECT or kind == VALUE_NULL:
            return False
        field = field_of(h.code, key.p, key.n)
        if j.shape != NULL:
            note_value(j.shape, begin, j.p, kind, field)
        if field >= 0:
            h.fields[field] = content
        else:
            h.extra = True
        blanks(j)
        if j.p < j.end and j.p[0] == c',':
            j.p += 1
            blanks(j)
            continue
        return symbol(j, c'}')


cdef bint json_integer(int kind, Slice* content, int32_t* out, bint* there) noexcept nogil:
    if kind == VALUE_NULL:
        there[0] = False
        out[0] = 0
        return True
    there[0] = True
    return kind == VALUE_NUMBER and parse_int(content.p, content.n, out)


cdef bint json_member(Json* j, Header* h, const uint8_t** ext, int32_t* ext_code) noexcept nogil:
    """One member of the header. `ext` notes where the last extFields object began, and for which code it was read."""
    cdef Slice key
    cdef Slice content
    cdef const uint8_t* begin
    cdef int kind
    cdef bint there
    if j.p >= j.end or j.p[0] != c'"':
        return False
    j.p += 1
    if not text(j, &key) or not symbol(j, c':'):
        return False
    begin = j.p
    kind = value(j, &content)
    if kind < 0:
        return False
    if equals(key.p, key.n, b"extFields", 9):
        if j.shape != NULL and (kind == VALUE_NULL or ext[0] != NULL):
            j.shape.count = -1  # values that another extFields takes back have no place
        if kind == VALUE_NULL:
            clear_fields(h)
            ext[0] = NULL
            return True
        ext[0] = j.p
        ext_code[0] = h.code
        return kind == VALUE_OBJECT and json_ext(j, h)
    if kind == VALUE_OBJECT:
        return False
    if equals(key.p, key.n, b"code", 4):
        return json_integer(kind, &content, &h.code, &h.has_code)
    if equals(key.p, key.n, b"opaque", 6):
        if j.shape != NULL:
            note_value(j.shape, begin, j.p, kind, VALUE_IS_OPAQUE)
        return json_integer(kind, &content, &h.opaque, &h.has_opaque)
    if equals(key.p, key.n, b"flag", 4):
        return json_integer(kind, &content, &h.flag, &there)
    if equals(key.p, key.n, b"version", 7):
        return json_integer(kind, &content, &h.version, &there)
    return True


cdef bint json_header(const uint8_t* p, int64_t n, Out* scratch, Shape* shape, Header* h) noexcept nogil:
    """Read any header; `shape` is what it looks like, or is given up if it cannot be noted."""
    cdef Json j
    cdef const uint8_t* ext = NULL
    cdef int32_t ext_code = 0
    scratch.size = 0
    # Unescaping never lengthens; extFields may be read twice.
    if not ensure(scratch, <size_t>(2 * n + 16)):
        return False
    j.p = p
    j.end = p + n
    j.scratch = scratch
    j.shape = shape
    if not symbol(&j, c'{'):
        return False
    if j.p < j.end and j.p[0] == c'}':
        return False
    while True:
        if not json_member(&j, h, &ext, &ext_code):
            return False
        blanks(&j)
        if j.p < j.end and j.p[0] == c',':
            j.p += 1
            blanks(&j)
            continue
        break
    if not symbol(&j, c'}') or j.p != j.end:
        return False
    if not (h.has_code and h.has_opaque and is_hot(h.code)):
        return False
    if ext == NULL:
        return False
    if ext_code != h.code:
        # The code came behind its fields: now their names can be told.
        if shape != NULL:
            shape.count = 0
        j.shape = NULL
        j.p = ext
        return json_ext(&j, h)
    if shape != NULL:
        end_shape(shape, p, n, h)
    return True


# -- binary ----------------------------------------------------------------------------------------------

cdef bint binary_header(const uint8_t* p, int64_t n, Header* h) noexcept nogil:
    cdef const uint8_t* end = p + n
    cdef int64_t size
    cdef int64_t key_size
    cdef int field
    cdef const uint8_t* key
    if n < 21:
        return False
    h.code = <int16_t>load16(p)
    h.version = <int16_t>load16(p + 3)
    h.opaque = <int32_t>load32(p + 5)
    h.flag = <int32_t>load32(p + 9)
    if not is_hot(h.code):
        return False
    size = <int32_t>load32(p + 13)
    p += 17
    if size < 0 or size > end - p - 4 or not is_utf8(p, size):
        return False
    p += size
    size = <int32_t>load32(p)
    p += 4
    if size != end - p:
        return False
    while p < end:
        if end - p < 6:
            return False
        key_size = <int16_t>load16(p)
        if key_size <= 0 or key_size > end - p - 6:
            return False
        key = p + 2
        size = <int32_t>load32(key + key_size)
        p = key + key_size + 4
        if size < 0 or size > end - p or not is_utf8(key, key_size) or not is_utf8(p, size):
            return False
        field = field_of(h.code, key, key_size)
        if field < 0:
            # As in JSON: an empty value is null, and would have to undo an earlier one.
            if size == 0:
                return False
            h.extra = True
        else:
            h.fields[field].p = p
            h.fields[field].n = size
            h.fields[field].there = size > 0
        p += size
    return True
