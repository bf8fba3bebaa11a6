# Where frames begin and end: i32 total, u8 serialize type, u24 header length, header, body.

cdef struct Split:
    int32_t total
    uint32_t header_bytes
    uint8_t serialize_type


cdef enum:
    FRAME_WHOLE = 0
    FRAME_PARTIAL = 1
    FRAME_BAD_LENGTH = 2
    FRAME_BAD_TYPE = 3
    FRAME_BAD_HEADER = 4


cdef int look_at_frame(const uint8_t* p, int64_t left, int64_t bytes_max, Split* split) noexcept nogil:
    """Say what stands at `p`, as early as its bytes allow."""
    if left < 4:
        return FRAME_PARTIAL
    split.total = <int32_t>load32(p)
    if split.total < 4 or <int64_t>split.total + 4 > bytes_max:
        return FRAME_BAD_LENGTH
    if left < 8:
        return FRAME_PARTIAL
    split.serialize_type = p[4]
    if split.serialize_type > 1:
        return FRAME_BAD_TYPE
    split.header_bytes = load32(p + 4) & 0xFFFFFFu
    if split.header_bytes > <uint32_t>(split.total - 4):
        return FRAME_BAD_HEADER
    if left < <int64_t>split.total + 4:
        return FRAME_PARTIAL
    return FRAME_WHOLE


cdef object frame_error(int state, Split* split, object bytes_max):
    if state == FRAME_BAD_LENGTH:
        return ProtocolError("frame.length", f"{split.total} is not between 4 and {bytes_max - 4}")
    if state == FRAME_BAD_TYPE:
        return ProtocolError(
            "frame.serializeType", f"{split.serialize_type} is neither 0 (JSON) nor 1 (ROCKETMQ)"
        )
    return ProtocolError(
        "frame.headerLength",
        f"{split.header_bytes} is more than the {split.total - 4} bytes left in the frame",
    )


def split_frames(buffer, start, end, frame_bytes_max):
    """Return the complete frames in the range and the position behind the last of them."""
    cdef View view = reading(buffer, start, end)
    cdef int64_t position = start
    cdef int64_t stop = end
    cdef int64_t bytes_max
    cdef int64_t header
    cdef Split split
    cdef int state
    cdef list frames = []
    if not 8 <= frame_bytes_max <= 2147483647:
        raise InvalidValue("frames: frame_bytes_max must be between 8 and 2147483647")
    bytes_max = frame_bytes_max
    while True:
        state = look_at_frame(view.p + position, stop - position, bytes_max, &split)
        if state != FRAME_WHOLE:
            break
        header = position + 8
        frames.append(make(Frame, (
            position, header, header + split.header_bytes, position + 4 + split.total,
            split.serialize_type,
        )))
        position += 4 + <int64_t>split.total
    if state != FRAME_PARTIAL and not frames:
        raise frame_error(state, &split, frame_bytes_max)
    return frames, position
