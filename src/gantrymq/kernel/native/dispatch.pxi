# What is built from records: consume queue units and index keys.

cdef int64_t tags_code_of(Rec* r, Properties* properties, const int64_t* delays, int64_t levels) noexcept nogil:
    cdef int32_t level
    if (properties.delay.there and equals(r.topic, r.topic_bytes, b"SCHEDULE_TOPIC_XXXX", 19)
            and parse_int(properties.delay.p, properties.delay.n, &level) and level > 0):
        if levels == 0:
            return r.store_timestamp + 1000
        return r.store_timestamp + delays[(level if level < levels else levels) - 1]
    if properties.tags.there:
        return <int32_t>hash_on(0, properties.tags.p, properties.tags.n)
    return 0


# -- index keys ----------------------------------------------------------------------------------------------

cdef bint add_key(Out* keys, uint32_t topic_hash, const uint8_t* p, int64_t n, Rec* r) noexcept nogil:
    cdef int32_t h = <int32_t>hash_on(topic_hash, p, n)
    if not ensure(keys, 20):
        return False
    if h < 0:
        h = 0 if h == -2147483648 else -h
    store32(keys.data + keys.size, <uint32_t>h)
    store64(keys.data + keys.size + 4, <uint64_t>r.log_offset)
    store64(keys.data + keys.size + 12, <uint64_t>r.store_timestamp)
    keys.size += 20
    return True


cdef bint add_keys(Out* keys, uint32_t topic_hash, Rec* r, Properties* properties) noexcept nogil:
    cdef const uint8_t* p
    cdef const uint8_t* end
    cdef const uint8_t* blank
    if not (properties.unique_key.there or properties.keys.there):
        return True
    if properties.unique_key.there:
        if not add_key(keys, topic_hash, properties.unique_key.p, properties.unique_key.n, r):
            return False
    if properties.keys.there:
        p = properties.keys.p
        end = p + properties.keys.n
        while p < end:
            blank = <const uint8_t*>memchr(p, 32, <size_t>(end - p))
            if blank == NULL:
                blank = end
            if blank > p and not add_key(keys, topic_hash, p, blank - p, r):
                return False
            p = blank + 1
    return True


# -- dispatch ------------------------------------------------------------------------------------------------

cdef struct Building:
    Runs runs
    Out keys
    LastTopic topic
    Out multi            # int64 positions
    int64_t position
    int64_t records
    int state
    bint out_of_memory


cdef bint add_record(Building* b, Rec* r, const int64_t* delays, int64_t levels) noexcept nogil:
    cdef Properties properties
    cdef int transaction = r.sys_flag & 0xC
    read_properties(r.properties, r.properties_bytes, &properties)
    see_topic(&b.topic, r)
    if transaction == 0 or transaction == 8:
        if not add_unit(&b.runs, &b.topic, r, tags_code_of(r, &properties, delays, levels)):
            return False
        if properties.multi:
            if not ensure(&b.multi, 8):
                return False
            put(&b.multi, &b.position, 8)
    return transaction == 12 or add_keys(&b.keys, b.topic.key_hash, r, &properties)


cdef void build(
    Building* b, const uint8_t* base, int64_t stop, int64_t log_base, bint verify, int64_t most,
    const int64_t* delays, int64_t levels,
) noexcept nogil:
    cdef Rec r
    while True:
        if b.records == most and b.position < stop:
            b.state = WALK_LIMIT
            return
        b.state = walk(base, b.position, stop, log_base, verify, &r)
        if b.state != WALK_GOOD:
            return
        if not add_record(b, &r, delays, levels):
            b.out_of_memory = True
            return
        b.records += 1
        b.position += r.size


cdef list runs_of(Runs* all):
    cdef list result = []
    cdef Run* run
    cdef int64_t i
    for i in range(all.count):
        run = &all.runs[i]
        result.append(make(QueueRun, (
            copy_of(run.topic, run.topic_bytes), run.queue_id, run.first_offset, units_of(run),
            log_end_of(run), run.last_store_timestamp,
        )))
    return result


cdef int64_t* delays_of(object delays_ms, int64_t* levels) except NULL:
    """The delays of levels as an array, checked; whoever asks for it frees it."""
    cdef list given = list(delays_ms)
    cdef int64_t* delays
    cdef int64_t i
    levels[0] = len(given)
    for i in range(levels[0]):
        if not 0 <= given[i] <= 4611686018427387904:
            raise InvalidValue("dispatch: delays must be between 0 and 2**62")
    delays = <int64_t*>malloc(<size_t>(levels[0] + 1) * sizeof(int64_t))
    if delays == NULL:
        raise MemoryError
    for i in range(levels[0]):
        delays[i] = given[i]
    return delays


def dispatch_records(buffer, start, end, log_base, verify_crc, records_max, delays_ms):
    """Build consume queue units and index keys from a range."""
    cdef View view = reading(buffer, start, end)
    cdef int64_t stop = end
    cdef int64_t c_log_base = checked_base(log_base)
    cdef bint verify = bool(verify_crc)
    cdef int64_t most
    cdef int64_t levels
    cdef int64_t* delays = NULL
    cdef Building b
    cdef int64_t i
    check_records_max(records_max)
    most = min(records_max, 0x7FFFFFFFFFFFFFFF)
    memset(&b, 0, sizeof(Building))
    b.topic.n = -1
    b.position = start
    try:
        delays = delays_of(delays_ms, &levels)
        with nogil:
            build(&b, view.p, stop, c_log_base, verify, most, delays, levels)
        if b.out_of_memory:
            raise MemoryError
        return make(Dispatch, (
            b.position, b.records, STOPS[b.state], runs_of(&b.runs), taken(&b.keys),
            [(<int64_t*>b.multi.data)[i] for i in range(<int64_t>(b.multi.size // 8))],
        ))
    finally:
        free_runs(&b.runs)
        free(b.keys.data)
        free(b.multi.data)
        free(delays)
