# What is built from records: consume queue units, index keys; and tags matched against units.

cdef struct Properties:
    Slice tags
    Slice keys
    Slice unique_key
    Slice delay
    bint multi


cdef inline bint next_entry(const uint8_t** at, const uint8_t* end, Slice* name, Slice* content) noexcept nogil:
    """The next property that counts: one with a name and a value."""
    cdef const uint8_t* p = at[0]
    cdef const uint8_t* stop
    cdef const uint8_t* middle
    while p < end:
        stop = <const uint8_t*>memchr(p, 2, <size_t>(end - p))
        if stop == NULL:
            stop = end
        middle = <const uint8_t*>memchr(p, 1, <size_t>(stop - p))
        if middle != NULL and middle > p and middle + 1 < stop:
            name.p = p
            name.n = middle - p
            content.p = middle + 1
            content.n = stop - middle - 1
            content.there = True
            at[0] = stop + 1
            return True
        p = stop + 1
    at[0] = p
    return False


cdef void read_properties(const uint8_t* p, int64_t n, Properties* out) noexcept nogil:
    cdef const uint8_t* at = p
    cdef const uint8_t* end = p + n
    cdef Slice name
    cdef Slice content
    memset(out, 0, sizeof(Properties))
    while next_entry(&at, end, &name, &content):
        if name.n == 4:
            if memcmp(name.p, b"TAGS", 4) == 0:
                out.tags = content
            elif memcmp(name.p, b"KEYS", 4) == 0:
                out.keys = content
        elif name.n == 8:
            if memcmp(name.p, b"UNIQ_KEY", 8) == 0:
                out.unique_key = content
        elif name.n == 5:
            if memcmp(name.p, b"DELAY", 5) == 0:
                out.delay = content
        elif name.n == 20:
            if memcmp(name.p, b"INNER_MULTI_DISPATCH", 20) == 0:
                out.multi = True


# -- runs of units -------------------------------------------------------------------------------------------

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
    Out units


cdef struct Runs:
    Run* runs
    int64_t count
    int64_t room
    int64_t* slots          # index of a queue's newest run, or -1
    int64_t slot_count      # a power of two


cdef inline uint32_t name_hash(const uint8_t* p, int64_t n, uint32_t seed) noexcept nogil:
    """FNV-1a: spreads topic names over a table; seen by nobody outside."""
    cdef uint32_t h = 2166136261u ^ (seed * 16777619u)
    cdef int64_t i
    for i in range(n):
        h = (h ^ p[i]) * 16777619u
    return h


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


cdef Run* run_for(Runs* all, Rec* r) noexcept nogil:
    """The run that this record continues, made if there is none; NULL when there is no memory."""
    cdef uint32_t h = name_hash(r.topic, r.topic_bytes, <uint32_t>r.queue_id)
    cdef int64_t slot
    cdef Run* run
    cdef Run* grown
    if all.count * 2 >= all.slot_count and not rehash(all, all.slot_count * 2 if all.slot_count else 64):
        return NULL
    slot = h & (all.slot_count - 1)
    while all.slots[slot] >= 0:
        run = &all.runs[all.slots[slot]]
        if (run.hash == h and run.queue_id == r.queue_id and run.topic_bytes == r.topic_bytes
                and memcmp(run.topic, r.topic, <size_t>r.topic_bytes) == 0):
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
    run.topic = r.topic
    run.topic_bytes = r.topic_bytes
    run.queue_id = r.queue_id
    run.hash = h
    run.first_offset = r.queue_offset
    all.slots[slot] = all.count
    all.count += 1
    return run


cdef bint add_unit(Runs* all, Rec* r, int64_t tags_code) noexcept nogil:
    cdef Run* run = run_for(all, r)
    cdef uint8_t* at
    if run == NULL or not ensure(&run.units, 20):
        return False
    at = run.units.data + run.units.size
    store64(at, <uint64_t>r.log_offset)
    store32(at + 8, <uint32_t>r.size)
    store64(at + 12, <uint64_t>tags_code)
    run.units.size += 20
    run.last_offset = r.queue_offset
    run.last_log_offset = r.log_offset
    run.last_size = r.size
    run.last_store_timestamp = r.store_timestamp
    return True


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


cdef bint add_keys(Out* keys, Rec* r, Properties* properties) noexcept nogil:
    cdef uint32_t topic_hash
    cdef const uint8_t* p
    cdef const uint8_t* end
    cdef const uint8_t* blank
    if not (properties.unique_key.there or properties.keys.there):
        return True
    # `topic#key` is hashed as one text, so a character may not be split between the two; `#` is ASCII.
    topic_hash = 31 * hash_on(0, r.topic, r.topic_bytes) + c'#'
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
    Out multi            # int64 positions
    int64_t position
    int64_t records
    int state
    bint out_of_memory


cdef bint add_record(Building* b, Rec* r, const int64_t* delays, int64_t levels) noexcept nogil:
    cdef Properties properties
    cdef int transaction = r.sys_flag & 0xC
    read_properties(r.properties, r.properties_bytes, &properties)
    if transaction == 0 or transaction == 8:
        if not add_unit(&b.runs, r, tags_code_of(r, &properties, delays, levels)):
            return False
        if properties.multi:
            if not ensure(&b.multi, 8):
                return False
            put(&b.multi, &b.position, 8)
    return transaction == 12 or add_keys(&b.keys, r, &properties)


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
            copy_of(run.topic, run.topic_bytes), run.queue_id, run.first_offset, taken(&run.units),
            <object>run.last_log_offset + run.last_size, run.last_store_timestamp,
        )))
    return result


def dispatch_records(buffer, start, end, log_base, verify_crc, records_max, delays_ms):
    """Build consume queue units and index keys from a range."""
    cdef View view = reading(buffer, start, end)
    cdef int64_t stop = end
    cdef int64_t c_log_base = log_base
    cdef bint verify = bool(verify_crc)
    cdef int64_t most
    cdef int64_t levels = len(delays_ms)
    cdef int64_t* delays = NULL
    cdef Building b
    cdef int64_t i
    check_records_max(records_max)
    most = min(records_max, 0x7FFFFFFFFFFFFFFF)
    memset(&b, 0, sizeof(Building))
    b.position = start
    try:
        delays = <int64_t*>malloc(<size_t>(levels + 1) * sizeof(int64_t))
        if delays == NULL:
            raise MemoryError
        for i in range(levels):
            delays[i] = delays_ms[i]
        with nogil:
            build(&b, view.p, stop, c_log_base, verify, most, delays, levels)
        if b.out_of_memory:
            raise MemoryError
        return make(Dispatch, (
            b.position, b.records, STOPS[b.state], runs_of(&b.runs), taken(&b.keys),
            [(<int64_t*>b.multi.data)[i] for i in range(<int64_t>(b.multi.size // 8))],
        ))
    finally:
        for i in range(b.runs.count):
            free(b.runs.runs[i].units.data)
        free(b.runs.runs)
        free(b.runs.slots)
        free(b.keys.data)
        free(b.multi.data)
        free(delays)


# -- tag matching ---------------------------------------------------------------------------------------------

cdef enum:
    PRE_BLANK = 2147483647
    EXT_ADDRESS = -2147483649


cdef inline bint tag_matches(int64_t tags_code, const int32_t* hashes, int64_t n) noexcept nogil:
    cdef int32_t low = <int32_t>(<uint64_t>tags_code & 0xFFFFFFFFu)
    cdef int64_t i
    if n == 0 or tags_code <= EXT_ADDRESS:
        return True
    for i in range(n):
        if hashes[i] == low:
            return True
    return False


def match_tags(buffer, start, end, hashes, matches_max):
    """Return the units of a consume queue range whose tag matches, and the position scanned up to."""
    cdef View view = reading(buffer, start, end)
    cdef int64_t position = start
    cdef int64_t stop = end
    cdef int64_t n = len(hashes)
    cdef int32_t* wanted = NULL
    cdef int64_t most
    cdef Out found
    cdef int64_t i
    cdef int32_t size
    cdef bint ok = True
    cdef uint8_t* p
    cdef list units = []
    if matches_max < 1:
        raise InvalidValue("match: matches_max must be positive")
    most = min(matches_max, 0x7FFFFFFFFFFFFFFF)
    memset(&found, 0, sizeof(Out))
    try:
        wanted = <int32_t*>malloc(<size_t>(n + 1) * sizeof(int32_t))
        if wanted == NULL:
            raise MemoryError
        for i in range(n):
            wanted[i] = hashes[i]
        with nogil:
            while stop - position >= 20 and <int64_t>(found.size // 20) < most:
                size = <int32_t>load32(view.p + position + 8)
                if size <= 0:
                    break
                if size != PRE_BLANK and tag_matches(<int64_t>load64(view.p + position + 12), wanted, n):
                    ok = ensure(&found, 20)
                    if not ok:
                        break
                    put(&found, view.p + position, 20)
                position += 20
        if not ok:
            raise MemoryError
        for i in range(<int64_t>(found.size // 20)):
            p = found.data + 20 * i
            units.append(make(QueueUnit, (
                <int64_t>load64(p), <int32_t>load32(p + 8), <int64_t>load64(p + 12),
            )))
        return units, position
    finally:
        free(wanted)
        free(found.data)
