# Records whose properties a power cut has torn, where no CRC looks.

cdef inline bint only_zeros(const uint8_t* p, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        if p[i]:
            return False
    return True


cdef bint is_torn(const uint8_t* base, Rec* r, int64_t sector) noexcept nogil:
    cdef int64_t start = r.properties - base
    cdef int64_t end = start + r.properties_bytes
    cdef int64_t border = start + (sector - start % sector) % sector
    if memchr(r.topic, 0, <size_t>r.topic_bytes) != NULL:
        return True
    while border < end:
        if only_zeros(base + border, sector if sector < end - border else end - border):
            return True
        border += sector
    return False


def find_torn(buffer, start, end, sector_bytes):
    """Return where the first record begins that looks torn, or -1."""
    cdef View view = reading(buffer, start, end)
    cdef int64_t position = start
    cdef int64_t stop = end
    cdef int64_t sector
    cdef Rec r
    if sector_bytes < 1:
        raise InvalidValue("torn: a sector has at least a byte")
    sector = min(sector_bytes, 4611686018427387904)
    with nogil:
        while walk(view.p, position, stop, -1, False, &r) == WALK_GOOD:
            if is_torn(view.p, &r, sector):
                break
            position += r.size
        else:
            position = -1
    return position
