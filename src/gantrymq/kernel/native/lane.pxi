# The send lane: a run of ordinary sends is decoded, checked, written to the log and answered in one go.

cdef enum:
    LANE_DRAINED = 0
    LANE_POLICY = 1
    LANE_LOG_FULL = 2
    LANE_BAD_FRAME = 3
    LANE_NO_MEMORY = 4
    LANE_TAKEN = 5
    REQUEST_ENTRIES_MAX = 16
    BATCH_MESSAGES_MOST = 65536


cdef struct Topic:
    uint8_t* name            # NULL: the place is free
    int32_t name_bytes
    uint32_t hash
    int32_t queues
    int64_t* next_offsets
    int64_t messages
    int64_t bytes


cdef struct Topics:
    Topic* topics
    int64_t count            # places in use or freed
    int64_t room
    int64_t* slots           # index into topics, -1 never used, -2 removed
    int64_t slot_count
    int64_t slots_used       # removed ones included


cdef Topic* find_topic(Topics* all, const uint8_t* p, int64_t n) noexcept nogil:
    cdef uint32_t h
    cdef int64_t slot
    cdef Topic* topic
    if all.slot_count == 0:
        return NULL
    h = name_hash(p, n, 0)
    slot = h & (all.slot_count - 1)
    while all.slots[slot] != -1:
        if all.slots[slot] >= 0:
            topic = &all.topics[all.slots[slot]]
            if topic.hash == h and topic.name_bytes == n and memcmp(topic.name, p, <size_t>n) == 0:
                return topic
        slot = (slot + 1) & (all.slot_count - 1)
    return NULL


cdef void place_topic(Topics* all, int64_t index) noexcept nogil:
    cdef int64_t slot = all.topics[index].hash & (all.slot_count - 1)
    while all.slots[slot] >= 0:
        slot = (slot + 1) & (all.slot_count - 1)
    if all.slots[slot] == -1:
        all.slots_used += 1
    all.slots[slot] = index


cdef bint rebuild_slots(Topics* all) noexcept nogil:
    """Make the table anew, half empty, without removed places."""
    cdef int64_t slot_count = 64
    cdef int64_t live = 0
    cdef int64_t i
    cdef int64_t* slots
    for i in range(all.count):
        if all.topics[i].name != NULL:
            live += 1
    while slot_count < 4 * (live + 1):
        slot_count *= 2
    slots = <int64_t*>malloc(<size_t>slot_count * sizeof(int64_t))
    if slots == NULL:
        return False
    for i in range(slot_count):
        slots[i] = -1
    free(all.slots)
    all.slots = slots
    all.slot_count = slot_count
    all.slots_used = 0
    for i in range(all.count):
        if all.topics[i].name != NULL:
            place_topic(all, i)
    return True


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

cdef inline void put_stored(Out* out, size_t begin, const uint8_t* p, int64_t n) noexcept nogil:
    """Append an entry, with a separator if it is not the first."""
    if out.size > begin:
        out.data[out.size] = 2
        out.size += 1
    put(out, p, <size_t>n)


cdef int store_single(Lane* lane, Slice* given) noexcept nogil:
    """Entries of a single message without WAIT and CLUSTER, then CLUSTER."""
    cdef const uint8_t* at = given.p
    cdef const uint8_t* end = given.p + given.n
    cdef Slice name
    cdef Slice content
    cdef bint waits = True
    lane.properties.size = 0
    if not ensure(&lane.properties, <size_t>(given.n + lane.cluster_bytes + 2)):
        return LANE_NO_MEMORY
    while next_entry(&at, end, &name, &content):
        if is_named(&lane.policy, name.p, name.n):
            return LANE_POLICY
        if equals(name.p, name.n, b"WAIT", 4):
            waits = says_true(content.p, content.n)
        elif not equals(name.p, name.n, b"CLUSTER", 7):
            put_stored(&lane.properties, 0, name.p, name.n + 1 + content.n)
    put_stored(&lane.properties, 0, lane.cluster, lane.cluster_bytes)
    return LANE_TAKEN if waits and lane.properties.size <= 32767 else LANE_POLICY


cdef bint has_entry(const uint8_t* p, int64_t n, const uint8_t* wanted, int64_t wanted_bytes) noexcept nogil:
    cdef const uint8_t* at = p
    cdef const uint8_t* end = p + n
    cdef Slice name
    cdef Slice content
    while next_entry(&at, end, &name, &content):
        if name.n == wanted_bytes and memcmp(name.p, wanted, <size_t>wanted_bytes) == 0:
            return True
    return False


cdef int check_batch_properties(Lane* lane, Slice* given) noexcept nogil:
    """What a batch's request may carry: nothing that asks for policy, and few entries, for each message gets them."""
    cdef const uint8_t* at = given.p
    cdef const uint8_t* end = given.p + given.n
    cdef Slice name
    cdef Slice content
    cdef int entries = 0
    cdef bint waits = True
    while next_entry(&at, end, &name, &content):
        entries += 1
        if entries > REQUEST_ENTRIES_MAX or is_named(&lane.policy, name.p, name.n):
            return LANE_POLICY
        if equals(name.p, name.n, b"WAIT", 4):
            waits = says_true(content.p, content.n)
    return LANE_TAKEN if waits else LANE_POLICY


cdef int store_inner(Lane* lane, Slice* given, const uint8_t* own, int64_t own_bytes) noexcept nogil:
    """Entries of a message in a batch, those of the request that it lacks, and CLUSTER if it lacks it."""
    cdef Out* out = &lane.properties
    cdef size_t begin = out.size
    cdef const uint8_t* at = own
    cdef const uint8_t* end = own + own_bytes
    cdef Slice name
    cdef Slice content
    cdef bint clustered = False
    cdef int64_t stored
    if not ensure(out, <size_t>(own_bytes + given.n + lane.cluster_bytes + 3)) or not ensure(&lane.sizes, 8):
        return LANE_NO_MEMORY
    while next_entry(&at, end, &name, &content):
        put_stored(out, begin, name.p, name.n + 1 + content.n)
        clustered = clustered or equals(name.p, name.n, b"CLUSTER", 7)
    at = given.p
    end = given.p + given.n
    while next_entry(&at, end, &name, &content):
        if not equals(name.p, name.n, b"CLUSTER", 7) and not has_entry(own, own_bytes, name.p, name.n):
            put_stored(out, begin, name.p, name.n + 1 + content.n)
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
        return LANE_LOG_FULL
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
    cdef int state = check_batch_properties(lane, &h.fields[F_PROPERTIES])
    count[0] = 0
    size[0] = 0
    lane.properties.size = 0
    lane.sizes.size = 0
    start_record(lane, to, h, send, &r)
    while state == LANE_TAKEN and p < end:
        step = inner_message(p, end, &inner, &own)
        if step < 0 or count[0] == BATCH_MESSAGES_MOST:
            return LANE_POLICY
        state = store_inner(lane, &h.fields[F_PROPERTIES], own.p, own.n)
        if state != LANE_TAKEN:
            return state
        r.body_bytes = inner.n
        r.properties_bytes = (<int64_t*>lane.sizes.data)[count[0]]
        measure(&r)
        size[0] += r.size
        count[0] += 1
        p += step
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
    if not read_header(p + 8, split.header_bytes, split.serialize_type, &lane.scratch, &h):
        return LANE_POLICY
    if h.code == PULL or not read_send(&h, &send):
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


cdef class SendLane:
    """The fast lane of the broker; `interface.SendLane` says what it takes."""

    cdef Lane lane
    cdef bytes store_host
    cdef bytes cluster
    cdef bytes region
    cdef tuple policy_names
    cdef list free_places
    cdef dict counts_left    # of topics that were closed or replaced since the last take_counts

    def __cinit__(self):
        memset(&self.lane, 0, sizeof(Lane))

    def __init__(
        self, *, bytes store_host, bytes cluster, bytes region, trace_on, version, body_bytes_max, policy_names
    ):
        cdef int64_t i
        cdef bytes name
        if self.store_host is not None:
            raise InvalidValue("lane: already made")
        if len(store_host) not in (8, 20):
            raise InvalidValue(f"lane: store host has {len(store_host)} bytes, not 8 or 20")
        if not cluster or b"\x01" in cluster or b"\x02" in cluster:
            raise InvalidValue("lane: the cluster name must be plain text")
        check_plain(region, "region")
        if not 0 <= version <= 32767:
            raise InvalidValue("lane: version must be between 0 and 32767")
        if body_bytes_max < 1:
            raise InvalidValue("lane: body_bytes_max must be positive")
        self.store_host = store_host
        self.cluster = b"CLUSTER\x01" + cluster
        self.region = region
        self.policy_names = tuple(policy_names)
        self.free_places = []
        self.counts_left = {}
        self.lane.store_host = <const uint8_t*>PyBytes_AS_STRING(self.store_host)
        self.lane.store_bytes = <int>len(store_host)
        self.lane.cluster = <const uint8_t*>PyBytes_AS_STRING(self.cluster)
        self.lane.cluster_bytes = len(self.cluster)
        self.lane.region = <const uint8_t*>PyBytes_AS_STRING(self.region)
        self.lane.region_size = <size_t>len(region)
        self.lane.trace_on = bool(trace_on)
        self.lane.version = version
        self.lane.body_bytes_max = min(body_bytes_max, 0x7FFFFFFF)
        self.lane.policy.names = <Slice*>calloc(<size_t>(len(self.policy_names) + 1), sizeof(Slice))
        if self.lane.policy.names == NULL:
            raise MemoryError
        for i in range(len(self.policy_names)):
            name = self.policy_names[i]
            self.lane.policy.names[i].p = <const uint8_t*>PyBytes_AS_STRING(name)
            self.lane.policy.names[i].n = len(name)
            self.lane.policy.lengths |= <uint64_t>1 << min(len(name), 63)
            self.lane.policy.count = i + 1

    def __dealloc__(self):
        cdef int64_t i
        for i in range(self.lane.topics.count):
            free(self.lane.topics.topics[i].name)
            free(self.lane.topics.topics[i].next_offsets)
        free(self.lane.topics.topics)
        free(self.lane.topics.slots)
        free(self.lane.policy.names)
        free(self.lane.scratch.data)
        free(self.lane.properties.data)
        free(self.lane.sizes.data)
        free(self.lane.replies.data)

    cdef Topic* find(self, bytes topic):
        return find_topic(&self.lane.topics, <const uint8_t*>PyBytes_AS_STRING(topic), len(topic))

    def open_topic(self, bytes topic, next_offsets):
        """Take ordinary sends for `topic`; queue i gets `next_offsets[i]` next. Replaces what was there."""
        cdef Topics* all = &self.lane.topics
        cdef list offsets = list(next_offsets)
        cdef Topic place
        cdef Topic* grown
        cdef int64_t index
        cdef int64_t i
        if not 1 <= len(topic) <= 127:
            raise InvalidValue(f"lane: topic of {len(topic)} bytes, not 1 to 127")
        if not 1 <= len(offsets) <= 65536 or min(offsets) < 0 or max(offsets) > 4611686018427387904:
            raise InvalidValue("lane: next offsets must be 1 to 65536 numbers from 0 to 2**62")
        self.close_topic(topic)
        if not self.free_places and all.count == all.room:
            grown = <Topic*>realloc(all.topics, <size_t>(all.room * 2 + 16) * sizeof(Topic))
            if grown == NULL:
                raise MemoryError
            all.topics = grown
            all.room = all.room * 2 + 16
        memset(&place, 0, sizeof(Topic))
        place.name = <uint8_t*>malloc(<size_t>len(topic))
        place.next_offsets = <int64_t*>malloc(<size_t>len(offsets) * sizeof(int64_t))
        if place.name == NULL or place.next_offsets == NULL:
            free(place.name)
            free(place.next_offsets)
            raise MemoryError
        memcpy(place.name, PyBytes_AS_STRING(topic), <size_t>len(topic))
        place.name_bytes = <int32_t>len(topic)
        place.hash = name_hash(place.name, place.name_bytes, 0)
        place.queues = <int32_t>len(offsets)
        for i in range(len(offsets)):
            place.next_offsets[i] = offsets[i]
        if self.free_places:
            index = self.free_places.pop()
        else:
            index = all.count
            all.count += 1
        all.topics[index] = place
        if all.slot_count and 2 * (all.slots_used + 1) <= all.slot_count:
            place_topic(all, index)
        elif not rebuild_slots(all):
            free(place.name)
            free(place.next_offsets)
            memset(&all.topics[index], 0, sizeof(Topic))
            self.free_places.append(index)
            raise MemoryError

    def close_topic(self, bytes topic):
        """Take no more sends for `topic`; nothing happens if it is not open."""
        cdef Topics* all = &self.lane.topics
        cdef Topic* place = self.find(topic)
        cdef int64_t index
        cdef int64_t slot
        if place == NULL:
            return
        self.keep_counts(place)
        index = place - all.topics
        slot = place.hash & (all.slot_count - 1)
        while all.slots[slot] != index:
            slot = (slot + 1) & (all.slot_count - 1)
        all.slots[slot] = -2
        free(place.name)
        free(place.next_offsets)
        memset(place, 0, sizeof(Topic))
        self.free_places.append(index)

    cdef void keep_counts(self, Topic* place) except *:
        """Move a topic's counts to where take_counts finds them."""
        cdef bytes name
        if place.messages:
            name = copy_of(place.name, place.name_bytes)
            messages, record_bytes = self.counts_left.get(name, (0, 0))
            self.counts_left[name] = (messages + place.messages, record_bytes + place.bytes)
            place.messages = 0
            place.bytes = 0

    def next_offsets(self, bytes topic):
        """Return the next queue offset of each queue, or None if the topic is not open."""
        cdef Topic* place = self.find(topic)
        cdef int32_t i
        if place == NULL:
            return None
        return [place.next_offsets[i] for i in range(place.queues)]

    def advance(self, bytes topic, queue_id, count):
        """Reserve `count` queue offsets for records that Python writes; return the first."""
        cdef Topic* place = self.find(topic)
        cdef int64_t first
        cdef int32_t queue
        if place == NULL:
            raise InvalidValue(f"lane: topic {topic!r} is not open")
        if not 0 <= queue_id < place.queues:
            raise InvalidValue(f"lane: topic {topic!r} has no queue {queue_id}")
        if not 0 <= count <= 2147483648:
            raise InvalidValue("lane: count must be between 0 and 2147483648")
        queue = queue_id
        first = place.next_offsets[queue]
        place.next_offsets[queue] += <int64_t>count
        return first

    def take_counts(self):
        """Return (topic, messages, record bytes) stored since the last call, sorted by topic."""
        cdef int64_t i
        cdef dict counts
        for i in range(self.lane.topics.count):
            if self.lane.topics.topics[i].name != NULL:
                self.keep_counts(&self.lane.topics.topics[i])
        counts = self.counts_left
        self.counts_left = {}
        return sorted([(name, pair[0], pair[1]) for name, pair in counts.items()])

    def append(self, buffer, start, end, log, position, limit, log_base, bytes born_host, now_ms):
        """Store the ordinary sends at the front of `buffer[start:end]` into `log[position:limit]`."""
        cdef View source = reading(buffer, start, end)
        cdef View target = writing(log, position, limit)
        cdef Ledger to
        cdef Split split
        cdef int64_t at = start
        cdef int64_t stop = end
        cdef int64_t frame_max = FRAME_BYTES_MAX
        cdef int look = FRAME_PARTIAL
        cdef int state
        if len(born_host) not in (8, 20):
            raise InvalidValue(f"lane: born host has {len(born_host)} bytes, not 8 or 20")
        if log_base < 0 or now_ms < 0:
            raise InvalidValue("lane: log_base and now_ms must not be negative")
        to.born_host = <const uint8_t*>PyBytes_AS_STRING(born_host)
        to.born_bytes = <int>len(born_host)
        to.log = <uint8_t*>target.p
        to.position = position
        to.limit = limit
        to.log_base = log_base
        to.now_ms = now_ms
        to.requests = 0
        to.messages = 0
        self.lane.replies.size = 0
        with nogil:
            while True:
                look = look_at_frame(source.p + at, stop - at, frame_max, &split)
                if look == FRAME_PARTIAL:
                    state = LANE_DRAINED
                    break
                if look != FRAME_WHOLE:
                    state = LANE_POLICY if to.requests else LANE_BAD_FRAME
                    break
                state = take_frame(&self.lane, &to, source.p + at, &split)
                if state != LANE_TAKEN:
                    break
                to.requests += 1
                at += 4 + <int64_t>split.total
        if state == LANE_BAD_FRAME:
            raise frame_error(look, &split, FRAME_BYTES_MAX)
        if state == LANE_NO_MEMORY and to.requests == 0:
            raise MemoryError
        if state == LANE_NO_MEMORY:
            # What was stored is answered; the frame that found no memory is Python's to try.
            state = LANE_POLICY
        return make(SendRun, (
            at, to.position, to.requests, to.messages, taken(&self.lane.replies), LANE_STOPS[state],
        ))
