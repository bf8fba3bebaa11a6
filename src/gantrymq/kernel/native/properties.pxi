# Property strings: name 0x01 value 0x02 ...

cdef enum:
    NAME_TAGS = 0x54414753       # the letters, as one number
    NAME_KEYS = 0x4B455953


cdef uint64_t NAME_UNIQ_KEY = 0x554E49515F4B4559u


cdef struct Properties:
    Slice tags
    Slice keys
    Slice unique_key
    Slice delay
    bint multi


cdef extern from *:
    """
    /* memchr for what is mostly near: without a call. `end` if there is none. */
    #if defined(__SSE2__) && defined(__GNUC__)
    static inline const uint8_t *gantry_find(const uint8_t *p, const uint8_t *end, uint8_t wanted) {
        const __m128i all = _mm_set1_epi8((char)wanted);
        for (; end - p >= 16; p += 16) {
            unsigned mask = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)p), all));
            if (mask) return p + __builtin_ctz(mask);
        }
        while (p < end && *p != wanted) p++;
        return p;
    }
    #else
    static inline const uint8_t *gantry_find(const uint8_t *p, const uint8_t *end, uint8_t wanted) {
        const uint8_t *found = end > p ? memchr(p, wanted, (size_t)(end - p)) : NULL;
        return found ? found : end;
    }
    #endif
    """
    const uint8_t* gantry_find(const uint8_t* p, const uint8_t* end, uint8_t wanted) noexcept nogil


cdef inline bint next_entry(const uint8_t** at, const uint8_t* end, Slice* name, Slice* content) noexcept nogil:
    """The next property that counts: one with a name and a value."""
    cdef const uint8_t* p = at[0]
    cdef const uint8_t* stop
    cdef const uint8_t* middle
    while p < end:
        stop = gantry_find(p, end, 2)
        middle = p  # names are short: cheaper than a call
        while middle < stop and middle[0] != 1:
            middle += 1
        if middle > p and middle + 1 < stop:
            name.p = p
            name.n = middle - p
            content.p = middle + 1
            content.n = stop - middle - 1
            content.there = True
            at[0] = stop + 1
            return True
        p = stop + 1
    at[0] = p
    return False


cdef void read_properties(const uint8_t* p, int64_t n, Properties* out) noexcept nogil:
    cdef const uint8_t* at = p
    cdef const uint8_t* end = p + n
    cdef Slice name
    cdef Slice content
    memset(out, 0, sizeof(Properties))
    while next_entry(&at, end, &name, &content):
        if name.n == 4:
            if load32(name.p) == NAME_TAGS:
                out.tags = content
            elif load32(name.p) == NAME_KEYS:
                out.keys = content
        elif name.n == 8:
            if load64(name.p) == NAME_UNIQ_KEY:
                out.unique_key = content
        elif name.n == 5:
            if memcmp(name.p, b"DELAY", 5) == 0:
                out.delay = content
        elif name.n == 20:
            if memcmp(name.p, b"INNER_MULTI_DISPATCH", 20) == 0:
                out.multi = True
