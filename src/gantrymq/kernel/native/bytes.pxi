# Big-endian numbers, CRC-32, UTF-8, Java's string hash, growing buffers, checked ranges.


cdef inline uint16_t load16(const uint8_t* p) noexcept nogil:
    return <uint16_t>((<uint32_t>p[0] << 8) | p[1])


cdef inline uint32_t load32(const uint8_t* p) noexcept nogil:
    return (<uint32_t>p[0] << 24) | (<uint32_t>p[1] << 16) | (<uint32_t>p[2] << 8) | p[3]


cdef inline uint64_t load64(const uint8_t* p) noexcept nogil:
    return (<uint64_t>load32(p) << 32) | load32(p + 4)


cdef inline uint32_t load32_little(const uint8_t* p) noexcept nogil:
    return (<uint32_t>p[3] << 24) | (<uint32_t>p[2] << 16) | (<uint32_t>p[1] << 8) | p[0]


cdef inline void store16(uint8_t* p, uint32_t v) noexcept nogil:
    p[0] = <uint8_t>(v >> 8)
    p[1] = <uint8_t>v


cdef inline void store32(uint8_t* p, uint32_t v) noexcept nogil:
    p[0] = <uint8_t>(v >> 24)
    p[1] = <uint8_t>(v >> 16)
    p[2] = <uint8_t>(v >> 8)
    p[3] = <uint8_t>v


cdef inline void store64(uint8_t* p, uint64_t v) noexcept nogil:
    store32(p, <uint32_t>(v >> 32))
    store32(p + 4, <uint32_t>v)


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


cdef bint parse_long(const uint8_t* p, int64_t n, int64_t* out) noexcept nogil:
    """Java's parseLong on ASCII: an optional sign, digits, the range of 64 bits."""
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


# -- CRC-32, eight bytes a step ------------------------------------------------------------------------

cdef uint32_t[8][256] CRC


cdef void fill_crc_table() noexcept:
    cdef uint32_t value
    cdef int i, k
    for i in range(256):
        value = <uint32_t>i
        for k in range(8):
            value = (value >> 1) ^ (0xEDB88320u if value & 1 else 0)
        CRC[0][i] = value
    for i in range(256):
        for k in range(1, 8):
            CRC[k][i] = (CRC[k - 1][i] >> 8) ^ CRC[0][CRC[k - 1][i] & 255]


fill_crc_table()


cdef uint32_t crc_of(const uint8_t* p, int64_t n) noexcept nogil:
    """CRC-32 with the sign bit cleared, as records keep it."""
    cdef uint32_t crc = 0xFFFFFFFFu
    cdef uint32_t low, high
    while n >= 8:
        low = crc ^ load32_little(p)
        high = load32_little(p + 4)
        crc = (CRC[7][low & 255] ^ CRC[6][(low >> 8) & 255] ^ CRC[5][(low >> 16) & 255]
               ^ CRC[4][low >> 24] ^ CRC[3][high & 255] ^ CRC[2][(high >> 8) & 255]
               ^ CRC[1][(high >> 16) & 255] ^ CRC[0][high >> 24])
        p += 8
        n -= 8
    while n > 0:
        crc = (crc >> 8) ^ CRC[0][(crc ^ p[0]) & 255]
        p += 1
        n -= 1
    return ~crc & 0x7FFFFFFFu


# -- UTF-8 ------------------------------------------------------------------------------------------------

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
    cdef uint32_t char
    while p < end:
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


# -- growing output ---------------------------------------------------------------------------------------

cdef struct Out:
    uint8_t* data
    size_t size
    size_t room


cdef bint grow(Out* out, size_t more) noexcept nogil:
    cdef size_t room = out.room * 2
    cdef uint8_t* data
    if room < out.size + more:
        room = out.size + more
    if room < 256:
        room = 256
    data = <uint8_t*>realloc(out.data, room)
    if data == NULL:
        return False
    out.data = data
    out.room = room
    return True


cdef inline bint ensure(Out* out, size_t more) noexcept nogil:
    """Make room for `more` bytes; False when there is no memory."""
    return out.room - out.size >= more or grow(out, more)


cdef inline void put(Out* out, const void* p, size_t n) noexcept nogil:
    """Append bytes for which there is room."""
    memcpy(out.data + out.size, p, n)
    out.size += n


cdef inline void put_number(Out* out, int64_t value) noexcept nogil:
    """Append a number as decimal text; at most 20 bytes, for which there is room."""
    cdef uint8_t[20] digits
    cdef int at = 20
    cdef uint64_t rest = <uint64_t>value
    if value < 0:
        rest = 0 - rest
    while True:
        at -= 1
        digits[at] = <uint8_t>(c'0' + rest % 10)
        rest //= 10
        if rest == 0:
            break
    if value < 0:
        at -= 1
        digits[at] = c'-'
    put(out, &digits[at], <size_t>(20 - at))


cdef inline int decimal_digits(int64_t value) noexcept nogil:
    """Length of a number as decimal text."""
    cdef uint64_t rest = <uint64_t>value
    cdef int n = 1
    if value < 0:
        rest = 0 - rest
        n = 2
    while rest >= 10:
        rest //= 10
        n += 1
    return n


cdef inline void put_hex(Out* out, const uint8_t* p, int64_t n) noexcept nogil:
    """Append bytes as upper-case hexadecimal, for which there is room."""
    cdef const char* digits = b"0123456789ABCDEF"
    cdef int64_t i
    cdef uint8_t* at = out.data + out.size
    for i in range(n):
        at[2 * i] = <uint8_t>digits[p[i] >> 4]
        at[2 * i + 1] = <uint8_t>digits[p[i] & 15]
    out.size += <size_t>(2 * n)


cdef inline bytes taken(Out* out):
    return PyBytes_FromStringAndSize(<char*>out.data, <Py_ssize_t>out.size)


# -- ranges -------------------------------------------------------------------------------------------------

cdef class View:
    """A buffer held for the time of one call, with its range checked."""

    cdef Py_buffer raw
    cdef bint held
    cdef const uint8_t* p
    cdef int64_t n

    def __cinit__(self):
        self.held = False

    def __dealloc__(self):
        self.release()

    cdef void release(self) noexcept:
        if self.held:
            self.held = False
            PyBuffer_Release(&self.raw)


cdef View hold(object buffer, int flags):
    cdef View view = View.__new__(View)
    PyObject_GetBuffer(buffer, &view.raw, flags)
    view.held = True
    view.p = <const uint8_t*>view.raw.buf
    view.n = view.raw.len
    return view


cdef View reading(object buffer, object start, object end):
    """Hold a buffer for reading; the range must lie within it."""
    cdef View view = hold(buffer, PyBUF_SIMPLE)
    if not 0 <= start <= end <= view.n:
        raise InvalidValue(
            f"range: start={start} end={end} do not lie within a buffer of {view.n} bytes"
        )
    return view


cdef View writing(object buffer, object position, object limit):
    """Hold a buffer for writing; the range must lie within it."""
    cdef View view = hold(buffer, PyBUF_WRITABLE)
    if not 0 <= position <= limit <= view.n:
        raise InvalidValue(
            f"range: position={position} limit={limit} do not lie within a buffer of {view.n} bytes"
        )
    return view


cdef inline str text_of(Slice* s):
    return PyUnicode_DecodeUTF8(<const char*>s.p, <Py_ssize_t>s.n, NULL)


def crc32(data):
    """Return the CRC-32 of `data` with the sign bit cleared."""
    cdef View view = hold(data, PyBUF_SIMPLE)
    cdef uint32_t result
    with nogil:
        result = crc_of(view.p, view.n)
    return result


def string_hash(text):
    """Return Java's `String.hashCode` of UTF-8 text, signed."""
    cdef View view = hold(text, PyBUF_SIMPLE)
    return <int32_t>hash_on(0, view.p, view.n)
