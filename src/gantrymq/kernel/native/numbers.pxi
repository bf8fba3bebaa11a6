# Numbers in bytes and in text, and slices of somebody else's bytes.


cdef extern from *:
    """
    /* Big-endian numbers. Compilers know the shifts for what they are in a load, less often in a store. */
    #if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    static inline uint16_t load16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return __builtin_bswap16(v); }
    static inline uint32_t load32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return __builtin_bswap32(v); }
    static inline uint64_t load64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return __builtin_bswap64(v); }
    static inline void store16(uint8_t *p, uint32_t v) { uint16_t w = __builtin_bswap16((uint16_t)v); memcpy(p, &w, 2); }
    static inline void store32(uint8_t *p, uint32_t v) { v = __builtin_bswap32(v); memcpy(p, &v, 4); }
    static inline void store64(uint8_t *p, uint64_t v) { v = __builtin_bswap64(v); memcpy(p, &v, 8); }
    #else
    static inline uint16_t load16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
    static inline uint32_t load32(const uint8_t *p) { return (uint32_t)load16(p) << 16 | load16(p + 2); }
    static inline uint64_t load64(const uint8_t *p) { return (uint64_t)load32(p) << 32 | load32(p + 4); }
    static inline void store16(uint8_t *p, uint32_t v) { p[0] = (uint8_t)(v >> 8); p[1] = (uint8_t)v; }
    static inline void store32(uint8_t *p, uint32_t v) { store16(p, v >> 16); store16(p + 2, v); }
    static inline void store64(uint8_t *p, uint64_t v) { store32(p, (uint32_t)(v >> 32)); store32(p + 4, (uint32_t)v); }
    #endif
    """
    uint16_t load16(const uint8_t* p) noexcept nogil
    uint32_t load32(const uint8_t* p) noexcept nogil
    uint64_t load64(const uint8_t* p) noexcept nogil
    void store16(uint8_t* p, uint32_t v) noexcept nogil
    void store32(uint8_t* p, uint32_t v) noexcept nogil
    void store64(uint8_t* p, uint64_t v) noexcept nogil


cdef inline uint32_t load32_little(const uint8_t* p) noexcept nogil:
    return (<uint32_t>p[3] << 24) | (<uint32_t>p[2] << 16) | (<uint32_t>p[1] << 8) | p[0]


cdef extern from *:
    """
    /* No store behind it is seen before the ones ahead of it. */
    #define gantry_release() __atomic_thread_fence(__ATOMIC_RELEASE)
    """
    void gantry_release() noexcept nogil


cdef inline void store32_last(uint8_t* p, uint32_t v) noexcept nogil:
    """Store a number after everything that was stored before it."""
    gantry_release()
    store32(p, v)


cdef inline void store32_little(uint8_t* p, uint32_t v) noexcept nogil:
    p[0] = <uint8_t>v
    p[1] = <uint8_t>(v >> 8)
    p[2] = <uint8_t>(v >> 16)
    p[3] = <uint8_t>(v >> 24)


cdef inline void store64_little(uint8_t* p, uint64_t v) noexcept nogil:
    store32_little(p, <uint32_t>v)
    store32_little(p + 4, <uint32_t>(v >> 32))


# -- a slice of somebody else's bytes ----------------------------------------------------------------

cdef struct Slice:
    const uint8_t* p
    int64_t n
    bint there


cdef inline bint equals(const uint8_t* p, int64_t n, const char* text, int64_t m) noexcept nogil:
    return n == m and memcmp(p, text, <size_t>m) == 0


cdef inline bint says_true(const uint8_t* p, int64_t n) noexcept nogil:
    """Java's parseBoolean: `true` in any case."""
    return (n == 4 and (p[0] | 32) == c't' and (p[1] | 32) == c'r' and (p[2] | 32) == c'u'
            and (p[3] | 32) == c'e')


cdef inline bint parse_long(const uint8_t* p, int64_t n, int64_t* out) noexcept nogil:
    """Java's parseLong on ASCII: an optional sign, digits, the range of 64 bits."""
    cdef uint64_t value = 0
    cdef uint64_t digit
    cdef int64_t i = 0
    if 0 < n <= 18:  # as most are: no sign, and too short to be out of range
        while i < n:
            digit = <uint64_t>p[i] - c'0'
            if digit > 9:
                return parse_any_long(p, n, out)
            value = value * 10 + digit
            i += 1
        out[0] = <int64_t>value
        return True
    return parse_any_long(p, n, out)


cdef bint parse_any_long(const uint8_t* p, int64_t n, int64_t* out) noexcept nogil:
    """The same for every text."""
    cdef bint negative = False
    cdef uint64_t limit = 0x7FFFFFFFFFFFFFFFu
    cdef uint64_t value = 0
    cdef uint64_t digit
    cdef int64_t i = 0
    if n > 0 and (p[0] == c'-' or p[0] == c'+'):
        if p[0] == c'-':
            negative = True
            limit += 1
        i = 1
    if i >= n:
        return False
    while i < n:
        if p[i] < c'0' or p[i] > c'9':
            return False
        digit = p[i] - c'0'
        if value > (limit - digit) // 10:
            return False
        value = value * 10 + digit
        i += 1
    out[0] = <int64_t>(0 - value) if negative else <int64_t>value
    return True


cdef inline bint parse_int(const uint8_t* p, int64_t n, int32_t* out) noexcept nogil:
    """Java's parseInt on ASCII."""
    cdef int64_t value
    if not parse_long(p, n, &value) or value < -2147483648 or value > 2147483647:
        return False
    out[0] = <int32_t>value
    return True
