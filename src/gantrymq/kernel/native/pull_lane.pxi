# The pull lane: a pull that reads on where one like it has read before is known again.

cdef enum:
    PULL_HEAD_ROOM = 1024    # the head of a pull's answer has some 300 bytes
    COPIED_BYTES_FEW = 65536 # a shorter copy is over before another thread could use the time


cdef inline bint put_optional(Out* out, Slice* field) noexcept nogil:
    """Append a text field with its length, so that two keys are equal only if all fields are; False without memory."""
    cdef int64_t n = field.n if field.there else -1
    if not ensure(out, <size_t>(8 + (n if n > 0 else 0))):
        return False
    put(out, &n, 8)
    if n > 0:
        put(out, field.p, <size_t>n)
    return True


cdef struct Pull:
    int64_t[8] same          # numbers that pulls which are alike have in common
    int64_t queue_offset
    int64_t commit_offset
    int32_t opaque


cdef bint read_pull(Header* h, uint8_t serialize_type, Pull* pull) noexcept nogil:
    """The numbers of a pull that may be remembered; False for every other request."""
    cdef int32_t queue_id, max_messages, sys_flag
    cdef int32_t max_bytes = 0
    if h.code != PULL or h.flag & 2 or h.extra:
        return False
    if not (h.fields[P_GROUP].there and h.fields[P_TOPIC].there):
        return False
    if not (int_field(h, P_QUEUE, &queue_id) and long_field(h, P_OFFSET, &pull.queue_offset)
            and int_field(h, P_MAX_MESSAGES, &max_messages) and int_field(h, P_SYS_FLAG, &sys_flag)
            and long_field(h, P_COMMIT, &pull.commit_offset) and long_field(h, P_SUSPEND, &pull.same[5])
            and long_field(h, P_SUB_VERSION, &pull.same[6])):
        return False
    if h.fields[P_MAX_BYTES].there and not int_field(h, P_MAX_BYTES, &max_bytes):
        return False
    pull.opaque = h.opaque
    pull.same[0] = h.version
    pull.same[1] = serialize_type
    pull.same[2] = queue_id
    pull.same[3] = max_messages
    pull.same[4] = sys_flag
    pull.same[7] = max_bytes if h.fields[P_MAX_BYTES].there else -4294967296
    return True


cdef class PullWay:
    """What policy has found out about pulls that are alike; `lanes.PullWay` says what it is for."""

    cdef readonly object note
    cdef int32_t* wanted
    cdef Walk walk           # as it begins, except for its position
    cdef int32_t version
    cdef int64_t suggested
    cdef View units          # None: not pointed
    cdef View log
    cdef int64_t queue_offset
    cdef int64_t min_offset
    cdef int64_t max_offset
    cdef double until

    def __init__(self, hashes, messages_max, bytes_max, version, suggest_broker_id, note):
        cdef list hash_list = list(hashes)
        if self.wanted != NULL:
            raise InvalidValue("way: already made")
        begin_walk(&self.walk, 0, 0, 0, 0, 0, len(hash_list), messages_max, bytes_max)
        self.wanted = hash_array(hash_list)
        self.walk.wanted = self.wanted
        try:
            self.version = version
            self.suggested = suggest_broker_id
        except OverflowError:
            raise InvalidValue("reply: a number is out of range") from None
        self.note = note

    def __dealloc__(self):
        free(self.wanted)

    def point(self, units, queue_offset, log, log_end, log_base, min_offset, max_offset, until):
        """Read on elsewhere."""
        cdef View held_units = hold(units, PyBUF_SIMPLE)
        cdef View held_log = reading(log, 0, log_end)
        for number in (queue_offset, log_base, min_offset, max_offset):
            if not 0 <= number <= 4611686018427387904:
                raise InvalidValue(f"way: {number} is not between 0 and 2**62")
        self.until = until
        self.walk.units = held_units.p
        self.walk.stop = held_units.n
        self.walk.last = log_end
        self.walk.base = log_base
        self.queue_offset = queue_offset
        self.min_offset = min_offset
        self.max_offset = max_offset
        self.units = held_units
        self.log = held_log

    cdef bytes answer(self, Pull* pull, double now, int64_t* messages, int64_t* record_bytes):
        """The answer to a pull, its messages and their bytes; None if it is not here."""
        cdef Walk walk = self.walk
        cdef Walk copied
        cdef Out head
        cdef uint8_t[PULL_HEAD_ROOM] room
        cdef bytes frame
        cdef uint8_t* target
        cdef const uint8_t* log
        messages[0] = 0
        record_bytes[0] = 0
        if self.units is None or now > self.until or pull.queue_offset < self.queue_offset:
            return None
        if pull.queue_offset - self.queue_offset >= (self.units.n + 19) // 20:
            return None
        walk.position = 20 * (pull.queue_offset - self.queue_offset)
        copied = walk
        measure_matches(&walk, self.log.p)
        if walk.messages == 0:
            return None
        head.data = room
        head.size = 0
        head.room = PULL_HEAD_ROOM
        put_pull_reply(
            &head, <uint32_t>pull.same[1], pull.opaque, self.version, 0, b"FOUND", 5, self.suggested,
            self.queue_offset + walk.position // 20, self.min_offset, self.max_offset, 0,
        )
        if walk.bytes > 2147483647 - <int64_t>head.size + 4:
            raise InvalidValue("reply: a number is out of range")
        store32(head.data, load32(head.data) + <uint32_t>walk.bytes)
        frame = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>head.size + <Py_ssize_t>walk.bytes)
        target = <uint8_t*>PyBytes_AS_STRING(frame)
        memcpy(target, head.data, head.size)
        log = self.log.p
        if walk.bytes <= COPIED_BYTES_FEW:
            copy_matches(&copied, log, target + head.size, walk.bytes)
        else:
            with nogil:
                copy_matches(&copied, log, target + head.size, walk.bytes)
        messages[0] = walk.messages
        record_bytes[0] = walk.bytes
        return frame


cdef class PullLane:
    """What is remembered of pulls; `lanes.PullLane` says what it is for."""

    cdef dict ways
    cdef int64_t ways_max
    cdef Out scratch         # unescaped header text
    cdef Shapes shapes       # of the headers that came before
    cdef Out key

    def __cinit__(self):
        know_no_shape(&self.shapes)
        memset(&self.scratch, 0, sizeof(Out))
        memset(&self.key, 0, sizeof(Out))

    def __init__(self, ways_max):
        if ways_max < 1:
            raise InvalidValue("lane: ways_max must be positive")
        self.ways_max = min(ways_max, 0x7FFFFFFFFFFFFFFF)
        self.ways = {}

    def __dealloc__(self):
        free(self.scratch.data)
        free(self.key.data)

    def __len__(self):
        return len(self.ways)

    cdef bytes key_of(self, const uint8_t* p, int64_t n, uint8_t serialize_type, Pull* pull):
        """What pulls that are alike have in common, as bytes; None if it is no pull to remember."""
        cdef Header h
        cdef bint ok
        self.key.size = 0
        if not ensure(&self.key, sizeof(pull.same)):
            raise MemoryError
        if not read_header(p, n, serialize_type, &self.scratch, &self.shapes, &h):
            return None
        if not read_pull(&h, serialize_type, pull):
            return None
        put(&self.key, pull.same, sizeof(pull.same))
        ok = (put_optional(&self.key, &h.fields[P_GROUP]) and put_optional(&self.key, &h.fields[P_TOPIC])
              and put_optional(&self.key, &h.fields[P_SUBSCRIPTION])
              and put_optional(&self.key, &h.fields[P_EXPRESSION_TYPE])
              and put_optional(&self.key, &h.fields[P_BROKER]))
        if not ok:
            raise MemoryError
        key = taken(&self.key)
        shrink(&self.scratch)
        shrink(&self.key)
        return key

    def remember(self, buffer, frame, PullWay way not None):
        """Remember a way for all pulls like the one in a frame."""
        cdef View view = reading(buffer, frame.header, frame.body)
        cdef Pull pull
        cdef bytes key
        cdef int64_t at = frame.header
        if not frame.body <= frame.end <= view.n:
            raise InvalidValue(
                f"range: start={frame.body} end={frame.end} do not lie within a buffer of {view.n} bytes"
            )
        if frame.serialize_type != 0 and frame.serialize_type != 1:
            return False
        key = self.key_of(view.p + at, frame.body - at, frame.serialize_type, &pull)
        if key is None:
            return False
        if key not in self.ways and len(self.ways) >= self.ways_max:
            self.ways.clear()
        self.ways[key] = way
        return True

    def take(self, buffer, start, end, now):
        """Return the pull at the front of a range if it is known, with its answer."""
        cdef View view = reading(buffer, start, end)
        cdef int64_t at = start
        cdef int64_t stop = end
        cdef int64_t messages
        cdef int64_t record_bytes
        cdef Split split
        cdef Pull pull
        cdef bytes key
        cdef bytes answer
        cdef PullWay way
        if look_at_frame(view.p + at, stop - at, FRAME_MOST, &split) != FRAME_WHOLE:
            return None
        key = self.key_of(view.p + at + 8, split.header_bytes, split.serialize_type, &pull)
        if key is None:
            return None
        way = self.ways.get(key)
        if way is None:
            return None
        answer = way.answer(&pull, now, &messages, &record_bytes)
        return make(KnownPull, (
            way, at + 4 + <int64_t>split.total, pull.queue_offset, pull.commit_offset,
            b"" if answer is None else answer, messages, record_bytes,
        ))

    def forget(self):
        """Know no pull any more, and hold no buffer."""
        self.ways.clear()
