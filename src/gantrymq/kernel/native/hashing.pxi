# The hash behind the kernel's own tables; seen by nobody outside, and different in every process.
#
# Topic names and queue ids come from outside: with a hash that anybody can compute, a peer could choose
# them so that all fall into one place and every look-up walks over all of them.

cdef uint64_t HASH_SEED = <uint64_t>int.from_bytes(urandom(8), "big")


cdef inline uint64_t stirred(uint64_t h, uint64_t word) noexcept nogil:
    h = (h ^ word) * 0x9E3779B97F4A7C15u
    return h ^ (h >> 29)


cdef inline uint32_t finished(uint64_t h) noexcept nogil:
    return <uint32_t>((h * 0xBF58476D1CE4E5B9u) >> 32)


cdef inline uint32_t name_hash(const uint8_t* p, int64_t n) noexcept nogil:
    cdef uint64_t h = stirred(HASH_SEED, <uint64_t>n)
    cdef uint64_t word
    while n >= 8:
        memcpy(&word, p, 8)
        h = stirred(h, word)
        p += 8
        n -= 8
    word = 0
    memcpy(&word, p, <size_t>n)
    return finished(stirred(h, word))


cdef inline uint32_t numbered_hash(uint32_t h, uint32_t number) noexcept nogil:
    """Hash a name, whose hash is known, and a number that goes with it."""
    return finished(stirred(HASH_SEED, (<uint64_t>h << 32) | number))
