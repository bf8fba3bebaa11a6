# Headers, read by what they look like if one like them came before, and with care otherwise.

cdef bint read_shaped(Shape* shape, const uint8_t* p, int64_t n, Out* scratch, Header* h) noexcept nogil:
    """Fill `h` from a header that looks like the shape; False for every other, then `h` holds anything."""
    cdef Json j
    cdef Slice content
    cdef Place* place
    cdef const uint8_t* piece = shape.pieces
    cdef int i
    if shape.count == 0:
        return False
    scratch.size = 0
    if not ensure(scratch, <size_t>(n + 16)):
        return False
    j.p = p
    j.end = p + n
    j.scratch = scratch
    j.shape = NULL
    for i in range(shape.count):
        place = &shape.places[i]
        # At least one byte of a value must follow.
        if place.piece >= j.end - j.p or not same_bytes(j.p, piece, place.piece):
            return False
        piece += place.piece
        j.p += place.piece
        if not (text(&j, &content) if place.is_text else number(&j, &content)):
            return False
        if place.field >= 0:
            h.fields[place.field] = content
        elif place.field == VALUE_IS_OPAQUE and not parse_int(content.p, content.n, &h.opaque):
            return False
    if j.end - j.p != shape.behind or not same_bytes(j.p, piece, shape.behind):
        return False
    h.code = shape.code
    h.flag = shape.flag
    h.version = shape.version
    h.extra = shape.extra
    h.has_code = h.has_opaque = True
    return True


# -- several clients -------------------------------------------------------------------------------------------

cdef enum:
    SHAPES = 8               # a power of two


cdef struct Shapes:
    Shape[SHAPES] all


cdef inline void know_no_shape(Shapes* shapes) noexcept nogil:
    cdef int i
    for i in range(SHAPES):
        shapes.all[i].count = 0


cdef inline Shape* shape_for(Shapes* shapes, const uint8_t* p, int64_t n) noexcept nogil:
    """The place for headers that begin and end like this one: of one kind, code and version of client."""
    cdef uint64_t begin, end
    if n < 24:
        return NULL
    memcpy(&begin, p + 8, 8)
    memcpy(&end, p + n - 8, 8)
    return &shapes.all[((begin ^ (end * 0x9E3779B97F4A7C15u)) * 0xBF58476D1CE4E5B9u) >> 61]


cdef inline bint read_header(
    const uint8_t* p, int64_t n, uint8_t serialize_type, Out* scratch, Shapes* shapes, Header* h
) noexcept nogil:
    """Fill `h` from a header of a hot request; False for everything else. Without `shapes` none is remembered."""
    cdef Shape* shape = NULL
    if serialize_type == 0:
        if shapes != NULL:
            shape = shape_for(shapes, p, n)
        if shape != NULL:
            memset(h, 0, sizeof(Header))
            if read_shaped(shape, p, n, scratch, h):
                return True
            shape.count = 0
        memset(h, 0, sizeof(Header))
        if not json_header(p, n, scratch, shape, h):
            if shape != NULL:
                shape.count = 0
            return False
    else:
        memset(h, 0, sizeof(Header))
        if not binary_header(p, n, h):
            return False
    return not h.flag & 1
