# Records checked and counted, for an audit: dispatch without index keys, which are only counted.
#
# An audit reads a log from its begin to its end, once, so what it waits for is memory. The processor
# guesses within a page of what it will need next; across pages, it is told.

cdef enum:
    AHEAD_BYTES = 4096   # from the begin of a record; within a longer one the processor guesses well


cdef struct Auditing:
    Runs runs
    LastTopic topic
    int64_t position
    int64_t records
    int64_t keys
    int state
    bint out_of_memory


cdef int64_t count_words(const uint8_t* p, int64_t n) noexcept nogil:
    """The words between blanks."""
    cdef int64_t words = 0
    cdef int64_t i
    for i in range(n):
        if p[i] != 32 and (i + 1 == n or p[i + 1] == 32):
            words += 1
    return words


cdef bint audit_record(Auditing* a, Rec* r, const int64_t* delays, int64_t levels) noexcept nogil:
    cdef Properties properties
    cdef int transaction = r.sys_flag & 0xC
    read_properties(r.properties, r.properties_bytes, &properties)
    see_topic(&a.topic, r)
    if transaction == 0 or transaction == 8:
        if not add_unit(&a.runs, &a.topic, r, tags_code_of(r, &properties, delays, levels)):
            return False
    if transaction != 12:
        if properties.unique_key.there:
            a.keys += 1
        if properties.keys.there:
            a.keys += count_words(properties.keys.p, properties.keys.n)
    return True


cdef void audit(
    Auditing* a, const uint8_t* base, int64_t stop, int64_t log_base, int64_t most,
    const int64_t* delays, int64_t levels,
) noexcept nogil:
    cdef Rec r
    cdef int64_t ahead
    cdef int64_t fetched = a.position
    while True:
        if a.records == most and a.position < stop:
            a.state = WALK_LIMIT
            return
        ahead = min(a.position + AHEAD_BYTES, stop)
        fetched = max(fetched, a.position)
        while fetched < ahead:
            prefetch(base + fetched)
            fetched += 64
        a.state = walk(base, a.position, stop, log_base, True, &r)
        if a.state != WALK_GOOD:
            return
        if not audit_record(a, &r, delays, levels):
            a.out_of_memory = True
            return
        a.records += 1
        a.position += r.size


cdef int64_t record_bytes_of(Run* run) noexcept nogil:
    """The sizes in the units of a run, added up."""
    cdef int64_t total = 0
    cdef int64_t at = 8
    while at < 20 * run.count:
        total += <int32_t>load32(first_unit(run) + at)
        at += 20
    return total


cdef list audit_runs_of(Runs* all):
    cdef list result = []
    cdef Run* run
    cdef int64_t i
    for i in range(all.count):
        run = &all.runs[i]
        result.append(make(AuditRun, (
            copy_of(run.topic, run.topic_bytes), run.queue_id, run.first_offset, units_of(run),
            record_bytes_of(run),
        )))
    return result


def audit_records(buffer, start, end, log_base, records_max, delays_ms):
    """Check the records of a range, and build what a comparison with the queues needs."""
    cdef View view = reading(buffer, start, end)
    cdef int64_t stop = end
    cdef int64_t c_log_base = checked_base(log_base)
    cdef int64_t most
    cdef int64_t levels
    cdef int64_t* delays = NULL
    cdef Auditing a
    cdef int64_t i
    check_records_max(records_max)
    most = min(records_max, 0x7FFFFFFFFFFFFFFF)
    memset(&a, 0, sizeof(Auditing))
    a.topic.n = -1
    a.position = start
    try:
        delays = delays_of(delays_ms, &levels)
        with nogil:
            audit(&a, view.p, stop, c_log_base, most, delays, levels)
        if a.out_of_memory:
            raise MemoryError
        return make(Audit, (a.position, a.records, STOPS[a.state], audit_runs_of(&a.runs), a.keys))
    finally:
        free_runs(&a.runs)
        free(delays)
