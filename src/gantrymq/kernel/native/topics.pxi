# The topics of a send lane: a hash table from name to next queue offsets, readable without the GIL.

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
    h = name_hash(p, n)
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
