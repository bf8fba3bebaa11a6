# Insertion into index files; the walk over consume queue units.

cdef struct IndexHeader:
    int64_t begin_ms
    int64_t end_ms
    int64_t begin
    int64_t end
    int32_t used
    int32_t count


cdef inline void load_index_header(const uint8_t* p, IndexHeader* h) noexcept nogil:
    h.begin_ms = <int64_t>load64(p)
    h.end_ms = <int64_t>load64(p + 8)
    h.begin = <int64_t>load64(p + 16)
    h.end = <int64_t>load64(p + 24)
    h.used = <int32_t>load32(p + 32)
    h.count = <int32_t>load32(p + 36)
    if h.count < 1:
        h.count = 1


cdef inline void store_index_header(uint8_t* p, IndexHeader* h) noexcept nogil:
    store64(p, <uint64_t>h.begin_ms)
    store64(p + 8, <uint64_t>h.end_ms)
    store64(p + 16, <uint64_t>h.begin)
    store64(p + 24, <uint64_t>h.end)
    store32(p + 32, <uint32_t>h.used)
    store32(p + 36, <uint32_t>h.count)


cdef inline uint32_t seconds_between(int64_t begin_ms, int64_t stored_ms) noexcept nogil:
    cdef int64_t seconds
    if begin_ms <= 0 or stored_ms < begin_ms:
        return 0
    seconds = (stored_ms - begin_ms) // 1000
    return 0x7FFFFFFF if seconds > 0x7FFFFFFF else <uint32_t>seconds


cdef void insert_key(uint8_t* file, int64_t slots, IndexHeader* h, const uint8_t* key) noexcept nogil:
    """Insert one key into a file that has room for it."""
    cdef int64_t log_offset = <int64_t>load64(key + 4)
    cdef int64_t stored_ms = <int64_t>load64(key + 12)
    cdef uint8_t* slot = file + 40 + 4 * (<int64_t>(load32(key) & 0x7FFFFFFFu) % slots)
    cdef uint8_t* entry = file + 40 + 4 * slots + 20 * <int64_t>h.count
    cdef int32_t previous = <int32_t>load32(slot)
    if previous <= 0 or previous > h.count:
        previous = 0
        h.used = <int32_t>(<uint32_t>h.used + 1)
    memcpy(entry, key, 12)
    store32(entry + 12, seconds_between(h.begin_ms, stored_ms))
    store32(entry + 16, <uint32_t>previous)
    store32(slot, <uint32_t>h.count)
    if h.count == 1:
        h.begin_ms = stored_ms
        h.begin = log_offset
    h.end_ms = stored_ms
    h.end = log_offset
    h.count += 1


def insert_keys(target, slots, entries_max, keys, start):
    """Insert keys into the image of an index file; return the position behind the last taken."""
    cdef View source = hold(keys, PyBUF_SIMPLE)
    cdef View file = hold(target, PyBUF_WRITABLE)
    cdef uint8_t* p = <uint8_t*>file.p
    cdef int64_t c_slots, most, position
    cdef IndexHeader h
    if slots < 1 or entries_max < 1:
        raise InvalidValue("index: slots and entries must be positive")
    if file.n < 40 + 4 * slots + 20 * entries_max:
        raise InvalidValue(
            f"index: a file of {file.n} bytes has no room for {slots} slots and {entries_max} entries"
        )
    if start % 20 or not 0 <= start <= source.n:
        raise InvalidValue("index: keys must be read from a multiple of 20 within them")
    c_slots = slots
    most = entries_max
    position = start
    with nogil:
        load_index_header(p, &h)
        while source.n - position >= 20:
            if <int64_t>load64(source.p + position + 4) >= h.end:
                if h.count >= most:
                    break
                insert_key(p, c_slots, &h, source.p + position)
                # Entry by entry, so that whoever reads the file meanwhile finds what the header counts.
                store_index_header(p, &h)
            position += 20
    return position


def scan_units(buffer, start, end, log_end, log_limit):
    """Walk good units; return where they end, the log offset behind them, the last ext address."""
    cdef View view = reading(buffer, start, end)
    cdef int64_t position = start
    cdef int64_t stop = end
    cdef int64_t least = log_end
    cdef int64_t limit = log_limit
    cdef int64_t address = 0
    cdef int64_t log_offset, tags_code
    cdef int64_t last = -1
    cdef int64_t farthest = 0x7FFFFFFFFFFFFFFF
    cdef int32_t size
    cdef int32_t last_size = 0
    with nogil:
        while stop - position >= 20:
            log_offset = <int64_t>load64(view.p + position)
            size = <int32_t>load32(view.p + position + 8)
            if log_offset < 0 or size <= 0:
                break
            if size != PRE_BLANK:
                if log_offset < least or log_offset >= limit:
                    break
                last = log_offset
                last_size = size
                least = log_offset + size
                if least < 0:
                    # No log reaches so far: the sum wrapped, and must not let the next unit pass.
                    least = farthest
                tags_code = <int64_t>load64(view.p + position + 12)
                if tags_code <= EXT_ADDRESS:
                    address = tags_code
            position += 20
    return position, (log_end if last < 0 else <object>last + last_size), address
