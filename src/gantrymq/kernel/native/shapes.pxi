# What a JSON header looks like but for its values, noted while it is read.
#
# A client writes each of its headers alike: the same names in the same order, with other values. So what
# stands between the values of one header is kept, and the next header is compared with it, piece by piece:
#
#     {"code":310,"extFields":{"a":"PG","b":"T","e":"3"},"flag":0,"language":"JAVA","opaque":7,"version":399}
#     [------------- piece -------------] [-p-]            ...                              [---- behind ----]
#
# The values of extFields and the opaque may differ; everything else is part of a piece. A header that has the
# same pieces, and values of the same kind between them, is read as the first one was: to the same fields.

cdef enum:
    SHAPE_VALUES_MAX = 24
    SHAPE_BYTES_MAX = 1024
    VALUE_IS_OPAQUE = -2     # instead of a field; -1: a field that nobody knows


cdef struct Place:
    uint16_t piece           # bytes in front of the value
    int8_t field
    bint is_text


cdef struct Shape:
    int count                # 0: there is none
    int32_t code
    int32_t flag
    int32_t version
    bint extra
    Place[SHAPE_VALUES_MAX] places
    const uint8_t* begins[SHAPE_VALUES_MAX]  # only while the header that is noted is there
    const uint8_t* ends[SHAPE_VALUES_MAX]
    int64_t behind           # bytes behind the last value
    uint8_t[SHAPE_BYTES_MAX] pieces          # one after the other, then what is behind


cdef inline void note_value(Shape* shape, const uint8_t* begin, const uint8_t* end, int kind, int field) noexcept nogil:
    """Note a value from `begin` to `end`. What is no text and no number can be no place: then there is no shape."""
    cdef Place* place
    if shape.count < 0 or shape.count == SHAPE_VALUES_MAX or (kind != VALUE_TEXT and kind != VALUE_NUMBER):
        shape.count = -1
        return
    place = &shape.places[shape.count]
    place.is_text = kind == VALUE_TEXT
    place.field = <int8_t>field
    # The quotes of a text belong to it on its right side alone: `text` begins behind the one on the left.
    shape.begins[shape.count] = begin + 1 if place.is_text else begin
    shape.ends[shape.count] = end
    shape.count += 1


cdef void end_shape(Shape* shape, const uint8_t* p, int64_t n, Header* h) noexcept nogil:
    """Keep the pieces between the values that were noted; the shape is none if they are too long."""
    cdef int64_t used = 0
    cdef int64_t piece
    cdef const uint8_t* at = p
    cdef int i
    if shape.count <= 0 or h.flag & 1:
        shape.count = 0
        return
    for i in range(shape.count):
        piece = shape.begins[i] - at
        if piece < 0 or used + piece > SHAPE_BYTES_MAX:
            shape.count = 0
            return
        memcpy(shape.pieces + used, at, <size_t>piece)
        shape.places[i].piece = <uint16_t>piece
        used += piece
        at = shape.ends[i]
    shape.behind = p + n - at
    if used + shape.behind > SHAPE_BYTES_MAX:
        shape.count = 0
        return
    memcpy(shape.pieces + used, at, <size_t>shape.behind)
    shape.code = h.code
    shape.flag = h.flag
    shape.version = h.version
    shape.extra = h.extra


cdef inline bint same_bytes(const uint8_t* a, const uint8_t* b, int64_t n) noexcept nogil:
    """memcmp for pieces, most of which have less than 16 bytes: two loads that overlap instead of a call."""
    cdef uint64_t a8, b8
    cdef uint32_t a4, b4
    if n >= 8:
        if n > 16:
            return memcmp(a, b, <size_t>n) == 0
        memcpy(&a8, a, 8)
        memcpy(&b8, b, 8)
        if a8 != b8:
            return False
        memcpy(&a8, a + n - 8, 8)
        memcpy(&b8, b + n - 8, 8)
        return a8 == b8
    if n >= 4:
        memcpy(&a4, a, 4)
        memcpy(&b4, b, 4)
        if a4 != b4:
            return False
        memcpy(&a4, a + n - 4, 4)
        memcpy(&b4, b + n - 4, 4)
        return a4 == b4
    while n > 0:
        n -= 1
        if a[n] != b[n]:
            return False
    return True
