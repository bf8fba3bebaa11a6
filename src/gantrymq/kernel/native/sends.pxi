# One send: checked, written to the log and answered, or left alone.

cdef enum:
    LANE_DRAINED = 0
    LANE_POLICY = 1
    LANE_LOG_FULL = 2
    LANE_BAD_FRAME = 3
    LANE_NO_MEMORY = 4
    LANE_TAKEN = 5
    SHARED_ENTRIES_MAX = 16
    SHARED_BYTES_MAX = 1024
    BATCH_MESSAGES_MOST = 65536


cdef struct Names:
    Slice* names
    int64_t count
    uint64_t lengths         # bit i: some name has i bytes (63 stands for all longer)


cdef inline bint is_named(Names* names, const uint8_t* p, int64_t n) noexcept nogil:
    cdef int64_t i
    if not (names.lengths >> (n if n < 63 else 63)) & 1:
        return False
    for i in range(names.count):
        if names.names[i].n == n and memcmp(names.names[i].p, p, <size_t>n) == 0:
            return True
    return False


cdef struct Lane:
    Topics topics
    Names policy
    Shapes shapes            # of the headers that came before
    Out scratch              # unescaped header text
    Out properties           # properties as they will be stored
    Out sizes                # of a batch: int64 property bytes of each message
    Out replies
    const uint8_t* store_host
    int store_bytes
    const uint8_t* cluster   # `CLUSTER 0x01 name`
    int64_t cluster_bytes
    const uint8_t* region
    size_t region_size
    bint trace_on
    int32_t version
    int64_t body_bytes_max
    bint refuses_extra_fields


# What a call has been given, and how far it has come.
cdef struct Ledger:
    const uint8_t* born_host
    int born_bytes
    uint8_t* log
    int64_t position
    int64_t limit
    int64_t log_base
    int64_t now_ms
    int64_t requests
    int64_t messages


# -- properties as they will be stored ---------------------------------------------------------------------

cdef inline bint has_zero(Out* out) noexcept nogil:
    return memchr(out.data, 0, out.size) != NULL


cdef inline void put_stored(Out* out, size_t begin, const uint8_t* p, int64_t n) noexcept nogil:
    """Append an entry, with a separator if it is not the first."""
    if out.size > begin:
        out.data[out.size] = 2
        out.size += 1
    put(out, p, <size_t>n)


cdef struct Stretch:
    const uint8_t* begin     # entries that stand behind one another; NULL: none
    const uint8_t* end


cdef inline void end_run(Out* out, size_t begin, Stretch* run) noexcept nogil:
    """Copy the entries that were noted."""
    if run.begin != NULL:
        put_stored(out, begin, run.begin, run.end - run.begin)
        run.begin = NULL


cdef inline void add_entry(Out* out, size_t begin, Stretch* run, Slice* name, Slice* content) noexcept nogil:
    """Note an entry; those that stand behind one another are copied together."""
    if run.begin == NULL or name.p != run.end + 1:
        end_run(out, begin, run)
        run.begin = name.p
    run.end = content.p + content.n


cdef int store_single(Lane* lane, Slice* given) noexcept nogil:
    """Entries of a single message without WAIT and CLUSTER, then CLUSTER."""
    cdef const uint8_t* at = given.p
    cdef const uint8_t* end = given.p + given.n
    cdef Slice name
    cdef Slice content
    cdef Stretch run
    run.begin = NULL
    lane.properties.size = 0
    if not ensure(&lane.properties, <size_t>(given.n + lane.cluster_bytes + 2)):
        return LANE_NO_MEMORY
    while next_entry(&at, end, &name, &content):
        if is_named(&lane.policy, name.p, name.n):
            return LANE_POLICY
        if equals(name.p, name.n, b"WAIT", 4):
            if not says_true(content.p, content.n):
                return LANE_POLICY
        elif not equals(name.p, name.n, b"CLUSTER", 7):
            add_entry(&lane.properties, 0, &run, &name, &content)
    end_run(&lane.properties, 0, &run)
    put_stored(&lane.properties, 0, lane.cluster, lane.cluster_bytes)
    if lane.properties.size > 32767 or has_zero(&lane.properties):
        return LANE_POLICY
    return LANE_TAKEN


# Entries that a batch's request gives to each of its messages that lacks them.
cdef struct Shared:
    int count
    Slice[SHARED_ENTRIES_MAX] names
    int64_t[SHARED_ENTRIES_MAX] sizes    # of the entries, which begin with their names


cdef int read_shared(Lane* lane, Slice* given, Shared* shared) noexcept nogil:
    """What a batch's request may carry: nothing that asks for policy, and few entries, for each message gets them."""
    cdef const uint8_t* at = given.p
    cdef const uint8_t* end = given.p + given.n
    cdef Slice name
    cdef Slice content
    cdef int entries = 0
    shared.count = 0
    if given.n > SHARED_BYTES_MAX:
        return LANE_POLICY
    while next_entry(&at, end, &name, &content):
        entries += 1
        if entries > SHARED_ENTRIES_MAX or is_named(&lane.policy, name.p, name.n):
            return LANE_POLICY
        if equals(name.p, name.n, b"WAIT", 4) and not says_true(content.p, content.n):
            return LANE_POLICY
        if not equals(name.p, name.n, b"CLUSTER", 7):
            shared.names[shared.count] = name
            shared.sizes[shared.count] = name.n + 1 + content.n
            shared.count += 1
    return LANE_TAKEN


cdef int store_inner(Lane* lane, Shared* shared, int64_t shared_bytes, const uint8_t* own, int64_t own_bytes) noexcept nogil:
    """Entries of a message in a batch, those of the request that it lacks, and CLUSTER if it lacks it."""
    cdef Out* out = &lane.properties
    cdef size_t begin = out.size
    cdef const uint8_t* at = own
    cdef const uint8_t* end = own + own_bytes
    cdef Slice name
    cdef Slice content
    cdef Stretch run
    cdef uint32_t lacking = (<uint32_t>1 << shared.count) - 1
    cdef bint clustered = False
    cdef int64_t stored
    cdef int i
    run.begin = NULL
    if not ensure(out, <size_t>(own_bytes + shared_bytes + lane.cluster_bytes + 3)) or not ensure(&lane.sizes, 8):
        return LANE_NO_MEMORY
    while next_entry(&at, end, &name, &content):
        add_entry(out, begin, &run, &name, &content)
        clustered = clustered or equals(name.p, name.n, b"CLUSTER", 7)
        for i in range(shared.count):
            if shared.names[i].n == name.n and same_bytes(shared.names[i].p, name.p, name.n):
                lacking &= ~(<uint32_t>1 << i)
    end_run(out, begin, &run)
    for i in range(shared.count):
        if lacking >> i & 1:
            put_stored(out, begin, shared.names[i].p, shared.sizes[i])
    if not clustered:
        put_stored(out, begin, lane.cluster, lane.cluster_bytes)
    stored = <int64_t>(out.size - begin)
    if stored > 32767:
        return LANE_POLICY
    put(&lane.sizes, &stored, 8)
    return LANE_TAKEN


# -- one send -------------------------------------------------------------------------------------------------

cdef inline void start_record(Lane* lane, Ledger* to, Header* h, Send* send, NewRecord* r) noexcept nogil:
    """The parts of a record that do not differ within a batch."""
    r.queue_id = send.queue_id
    r.sys_flag = send.sys_flag
    if to.born_bytes == 20:
        r.sys_flag |= BORN_V6
    if lane.store_bytes == 20:
        r.sys_flag |= STORE_V6
    r.born_timestamp = send.born_timestamp
    r.born_host = to.born_host
    r.born_bytes = to.born_bytes
    r.store_timestamp = to.now_ms
    r.store_host = lane.store_host
    r.store_bytes = lane.store_bytes
    r.reconsume_times = send.reconsume_times
    r.prepared_offset = 0
    r.topic = h.fields[F_TOPIC].p
    r.topic_bytes = h.fields[F_TOPIC].n


cdef inline void put_id(Lane* lane, int64_t log_offset) noexcept nogil:
    cdef uint8_t[8] offset
    put_hex(&lane.replies, lane.store_host, lane.store_bytes)
    store64(offset, <uint64_t>log_offset)
    put_hex(&lane.replies, offset, 8)


cdef inline void fill_reply(Lane* lane, Header* h, Send* send, int64_t queue_offset, SendReply* reply) noexcept nogil:
    reply.opaque = h.opaque
    reply.version = lane.version
    reply.queue_id = send.queue_id
    reply.queue_offset = queue_offset
    reply.region = lane.region
    reply.region_size = lane.region_size
    reply.trace_on = lane.trace_on


cdef int take_single(Lane* lane, Ledger* to, Header* h, Send* send, Topic* topic, Slice* body, uint32_t kind) noexcept nogil:
    cdef NewRecord r
    cdef SendReply reply
    cdef size_t id_bytes = <size_t>(2 * (lane.store_bytes + 8))
    cdef size_t at
    cdef int state = store_single(lane, &h.fields[F_PROPERTIES])
    if state != LANE_TAKEN:
        return state
    start_record(lane, to, h, send, &r)
    r.flag = send.flag
    r.queue_offset = topic.next_offsets[send.queue_id]
    r.log_offset = to.log_base + to.position
    r.body = body.p
    r.body_bytes = body.n
    r.properties = lane.properties.data
    r.properties_bytes = <int64_t>lane.properties.size
    measure(&r)
    if r.size + 8 > to.limit - to.position:
        return LANE_LOG_FULL if r.size + 8 <= to.limit else LANE_POLICY
    if not h.flag & 2:
        if not ensure(&lane.replies, send_reply_room(id_bytes, lane.region_size)):
            return LANE_NO_MEMORY
        fill_reply(lane, h, send, r.queue_offset, &reply)
        at = begin_send_reply(&lane.replies, kind, &reply, id_bytes)
        put_id(lane, r.log_offset)
        end_send_reply(&lane.replies, at, kind, &reply)
    write_record(to.log + to.position, &r)
    to.position += r.size
    topic.next_offsets[send.queue_id] += 1
    topic.messages += 1
    topic.bytes += r.size
    to.messages += 1
    return LANE_TAKEN


cdef int64_t inner_message(const uint8_t* p, const uint8_t* end, Slice* body, Slice* own) noexcept nogil:
    """Split the message at `p` of a batch body: its whole size, or -1 if it is none."""
    cdef int64_t total
    if end - p < 22:
        return -1
    total = <int32_t>load32(p)
    body.n = <int32_t>load32(p + 16)
    body.p = p + 20
    if body.n <= 0 or body.n > end - p - 22:
        return -1
    own.p = body.p + body.n + 2
    own.n = <int16_t>load16(own.p - 2)
    if own.n < 0 or total != 22 + body.n + own.n or total > end - p:
        return -1
    return total


cdef int measure_batch(Lane* lane, Ledger* to, Header* h, Send* send, Slice* body, int64_t* count, int64_t* size) noexcept nogil:
    """Check a whole batch and prepare its properties, before anything is written."""
    cdef const uint8_t* p = body.p
    cdef const uint8_t* end = body.p + body.n
    cdef NewRecord r
    cdef Slice inner
    cdef Slice own
    cdef int64_t step
    cdef Shared shared
    cdef int state = read_shared(lane, &h.fields[F_PROPERTIES], &shared)
    count[0] = 0
    size[0] = 0
    lane.properties.size = 0
    lane.sizes.size = 0
    start_record(lane, to, h, send, &r)
    while state == LANE_TAKEN and p < end:
        step = inner_message(p, end, &inner, &own)
        if step < 0 or count[0] == BATCH_MESSAGES_MOST:
            return LANE_POLICY
        state = store_inner(lane, &shared, h.fields[F_PROPERTIES].n, own.p, own.n)
        if state != LANE_TAKEN:
            return state
        r.body_bytes = inner.n
        r.properties_bytes = (<int64_t*>lane.sizes.data)[count[0]]
        measure(&r)
        size[0] += r.size
        if size[0] + 8 > to.limit:
            return LANE_POLICY
        count[0] += 1
        p += step
    if state == LANE_TAKEN and count[0] and has_zero(&lane.properties):
        return LANE_POLICY
    return state


cdef void write_batch(Lane* lane, Ledger* to, Header* h, Send* send, Slice* body, int64_t queue_offset, bint answer) noexcept nogil:
    """Write the messages that `measure_batch` found, and their ids into the reply."""
    cdef const uint8_t* p = body.p
    cdef const uint8_t* end = body.p + body.n
    cdef const uint8_t* stored = lane.properties.data
    cdef NewRecord r
    cdef Slice inner
    cdef Slice own
    cdef int64_t i = 0
    cdef int64_t step
    start_record(lane, to, h, send, &r)
    while p < end:
        step = inner_message(p, end, &inner, &own)
        r.flag = <int32_t>load32(p + 12)
        r.queue_offset = queue_offset + i
        r.log_offset = to.log_base + to.position
        r.body = inner.p
        r.body_bytes = inner.n
        r.properties = stored
        r.properties_bytes = (<int64_t*>lane.sizes.data)[i]
        measure(&r)
        if answer:
            if i:
                put(&lane.replies, b",", 1)
            put_id(lane, r.log_offset)
        write_record(to.log + to.position, &r)
        to.position += r.size
        stored += r.properties_bytes
        p += step
        i += 1


cdef int take_batch(Lane* lane, Ledger* to, Header* h, Send* send, Topic* topic, Slice* body, uint32_t kind) noexcept nogil:
    cdef SendReply reply
    cdef int64_t count, size
    cdef int64_t first = topic.next_offsets[send.queue_id]
    cdef size_t id_bytes
    cdef size_t at = 0
    cdef bint answer = not h.flag & 2
    cdef int state = measure_batch(lane, to, h, send, body, &count, &size)
    if state != LANE_TAKEN:
        return state
    if size + 8 > to.limit - to.position:
        return LANE_LOG_FULL
    if answer:
        id_bytes = <size_t>(count * (2 * (lane.store_bytes + 8) + 1) - 1)
        if not ensure(&lane.replies, send_reply_room(id_bytes, lane.region_size)):
            return LANE_NO_MEMORY
        fill_reply(lane, h, send, first, &reply)
        at = begin_send_reply(&lane.replies, kind, &reply, id_bytes)
    write_batch(lane, to, h, send, body, first, answer)
    if answer:
        end_send_reply(&lane.replies, at, kind, &reply)
    topic.next_offsets[send.queue_id] += count
    topic.messages += count
    topic.bytes += size
    to.messages += count
    return LANE_TAKEN


cdef int take_frame(Lane* lane, Ledger* to, const uint8_t* p, Split* split) noexcept nogil:
    """Take one complete frame if it is an ordinary send; otherwise nothing of it has happened."""
    cdef Header h
    cdef Send send
    cdef Slice body
    cdef Topic* topic
    if not read_header(p + 8, split.header_bytes, split.serialize_type, &lane.scratch, &lane.shapes, &h):
        return LANE_POLICY
    if h.code == PULL or not read_send(&h, &send):
        return LANE_POLICY
    if h.extra and lane.refuses_extra_fields:
        return LANE_POLICY
    body.p = p + 8 + split.header_bytes
    body.n = <int64_t>split.total - 4 - split.header_bytes
    if send.sys_flag & ~0x701 or body.n == 0 or body.n > lane.body_bytes_max:
        return LANE_POLICY
    topic = find_topic(&lane.topics, h.fields[F_TOPIC].p, h.fields[F_TOPIC].n)
    if topic == NULL or send.queue_id < 0 or send.queue_id >= topic.queues:
        return LANE_POLICY
    if send.batch:
        return take_batch(lane, to, &h, &send, topic, &body, split.serialize_type)
    return take_single(lane, to, &h, &send, topic, &body, split.serialize_type)
