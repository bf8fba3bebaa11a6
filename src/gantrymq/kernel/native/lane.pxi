# The send lane: a run of ordinary sends is decoded, checked, written to the log and answered in one go.

cdef struct Part:
    int64_t at               # how far it was walked
    int64_t end
    const uint8_t* born_host
    int born_bytes
    size_t replies_end       # in the lane's replies


cdef int64_t FRAME_MOST = FRAME_BYTES_MAX


cdef int walk_sends(
    Lane* lane, Ledger* to, const uint8_t* p, int64_t* at, int64_t stop, int* look, Split* split
) noexcept nogil:
    """Take the ordinary sends from `at` on; tell why it ended. A frame that is none is bad only if it comes first."""
    cdef int64_t begun = to.requests
    cdef int state
    while True:
        look[0] = look_at_frame(p + at[0], stop - at[0], FRAME_MOST, split)
        if look[0] == FRAME_PARTIAL:
            return LANE_DRAINED
        if look[0] != FRAME_WHOLE:
            return LANE_POLICY if to.requests > begun else LANE_BAD_FRAME
        state = take_frame(lane, to, p + at[0], split)
        if state != LANE_TAKEN:
            return state
        to.requests += 1
        at[0] += 4 + <int64_t>split.total


cdef class SendLane:
    """The fast lane of the broker; `lanes.SendLane` says what it takes."""

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
        self, *, bytes store_host, bytes cluster, bytes region, trace_on, version, body_bytes_max, policy_names,
        refuses_extra_fields=False,
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
        self.limit_bodies(body_bytes_max)
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
        self.lane.refuses_extra_fields = bool(refuses_extra_fields)
        self.lane.version = version
        self.lane.policy.names = <Slice*>calloc(<size_t>(len(self.policy_names) + 1), sizeof(Slice))
        if self.lane.policy.names == NULL:
            raise MemoryError
        for i in range(len(self.policy_names)):
            name = self.policy_names[i]
            self.lane.policy.names[i].p = <const uint8_t*>PyBytes_AS_STRING(name)
            self.lane.policy.names[i].n = len(name)
            self.lane.policy.lengths |= <uint64_t>1 << min(len(name), 63)
            self.lane.policy.count = i + 1

    def limit_bodies(self, body_bytes_max):
        """Take other sizes of bodies from now on; longer ones are left to policy."""
        if body_bytes_max < 1:
            raise InvalidValue("lane: body_bytes_max must be positive")
        self.lane.body_bytes_max = min(body_bytes_max, 0x7FFFFFFF)

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
        place.hash = name_hash(place.name, place.name_bytes)
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
        cdef int look = FRAME_PARTIAL
        cdef int state
        if len(born_host) not in (8, 20):
            raise InvalidValue(f"lane: born host has {len(born_host)} bytes, not 8 or 20")
        if not 0 <= log_base <= 4611686018427387904 or not 0 <= now_ms <= 4611686018427387904:
            raise InvalidValue("lane: log_base and now_ms must be between 0 and 2**62")
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
            state = walk_sends(&self.lane, &to, source.p, &at, stop, &look, &split)
        shrink(&self.lane.scratch)
        shrink(&self.lane.properties)
        shrink(&self.lane.sizes)
        if state == LANE_BAD_FRAME:
            raise frame_error(look, &split, FRAME_BYTES_MAX)
        if state == LANE_NO_MEMORY and to.requests == 0:
            raise MemoryError
        if state == LANE_NO_MEMORY:
            # What was stored is answered; the frame that found no memory is Python's to try.
            state = LANE_POLICY
        replies = taken(&self.lane.replies)
        shrink(&self.lane.replies)
        return make(SendRun, (
            at, to.position, to.requests, to.messages, replies, LANE_STOPS[state],
        ))

    def append_each(self, buffer, parts, log, position, limit, log_base, now_ms):
        """Do the same with the ranges of several connections, one after the other."""
        cdef View source = hold(buffer, PyBUF_SIMPLE)
        cdef View target = writing(log, position, limit)
        cdef list given = list(parts)
        cdef int64_t count = len(given)
        cdef int64_t walked = 0
        cdef Part* each
        cdef Ledger to
        cdef Split split
        cdef int look
        cdef int state = LANE_DRAINED
        if not 0 <= log_base <= 4611686018427387904 or not 0 <= now_ms <= 4611686018427387904:
            raise InvalidValue("lane: log_base and now_ms must be between 0 and 2**62")
        each = <Part*>malloc(<size_t>(count + 1) * sizeof(Part))
        if each == NULL:
            raise MemoryError
        try:
            read_parts(given, source.n, each)
            to.log = <uint8_t*>target.p
            to.position = position
            to.limit = limit
            to.log_base = log_base
            to.now_ms = now_ms
            to.requests = 0
            to.messages = 0
            self.lane.replies.size = 0
            with nogil:
                while walked < count and state == LANE_DRAINED:
                    to.born_host = each[walked].born_host
                    to.born_bytes = each[walked].born_bytes
                    state = walk_sends(
                        &self.lane, &to, source.p, &each[walked].at, each[walked].end, &look, &split
                    )
                    each[walked].replies_end = self.lane.replies.size
                    walked += 1
            if state == LANE_NO_MEMORY and to.requests == 0:
                raise MemoryError
            if state == LANE_NO_MEMORY or state == LANE_BAD_FRAME:
                # Python looks at that part by itself, and finds the same.
                state = LANE_POLICY
            return make(SendTurn, (
                part_runs(each, walked, &self.lane.replies), to.position, to.requests, to.messages, LANE_STOPS[state],
            ))
        finally:
            free(each)
            shrink(&self.lane.scratch)
            shrink(&self.lane.properties)
            shrink(&self.lane.sizes)
            shrink(&self.lane.replies)


cdef void read_parts(list given, int64_t n, Part* each) except *:
    cdef int64_t i
    cdef bytes born_host
    for i in range(len(given)):
        start, end, born_host = given[i]
        if not 0 <= start <= end <= n:
            raise InvalidValue(f"range: start={start} end={end} do not lie within a buffer of {n} bytes")
        if len(born_host) not in (8, 20):
            raise InvalidValue(f"lane: born host has {len(born_host)} bytes, not 8 or 20")
        each[i].at = start
        each[i].end = end
        each[i].born_host = <const uint8_t*>PyBytes_AS_STRING(born_host)
        each[i].born_bytes = <int>len(born_host)


cdef list part_runs(Part* each, int64_t walked, Out* replies):
    cdef list runs = []
    cdef size_t begun = 0
    cdef int64_t i
    for i in range(walked):
        runs.append((
            each[i].at,
            PyBytes_FromStringAndSize(<char*>replies.data + begun, <Py_ssize_t>(each[i].replies_end - begun)),
        ))
        begun = each[i].replies_end
    return runs
