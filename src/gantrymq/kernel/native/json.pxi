# A strict JSON cursor for headers. It accepts what RFC 8259 does, less what a header of ours never has
# (floats, exponents, integers over 64 bits, lone surrogates); what it does not accept is not an error here:
# the general codec looks at it. It never recurses: a header has one object inside another and no more.

cdef extern from *:
    """
    /* The first byte of a string that wants a look: a quote, a backslash, a control, or one outside ASCII. */
    #if defined(__SSE2__) && defined(__GNUC__)
    #include <emmintrin.h>
    static inline const uint8_t *gantry_text_run(const uint8_t *p, const uint8_t *end) {
        const __m128i quote = _mm_set1_epi8('"'), escape = _mm_set1_epi8('\\\\'), blank = _mm_set1_epi8(0x20);
        for (; end - p >= 16; p += 16) {
            __m128i b = _mm_loadu_si128((const __m128i *)p);
            /* Signed: what is outside ASCII is below a blank, too. */
            __m128i hit = _mm_or_si128(_mm_cmplt_epi8(b, blank),
                                       _mm_or_si128(_mm_cmpeq_epi8(b, quote), _mm_cmpeq_epi8(b, escape)));
            unsigned mask = (unsigned)_mm_movemask_epi8(hit);
            if (mask) return p + __builtin_ctz(mask);
        }
        while (p < end && *p != '"' && *p != '\\\\' && *p >= 0x20 && *p < 0x80) p++;
        return p;
    }
    #else
    static inline const uint8_t *gantry_text_run(const uint8_t *p, const uint8_t *end) {
        while (p < end && *p != '"' && *p != '\\\\' && *p >= 0x20 && *p < 0x80) p++;
        return p;
    }
    #endif
    """
    const uint8_t* gantry_text_run(const uint8_t* p, const uint8_t* end) noexcept nogil


cdef struct Json:
    const uint8_t* p
    const uint8_t* end
    Out* scratch     # unescaped strings; large enough for the whole header from the start
    Shape* shape     # notes where values stand; NULL: nobody wants to know


cdef enum:
    VALUE_TEXT = 0
    VALUE_NUMBER = 1
    VALUE_BOOL = 2
    VALUE_NULL = 3
    VALUE_OBJECT = 4


cdef inline void blanks(Json* j) noexcept nogil:
    while j.p < j.end and (j.p[0] == c' ' or j.p[0] == c'\n' or j.p[0] == c'\r' or j.p[0] == c'\t'):
        j.p += 1


cdef inline bint symbol(Json* j, uint8_t char) noexcept nogil:
    """Take `char`, with blanks around it, if it comes next."""
    blanks(j)
    if j.p >= j.end or j.p[0] != char:
        return False
    j.p += 1
    blanks(j)
    return True


cdef int8_t[256] HEX_DIGITS


cdef void fill_hex_digits() noexcept:
    cdef int i
    for i in range(256):
        HEX_DIGITS[i] = -1
    for i in range(10):
        HEX_DIGITS[c'0' + i] = <int8_t>i
    for i in range(6):
        HEX_DIGITS[c'a' + i] = HEX_DIGITS[c'A' + i] = <int8_t>(10 + i)


fill_hex_digits()


cdef inline int hex4(Json* j) noexcept nogil:
    cdef int a, b, c, d
    if j.end - j.p < 4:
        return -1
    a = HEX_DIGITS[j.p[0]]
    b = HEX_DIGITS[j.p[1]]
    c = HEX_DIGITS[j.p[2]]
    d = HEX_DIGITS[j.p[3]]
    if (a | b | c | d) < 0:
        return -1
    j.p += 4
    return a << 12 | b << 8 | c << 4 | d


cdef inline void put_char(Out* out, uint32_t char) noexcept nogil:
    cdef uint8_t* at = out.data + out.size
    if char < 0x80:
        at[0] = <uint8_t>char
        out.size += 1
    elif char < 0x800:
        at[0] = <uint8_t>(0xC0 | (char >> 6))
        at[1] = <uint8_t>(0x80 | (char & 0x3F))
        out.size += 2
    elif char < 0x10000:
        at[0] = <uint8_t>(0xE0 | (char >> 12))
        at[1] = <uint8_t>(0x80 | ((char >> 6) & 0x3F))
        at[2] = <uint8_t>(0x80 | (char & 0x3F))
        out.size += 3
    else:
        at[0] = <uint8_t>(0xF0 | (char >> 18))
        at[1] = <uint8_t>(0x80 | ((char >> 12) & 0x3F))
        at[2] = <uint8_t>(0x80 | ((char >> 6) & 0x3F))
        at[3] = <uint8_t>(0x80 | (char & 0x3F))
        out.size += 4


cdef bint unicode_escape(Json* j) noexcept nogil:
    """The part of \\uXXXX behind the u; a surrogate needs its other half."""
    cdef int first = hex4(j)
    cdef int second
    if first < 0:
        return False
    if 0xD800 <= first <= 0xDFFF:
        if first > 0xDBFF or j.end - j.p < 6 or j.p[0] != c'\\' or j.p[1] != c'u':
            return False
        j.p += 2
        second = hex4(j)
        if second < 0xDC00 or second > 0xDFFF:
            return False
        put_char(j.scratch, <uint32_t>(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)))
        return True
    put_char(j.scratch, <uint32_t>first)
    return True


cdef bint escape(Json* j) noexcept nogil:
    cdef uint8_t char
    if j.p >= j.end:
        return False
    char = j.p[0]
    j.p += 1
    if char == c'u':
        return unicode_escape(j)
    if char == c'b':
        char = 8
    elif char == c'f':
        char = 12
    elif char == c'n':
        char = 10
    elif char == c'r':
        char = 13
    elif char == c't':
        char = 9
    elif char != c'"' and char != c'\\' and char != c'/':
        return False
    put_char(j.scratch, char)
    return True


cdef inline const uint8_t* plain_run(const uint8_t* p, const uint8_t* end, bint* ascii) noexcept nogil:
    """The end of what needs no look inside a string; notes a byte outside ASCII."""
    p = gantry_text_run(p, end)
    while p < end and p[0] >= 0x80:
        ascii[0] = False
        p = gantry_text_run(p + 1, end)
    return p


cdef bint text(Json* j, Slice* out) noexcept nogil:
    """A string, behind its opening quote: a slice of the header, or of the scratch space if it has escapes."""
    cdef const uint8_t* begin = j.p
    cdef const uint8_t* run
    cdef size_t scratch_begin
    cdef bint ascii = True
    j.p = plain_run(j.p, j.end, &ascii)
    if j.p >= j.end:
        return False
    if j.p[0] == c'"':
        out.p = begin
        out.n = j.p - begin
    else:
        scratch_begin = j.scratch.size
        put(j.scratch, begin, <size_t>(j.p - begin))
        while True:
            if j.p >= j.end or j.p[0] < 0x20:
                return False
            if j.p[0] == c'"':
                break
            if j.p[0] == c'\\':
                j.p += 1
                if not escape(j):
                    return False
            run = j.p
            j.p = plain_run(j.p, j.end, &ascii)
            put(j.scratch, run, <size_t>(j.p - run))
        out.p = j.scratch.data + scratch_begin
        out.n = <int64_t>(j.scratch.size - scratch_begin)
    out.there = True
    j.p += 1
    return ascii or is_utf8(out.p, out.n)


cdef bint number(Json* j, Slice* out) noexcept nogil:
    """An integer of 64 bits as its text."""
    cdef const uint8_t* begin = j.p
    cdef int64_t value
    if j.p[0] == c'-':
        j.p += 1
    if j.p >= j.end or j.p[0] < c'0' or j.p[0] > c'9':
        return False
    if j.p[0] == c'0':
        j.p += 1
    else:
        while j.p < j.end and c'0' <= j.p[0] <= c'9':
            j.p += 1
    if j.p < j.end and (j.p[0] == c'.' or j.p[0] == c'e' or j.p[0] == c'E'):
        return False
    out.p = begin
    out.n = j.p - begin
    if begin[0] == c'-' and begin[1] == c'0':
        out.p = begin + 1
        out.n = 1
    out.there = True
    return parse_long(out.p, out.n, &value)


cdef bint word(Json* j, const char* letters, int64_t n, Slice* out) noexcept nogil:
    if j.end - j.p < n or memcmp(j.p, letters, <size_t>n) != 0:
        return False
    out.p = j.p
    out.n = n
    out.there = True
    j.p += n
    return True


cdef int value(Json* j, Slice* out) noexcept nogil:
    """The next value and its kind; -1 for what no header has. An object is left to the caller."""
    if j.p >= j.end:
        return -1
    if j.p[0] == c'"':
        j.p += 1
        return VALUE_TEXT if text(j, out) else -1
    if j.p[0] == c'{':
        return VALUE_OBJECT
    if j.p[0] == c't':
        return VALUE_BOOL if word(j, b"true", 4, out) else -1
    if j.p[0] == c'f':
        return VALUE_BOOL if word(j, b"false", 5, out) else -1
    if j.p[0] == c'n':
        return VALUE_NULL if word(j, b"null", 4, out) else -1
    if j.p[0] == c'-' or c'0' <= j.p[0] <= c'9':
        return VALUE_NUMBER if number(j, out) else -1
    return -1
