# Records copied behind one another, by way of consume queue units.

cdef int32_t* hash_array(list hashes) except? NULL:
    """The hashes as a C array, which the caller frees; NULL when there are none."""
    cdef int64_t n = len(hashes)
    cdef int64_t i
    cdef int32_t* wanted
    if n == 0:
        return NULL
    for i in range(n):
        if not -2147483648 <= hashes[i] <= 2147483647:
            raise InvalidValue("gather: hashes must be 32-bit numbers")
    wanted = <int32_t*>malloc(<size_t>n * sizeof(int32_t))
    if wanted == NULL:
        raise MemoryError
    for i in range(n):
        wanted[i] = hashes[i]
    return wanted


def gather_records(units, start, end, log, log_start, log_end, log_base, hashes, messages_max, bytes_max):
    """Return the records that matching units of a range point to, behind one another."""
    cdef View queue = reading(units, start, end)
    cdef View records = reading(log, log_start, log_end)
    cdef int64_t position = start
    cdef int64_t stop = end
    cdef int64_t first = log_start
    cdef int64_t last = log_end
    cdef int64_t base
    cdef int64_t at
    cdef int32_t size
    cdef int64_t tags_code
    cdef int64_t most
    cdef int64_t room
    cdef int64_t messages = 0
    cdef int64_t last_offset = -1
    cdef list hash_list = list(hashes)
    cdef int64_t n = len(hash_list)
    cdef int32_t* wanted = NULL
    cdef Out found
    cdef bint ok = True
    base = checked_base(log_base)
    if base < 0:
        raise InvalidValue("gather: log_base must be known")
    if messages_max < 1:
        raise InvalidValue("gather: messages_max must be positive")
    if bytes_max < 1:
        raise InvalidValue("gather: bytes_max must be positive")
    most = min(messages_max, 0x7FFFFFFFFFFFFFFF)
    room = min(bytes_max, 0x7FFFFFFFFFFFFFFF)
    memset(&found, 0, sizeof(Out))
    try:
        wanted = hash_array(hash_list)
        with nogil:
            while stop - position >= 20 and messages < most:
                size = <int32_t>load32(queue.p + position + 8)
                if size <= 0:
                    break
                if size == PRE_BLANK:
                    position += 20
                    continue
                tags_code = <int64_t>load64(queue.p + position + 12)
                if n and tags_code <= EXT_ADDRESS:
                    break
                if not tag_matches(tags_code, wanted, n):
                    position += 20
                    continue
                at = <int64_t>load64(queue.p + position)
                if at < base or at - base > last - size or at - base < first:
                    break
                if messages and <int64_t>found.size + size > room:
                    break
                ok = ensure(&found, <size_t>size)
                if not ok:
                    break
                put(&found, records.p + (at - base), <size_t>size)
                last_offset = at
                messages += 1
                position += 20
        if not ok:
            raise MemoryError
        return make(Gathered, (
            PyBytes_FromStringAndSize(<char*>found.data, <Py_ssize_t>found.size) if found.size else b"",
            messages,
            position,
            last_offset,
        ))
    finally:
        free(wanted)
        free(found.data)
