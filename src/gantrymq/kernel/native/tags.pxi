# Tags matched against consume queue units.

cdef enum:
    PRE_BLANK = 2147483647
    EXT_ADDRESS = -2147483649


cdef inline bint tag_matches(int64_t tags_code, const int32_t* hashes, int64_t n) noexcept nogil:
    cdef int32_t low = <int32_t>(<uint64_t>tags_code & 0xFFFFFFFFu)
    cdef int64_t i
    if n == 0 or tags_code <= EXT_ADDRESS:
        return True
    for i in range(n):
        if hashes[i] == low:
            return True
    return False


def match_tags(buffer, start, end, hashes, matches_max):
    """Return the units of a consume queue range whose tag matches, and the position scanned up to."""
    cdef View view = reading(buffer, start, end)
    cdef int64_t position = start
    cdef int64_t stop = end
    cdef list hash_list = list(hashes)
    cdef int64_t n = len(hash_list)
    cdef int32_t* wanted = NULL
    cdef int64_t most
    cdef Out found
    cdef int64_t i
    cdef int32_t size
    cdef bint ok = True
    cdef uint8_t* p
    cdef list units = []
    if matches_max < 1:
        raise InvalidValue("match: matches_max must be positive")
    most = min(matches_max, 0x7FFFFFFFFFFFFFFF)
    memset(&found, 0, sizeof(Out))
    try:
        wanted = <int32_t*>malloc(<size_t>(n + 1) * sizeof(int32_t))
        if wanted == NULL:
            raise MemoryError
        for i in range(n):
            if not -2147483648 <= hash_list[i] <= 2147483647:
                raise InvalidValue("match: hashes must be 32-bit numbers")
            wanted[i] = hash_list[i]
        with nogil:
            while stop - position >= 20 and <int64_t>(found.size // 20) < most:
                size = <int32_t>load32(view.p + position + 8)
                if size <= 0:
                    break
                if size != PRE_BLANK and tag_matches(<int64_t>load64(view.p + position + 12), wanted, n):
                    ok = ensure(&found, 20)
                    if not ok:
                        break
                    put(&found, view.p + position, 20)
                position += 20
        if not ok:
            raise MemoryError
        for i in range(<int64_t>(found.size // 20)):
            p = found.data + 20 * i
            units.append(make(QueueUnit, (
                <int64_t>load64(p), <int32_t>load32(p + 8), <int64_t>load64(p + 12),
            )))
        return units, position
    finally:
        free(wanted)
        free(found.data)
