# Consume queue units, gathered queue by queue while the log is walked in order.

cdef struct LastTopic:
    # The topic of the record before, which most often is the next one's too.
    const uint8_t* p
    int32_t n
    uint32_t name_hash
    uint32_t key_hash       # of `topic#`, to be continued over a key


cdef inline void see_topic(LastTopic* topic, Rec* r) noexcept nogil:
    if topic.n == r.topic_bytes and memcmp(topic.p, r.topic, <size_t>r.topic_bytes) == 0:
        return
    topic.p = r.topic
    topic.n = r.topic_bytes
    topic.name_hash = name_hash(r.topic, r.topic_bytes)
    # `topic#key` is hashed as one text, so a character may not be split between the two; `#` is ASCII.
    topic.key_hash = 31 * hash_on(0, r.topic, r.topic_bytes) + c'#'


cdef struct Run:
    const uint8_t* topic
    int32_t topic_bytes
    int32_t queue_id
    uint32_t hash
    int64_t first_offset
    int64_t last_offset
    int64_t last_log_offset
    int32_t last_size
    int64_t last_store_timestamp
    uint8_t[20] first       # its only unit, as long as there is one: many queues have one each
    Out units               # all of them, when there are more
    int64_t count


cdef struct Runs:
    Run* runs
    int64_t count
    int64_t room
    int64_t* slots          # index of a queue's newest run, or -1
    int64_t slot_count      # a power of two


cdef bint rehash(Runs* all, int64_t slot_count) noexcept nogil:
    cdef int64_t* slots = <int64_t*>malloc(<size_t>slot_count * sizeof(int64_t))
    cdef int64_t i
    cdef int64_t slot
    cdef Run* run
    cdef Run* other
    if slots == NULL:
        return False
    for i in range(slot_count):
        slots[i] = -1
    for i in range(all.count):
        run = &all.runs[i]
        slot = run.hash & (slot_count - 1)
        while slots[slot] >= 0:
            other = &all.runs[slots[slot]]
            if (other.hash == run.hash and other.queue_id == run.queue_id
                    and other.topic_bytes == run.topic_bytes
                    and memcmp(other.topic, run.topic, <size_t>run.topic_bytes) == 0):
                break
            slot = (slot + 1) & (slot_count - 1)
        slots[slot] = i
    free(all.slots)
    all.slots = slots
    all.slot_count = slot_count
    return True


cdef Run* run_for(Runs* all, LastTopic* topic, Rec* r) noexcept nogil:
    """The run that this record continues, made if there is none; NULL when there is no memory."""
    cdef uint32_t h = numbered_hash(topic.name_hash, <uint32_t>r.queue_id)
    cdef int64_t slot
    cdef Run* run
    cdef Run* grown
    if all.count * 2 >= all.slot_count and not rehash(all, all.slot_count * 2 if all.slot_count else 64):
        return NULL
    slot = h & (all.slot_count - 1)
    while all.slots[slot] >= 0:
        run = &all.runs[all.slots[slot]]
        if (run.hash == h and run.queue_id == r.queue_id and run.topic_bytes == topic.n
                and (run.topic == topic.p or memcmp(run.topic, topic.p, <size_t>topic.n) == 0)):
            if r.queue_offset > run.last_offset and r.queue_offset - 1 == run.last_offset:
                return run
            break
        slot = (slot + 1) & (all.slot_count - 1)
    if all.count == all.room:
        grown = <Run*>realloc(all.runs, <size_t>(all.room * 2 + 16) * sizeof(Run))
        if grown == NULL:
            return NULL
        all.runs = grown
        all.room = all.room * 2 + 16
    run = &all.runs[all.count]
    memset(run, 0, sizeof(Run))
    run.topic = topic.p
    run.topic_bytes = topic.n
    run.queue_id = r.queue_id
    run.hash = h
    run.first_offset = r.queue_offset
    all.slots[slot] = all.count
    all.count += 1
    return run


cdef bint add_unit(Runs* all, LastTopic* topic, Rec* r, int64_t tags_code) noexcept nogil:
    cdef Run* run = run_for(all, topic, r)
    cdef uint8_t* at
    if run == NULL:
        return False
    at = run.first
    if run.count:
        if not ensure(&run.units, 40):
            return False
        if run.count == 1:
            put(&run.units, run.first, 20)
        at = run.units.data + run.units.size
        run.units.size += 20
    store64(at, <uint64_t>r.log_offset)
    store32(at + 8, <uint32_t>r.size)
    store64(at + 12, <uint64_t>tags_code)
    run.count += 1
    run.last_offset = r.queue_offset
    run.last_log_offset = r.log_offset
    run.last_size = r.size
    run.last_store_timestamp = r.store_timestamp
    return True


cdef inline const uint8_t* first_unit(Run* run) noexcept nogil:
    """Where the units of a run stand, one behind the other."""
    if run.count == 1:
        return &run.first[0]
    return run.units.data


cdef inline bytes units_of(Run* run):
    return PyBytes_FromStringAndSize(<const char*>first_unit(run), <Py_ssize_t>(20 * run.count))


cdef inline object log_end_of(Run* run):
    """Where the last record of a run ends; of a damaged log that may be beyond 64 bits."""
    if -4611686018427387904 <= run.last_log_offset <= 4611686018427387904:
        return run.last_log_offset + <int64_t>run.last_size
    return <object>run.last_log_offset + run.last_size


cdef void free_runs(Runs* all) noexcept nogil:
    cdef int64_t i
    for i in range(all.count):
        free(all.runs[i].units.data)
    free(all.runs)
    free(all.slots)
