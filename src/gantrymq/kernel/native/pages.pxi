# Pages of mapped files, brought into memory before anybody needs them.

cdef extern from *:
    """
    /* A write that changes nothing, whoever else writes there. */
    #define gantry_touch(p) ((void)__atomic_fetch_or((unsigned char *)(p), 0, __ATOMIC_RELAXED))
    """
    void gantry_touch(uint8_t* p) noexcept nogil


def touch_pages(target, position, limit, step):
    """Write a byte of every page of a range, as it is."""
    cdef View view = writing(target, position, limit)
    cdef int64_t at = position
    cdef int64_t stop = limit
    cdef int64_t stride
    if step < 1:
        raise InvalidValue("touch: the step must be positive")
    stride = min(step, 4611686018427387904)
    with nogil:
        while at < stop:
            gantry_touch(<uint8_t*>view.p + at)
            at += stride
