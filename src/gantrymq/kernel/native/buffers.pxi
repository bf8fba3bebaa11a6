# Growing output, and the caller's buffers held for the time of one call.

cdef enum:
    KEPT_BYTES_MAX = 1 << 20


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


cdef inline void shrink(Out* out) noexcept nogil:
    """Give back what one unusual call has needed."""
    if out.room > KEPT_BYTES_MAX:
        free(out.data)
        memset(out, 0, sizeof(Out))


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


# -- ranges

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
    try:
        PyObject_GetBuffer(buffer, &view.raw, flags)
    except BufferError:
        raise InvalidValue(
            "range: a buffer of consecutive bytes is needed, and a writable one where it is written to"
        ) from None
    view.held = True
    if view.raw.itemsize != 1:
        raise InvalidValue(
            "range: a buffer of consecutive bytes is needed, and a writable one where it is written to"
        )
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


cdef int64_t checked_base(object log_base) except? -2:
    """A log offset that can be added to a position, or -1."""
    if not -1 <= log_base <= 4611686018427387904:
        raise InvalidValue(f"range: log_base={log_base} is not between -1 and 2**62")
    return log_base


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
