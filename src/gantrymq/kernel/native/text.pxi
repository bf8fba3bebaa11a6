# UTF-8 and Java's string hash over it.

cdef enum:
    ILL_FORMED = 0xFFFFFFFF
    REPLACEMENT = 0xFFFD


cdef inline bint continues(const uint8_t* p, const uint8_t* end, uint8_t low, uint8_t high) noexcept nogil:
    return p < end and p[0] >= low and p[0] <= high


cdef int next_char(const uint8_t* p, const uint8_t* end, uint32_t* out) noexcept nogil:
    """Decode one character; return the bytes used. An ill-formed part is used up as far as it was legal."""
    cdef uint8_t first = p[0]
    cdef uint8_t low = 0x80
    cdef uint8_t high = 0xBF
    out[0] = ILL_FORMED
    if first < 0x80:
        out[0] = first
        return 1
    if first < 0xC2 or first > 0xF4:
        return 1
    if first < 0xE0:
        if not continues(p + 1, end, 0x80, 0xBF):
            return 1
        out[0] = ((first & 0x1F) << 6) | (p[1] & 0x3F)
        return 2
    if first < 0xF0:
        if first == 0xE0:
            low = 0xA0
        elif first == 0xED:
            high = 0x9F
        if not continues(p + 1, end, low, high):
            return 1
        if not continues(p + 2, end, 0x80, 0xBF):
            return 2
        out[0] = ((first & 0x0F) << 12) | ((p[1] & 0x3F) << 6) | (p[2] & 0x3F)
        return 3
    if first == 0xF0:
        low = 0x90
    elif first == 0xF4:
        high = 0x8F
    if not continues(p + 1, end, low, high):
        return 1
    if not continues(p + 2, end, 0x80, 0xBF):
        return 2
    if not continues(p + 3, end, 0x80, 0xBF):
        return 3
    out[0] = ((first & 0x07) << 18) | ((p[1] & 0x3F) << 12) | ((p[2] & 0x3F) << 6) | (p[3] & 0x3F)
    return 4


cdef inline const uint8_t* skip_ascii(const uint8_t* p, const uint8_t* end) noexcept nogil:
    cdef uint64_t word
    while end - p >= 8:
        memcpy(&word, p, 8)
        if word & 0x8080808080808080u:
            break
        p += 8
    while p < end and p[0] < 0x80:
        p += 1
    return p


cdef bint is_utf8(const uint8_t* p, int64_t n) noexcept nogil:
    cdef const uint8_t* end = p + n
    cdef uint32_t char
    p = skip_ascii(p, end)
    while p < end:
        p += next_char(p, end, &char)
        if char == ILL_FORMED:
            return False
        p = skip_ascii(p, end)
    return True


cdef uint32_t hash_on(uint32_t h, const uint8_t* p, int64_t n) noexcept nogil:
    """Java's String.hashCode continued over UTF-8 text: h = 31 h + UTF-16 unit."""
    cdef const uint8_t* end = p + n
    cdef uint64_t word
    cdef uint32_t char
    while p < end:
        # Eight ASCII characters at once: one multiplication waits for the last, where there were eight.
        while end - p >= 8:
            memcpy(&word, p, 8)
            if word & 0x8080808080808080u:
                break
            h = (2487512833u * h + 1742810335u * p[0] + 887503681u * p[1] + 28629151u * p[2] + 923521u * p[3]
                 + 29791u * p[4] + 961u * p[5] + 31u * p[6] + p[7])
            p += 8
        if p == end:
            break
        if p[0] < 0x80:
            h = 31 * h + p[0]
            p += 1
            continue
        p += next_char(p, end, &char)
        if char == ILL_FORMED:
            char = REPLACEMENT
        if char >= 0x10000:
            char -= 0x10000
            h = 31 * h + (0xD800 + (char >> 10))
            char = 0xDC00 + (char & 0x3FF)
        h = 31 * h + char
    return h
