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


cdef extern from *:
    """
    #if defined(__GNUC__)
    #define gantry_prefetch(p) __builtin_prefetch(p)
    #else
    #define gantry_prefetch(p) ((void)(p))
    #endif
    """
    void prefetch "gantry_prefetch"(const void* p) noexcept nogil


cdef enum:
    PREFETCHED_BYTES = 512   # of a record; of a longer one the processor sees by itself what comes


# What a walk over units is given, and what it has found.
cdef struct Walk:
    const uint8_t* units
    int64_t position
    int64_t stop
    int64_t first            # of the log, as a position
    int64_t last
    int64_t base
    const int32_t* wanted
    int64_t hashes
    int64_t messages_max
    int64_t bytes_max
    int64_t messages
    int64_t bytes
    int64_t last_offset


cdef bint next_match(Walk* walk, int64_t* at, int32_t* size) noexcept nogil:
    """Take the next matching unit: where its record lies and how long it is; False at the end of the walk."""
    cdef const uint8_t* unit
    cdef int64_t tags_code
    cdef int64_t offset
    while walk.stop - walk.position >= 20 and walk.messages < walk.messages_max:
        unit = walk.units + walk.position
        size[0] = <int32_t>load32(unit + 8)
        if size[0] <= 0:
            return False
        if size[0] != PRE_BLANK:
            tags_code = <int64_t>load64(unit + 12)
            if walk.hashes and tags_code <= EXT_ADDRESS:
                return False
            if tag_matches(tags_code, walk.wanted, walk.hashes):
                offset = <int64_t>load64(unit)
                at[0] = offset - walk.base
                if offset < walk.base or at[0] > walk.last - size[0] or at[0] < walk.first:
                    return False
                if walk.messages and walk.bytes + size[0] > walk.bytes_max:
                    return False
                walk.last_offset = offset
                walk.bytes += size[0]
                walk.messages += 1
                walk.position += 20
                return True
        walk.position += 20
    return False


cdef void begin_walk(
    Walk* walk, start, end, log_start, log_end, log_base, int64_t hashes, messages_max, bytes_max
) except *:
    walk.position = start
    walk.stop = end
    walk.first = log_start
    walk.last = log_end
    walk.base = checked_base(log_base)
    if walk.base < 0:
        raise InvalidValue("gather: log_base must be known")
    if messages_max < 1:
        raise InvalidValue("gather: messages_max must be positive")
    if bytes_max < 1:
        raise InvalidValue("gather: bytes_max must be positive")
    walk.hashes = hashes
    walk.messages_max = min(messages_max, 0x7FFFFFFFFFFFFFFF)
    walk.bytes_max = min(bytes_max, 0x7FFFFFFFFFFFFFFF)
    walk.messages = 0
    walk.bytes = 0
    walk.last_offset = -1


cdef inline void measure_matches(Walk* walk, const uint8_t* log) noexcept nogil:
    """Walk to the end; what it found is counted, and on its way into the processor's cache for the copy."""
    cdef int64_t at
    cdef int64_t line
    cdef int32_t size
    while next_match(walk, &at, &size):
        line = 0
        while line < size and line < PREFETCHED_BYTES:
            prefetch(log + at + line)
            line += 64


cdef void copy_matches(Walk* walk, const uint8_t* log, uint8_t* target, int64_t room) noexcept nogil:
    """Copy the records of a walk behind one another. It was measured, but `room` is what there is."""
    cdef int64_t at
    cdef int32_t size
    while next_match(walk, &at, &size) and size <= room:
        memcpy(target, log + at, <size_t>size)
        target += size
        room -= size


def gather_records(units, start, end, log, log_start, log_end, log_base, hashes, messages_max, bytes_max):
    """Return the records that matching units of a range point to, behind one another."""
    cdef View queue = reading(units, start, end)
    cdef View records = reading(log, log_start, log_end)
    cdef Walk walk
    cdef Walk copied
    cdef int32_t* wanted = NULL
    cdef list hash_list = list(hashes)
    cdef bytes found
    cdef uint8_t* target
    begin_walk(&walk, start, end, log_start, log_end, log_base, len(hash_list), messages_max, bytes_max)
    walk.units = queue.p
    try:
        wanted = hash_array(hash_list)
        walk.wanted = wanted
        copied = walk
        with nogil:
            measure_matches(&walk, records.p)
        found = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>walk.bytes)
        target = <uint8_t*>PyBytes_AS_STRING(found)
        with nogil:
            copy_matches(&copied, records.p, target, walk.bytes)
        return make(Gathered, (found, walk.messages, walk.position, walk.last_offset))
    finally:
        free(wanted)
