# Refusals of sends, many at once.

cdef void put_refusal(
    Out* out, uint32_t kind, int32_t opaque, int32_t version, int32_t code, const uint8_t* remark, size_t n,
    const uint8_t* region, size_t region_size, bint trace_on,
) noexcept nogil:
    cdef size_t at = begin_frame(out)
    cdef size_t area
    if kind == 0:
        put_text(out, b'{"code":', 8)
        put_number(out, code)
        if trace_on:
            put_text(out, b',"extFields":{"TRACE_ON":"true","MSG_REGION":"', 46)
        else:
            put_text(out, b',"extFields":{"TRACE_ON":"false","MSG_REGION":"', 47)
        put(out, region, region_size)
        json_tail(out, opaque, version, remark, n)
    else:
        put_binary_head(out, code, version, opaque)
        put_size(out, n)
        put(out, remark, n)
        area = out.size
        out.size += 4
        if trace_on:
            put_entry(out, b'TRACE_ON', 8, b'true', 4)
        else:
            put_entry(out, b'TRACE_ON', 8, b'false', 5)
        if region_size:
            put_entry(out, b'MSG_REGION', 10, region, region_size)
        store32(out.data + area, <uint32_t>(out.size - area - 4))
    end_frame(out, at, kind, 0)


def refuse_sends(buffer, start, end, frame_bytes_max, version, code, bytes remark, bytes region, trace_on):
    """Return refusals of the sends at the front of a range."""
    cdef View view = reading(buffer, start, end)
    cdef int64_t position = start
    cdef int64_t stop = end
    cdef int64_t bytes_max
    cdef int64_t requests = 0
    cdef int32_t c_version, c_code
    cdef const uint8_t* remark_at = <const uint8_t*>PyBytes_AS_STRING(remark)
    cdef const uint8_t* region_at = <const uint8_t*>PyBytes_AS_STRING(region)
    cdef size_t remark_size = <size_t>PyBytes_GET_SIZE(remark)
    cdef size_t region_size = <size_t>PyBytes_GET_SIZE(region)
    cdef bint traces = bool(trace_on)
    cdef Split split
    cdef Header header
    cdef Send send
    cdef Shapes shapes
    cdef Out scratch
    cdef Out out
    cdef bint ok
    cdef bint has_memory = True
    if not 8 <= frame_bytes_max <= 2147483647:
        raise InvalidValue("frames: frame_bytes_max must be between 8 and 2147483647")
    bytes_max = frame_bytes_max
    check_plain(remark, "remark")
    check_plain(region, "region")
    try:
        c_version = version
        c_code = code
    except OverflowError:
        raise InvalidValue("reply: a number is out of range") from None
    check_header_bytes(<int64_t>(400 + remark_size + region_size))
    know_no_shape(&shapes)
    memset(&scratch, 0, sizeof(Out))
    memset(&out, 0, sizeof(Out))
    try:
        with nogil:
            while look_at_frame(view.p + position, stop - position, bytes_max, &split) == FRAME_WHOLE:
                scratch.size = 0
                ok = read_header(
                    view.p + position + 8, <int64_t>split.header_bytes, split.serialize_type, &scratch, &shapes,
                    &header,
                )
                if not ok or header.code == PULL or not read_send(&header, &send):
                    break
                if not header.flag & 2:
                    if not ensure(&out, 400 + remark_size + region_size):
                        has_memory = False
                        break
                    put_refusal(
                        &out, split.serialize_type, header.opaque, c_version, c_code, remark_at, remark_size,
                        region_at, region_size, traces,
                    )
                position += 4 + <int64_t>split.total
                requests += 1
        if not has_memory and not requests:
            raise MemoryError
        return make(Refused, (position, requests, taken(&out)))
    finally:
        free(scratch.data)
        free(out.data)
