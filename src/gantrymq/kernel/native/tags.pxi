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
