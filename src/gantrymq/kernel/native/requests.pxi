# The four hot requests, out of their headers.

cdef inline bint int_field(Header* h, int field, int32_t* out) noexcept nogil:
    return h.fields[field].there and parse_int(h.fields[field].p, h.fields[field].n, out)


cdef inline bint long_field(Header* h, int field, int64_t* out) noexcept nogil:
    return h.fields[field].there and parse_long(h.fields[field].p, h.fields[field].n, out)


cdef inline bint flag_field(Header* h, int field) noexcept nogil:
    return h.fields[field].there and says_true(h.fields[field].p, h.fields[field].n)


cdef struct Send:
    int32_t default_queues
    int32_t queue_id
    int32_t sys_flag
    int32_t flag
    int32_t reconsume_times
    int32_t max_reconsume_times
    int64_t born_timestamp
    bint batch
    bint unit_mode


cdef bint read_send(Header* h, Send* send) noexcept nogil:
    if not (h.fields[F_GROUP].there and h.fields[F_TOPIC].there and h.fields[F_DEFAULT_TOPIC].there):
        return False
    if not (int_field(h, F_DEFAULT_QUEUES, &send.default_queues) and int_field(h, F_QUEUE, &send.queue_id)
            and int_field(h, F_SYS_FLAG, &send.sys_flag) and long_field(h, F_BORN, &send.born_timestamp)
            and int_field(h, F_FLAG, &send.flag)):
        return False
    send.reconsume_times = 0
    send.max_reconsume_times = 0
    if h.fields[F_RECONSUME].there and not int_field(h, F_RECONSUME, &send.reconsume_times):
        return False
    if h.fields[F_MAX_RECONSUME].there and not int_field(h, F_MAX_RECONSUME, &send.max_reconsume_times):
        return False
    send.unit_mode = flag_field(h, F_UNIT)
    send.batch = flag_field(h, F_BATCH)
    return True


cdef object optional_text(Slice* s):
    return text_of(s) if s.there else None


cdef object send_request(Header* h, int serialize_type, object body_start, object body_end):
    cdef Send send
    cdef Slice* f = h.fields
    if not read_send(h, &send):
        return None
    return make(SendRequest, (
        h.code, h.version, h.opaque, bool(h.flag & 2), serialize_type,
        text_of(&f[F_GROUP]), text_of(&f[F_TOPIC]), text_of(&f[F_DEFAULT_TOPIC]), send.default_queues,
        send.queue_id, send.sys_flag, send.born_timestamp, send.flag,
        PyBytes_FromStringAndSize(<const char*>f[F_PROPERTIES].p, <Py_ssize_t>f[F_PROPERTIES].n),
        send.reconsume_times, bool(send.unit_mode),
        send.max_reconsume_times if f[F_MAX_RECONSUME].there else None,
        bool(send.batch), optional_text(&f[F_BROKER]), bool(h.extra), body_start, body_end,
    ))


cdef object pull_request(Header* h, int serialize_type):
    cdef int32_t queue_id, max_messages, sys_flag
    cdef int32_t max_bytes = 0
    cdef int64_t queue_offset, commit_offset, suspend, sub_version
    cdef Slice* f = h.fields
    if not (f[P_GROUP].there and f[P_TOPIC].there):
        return None
    if not (int_field(h, P_QUEUE, &queue_id) and long_field(h, P_OFFSET, &queue_offset)
            and int_field(h, P_MAX_MESSAGES, &max_messages) and int_field(h, P_SYS_FLAG, &sys_flag)
            and long_field(h, P_COMMIT, &commit_offset) and long_field(h, P_SUSPEND, &suspend)
            and long_field(h, P_SUB_VERSION, &sub_version)):
        return None
    if f[P_MAX_BYTES].there and not int_field(h, P_MAX_BYTES, &max_bytes):
        return None
    return make(PullRequest, (
        h.version, h.opaque, bool(h.flag & 2), serialize_type, text_of(&f[P_GROUP]), text_of(&f[P_TOPIC]),
        queue_id, queue_offset, max_messages, sys_flag, commit_offset, suspend,
        optional_text(&f[P_SUBSCRIPTION]), sub_version, optional_text(&f[P_EXPRESSION_TYPE]),
        max_bytes if f[P_MAX_BYTES].there else None, optional_text(&f[P_BROKER]), bool(h.extra),
    ))


def decode_request(buffer, frame):
    """Decode one of the four hot requests, or return None."""
    cdef Header header
    cdef Out scratch
    cdef bint ok
    cdef View view = reading(buffer, frame.header, frame.body)
    cdef int64_t at = frame.header
    cdef int64_t n = frame.body - at
    cdef uint8_t serialize_type
    if not frame.body <= frame.end <= view.n:
        raise InvalidValue(
            f"range: start={frame.body} end={frame.end} do not lie within a buffer of {view.n} bytes"
        )
    if frame.serialize_type != 0 and frame.serialize_type != 1:
        return None
    serialize_type = frame.serialize_type
    memset(&scratch, 0, sizeof(Out))
    try:
        with nogil:
            ok = read_header(view.p + at, n, serialize_type, &scratch, NULL, &header)
        if not ok:
            return None
        if header.code == PULL:
            return pull_request(&header, serialize_type)
        return send_request(&header, serialize_type, frame.body, frame.end)
    finally:
        free(scratch.data)
