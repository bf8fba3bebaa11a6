# CRC-32: folded 64 bytes a step where the processor multiplies without carry, else eight bytes a step.

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    /*
     * Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009),
     * for the reflected polynomial EDB88320. The constants are x^n modulo it: n = 544, 480 to fold by 64 bytes,
     * 160, 96 to fold by 16, 64 to come down to 64 bits; then the polynomial and its inverse (Barrett).
     * Takes a multiple of 16 bytes, at least 64, and the running value as the table below keeps it.
     */
    #define GANTRY_FOLD(x, k) _mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11))
    #define GANTRY_LOAD(p) _mm_loadu_si128((const __m128i *)(p))
    __attribute__((target("pclmul,sse4.1")))
    static uint32_t gantry_fold_crc(uint32_t crc, const uint8_t *p, int64_t n) {
        const __m128i by_64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
        const __m128i by_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
        const __m128i to_64 = _mm_set_epi64x(0, 0x0163cd6124);
        const __m128i barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);
        const __m128i low = _mm_setr_epi32(~0, 0, ~0, 0);
        __m128i a = _mm_xor_si128(GANTRY_LOAD(p), _mm_cvtsi32_si128((int)crc));
        __m128i b = GANTRY_LOAD(p + 16), c = GANTRY_LOAD(p + 32), d = GANTRY_LOAD(p + 48), t;
        for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
            a = _mm_xor_si128(GANTRY_FOLD(a, by_64), GANTRY_LOAD(p));
            b = _mm_xor_si128(GANTRY_FOLD(b, by_64), GANTRY_LOAD(p + 16));
            c = _mm_xor_si128(GANTRY_FOLD(c, by_64), GANTRY_LOAD(p + 32));
            d = _mm_xor_si128(GANTRY_FOLD(d, by_64), GANTRY_LOAD(p + 48));
        }
        a = _mm_xor_si128(GANTRY_FOLD(a, by_16), b);
        a = _mm_xor_si128(GANTRY_FOLD(a, by_16), c);
        a = _mm_xor_si128(GANTRY_FOLD(a, by_16), d);
        for (; n >= 16; p += 16, n -= 16)
            a = _mm_xor_si128(GANTRY_FOLD(a, by_16), GANTRY_LOAD(p));
        a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, by_16, 0x10));
        t = _mm_srli_si128(a, 4);
        a = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(a, low), to_64, 0x00), t);
        t = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(a, low), barrett, 0x10), low);
        a = _mm_xor_si128(a, _mm_clmulepi64_si128(t, barrett, 0x00));
        return (uint32_t)_mm_extract_epi32(a, 1);
    }
    static int gantry_folds_crc(void) {
        return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
    }
    #else
    static uint32_t gantry_fold_crc(uint32_t crc, const uint8_t *p, int64_t n) { return crc; }
    static int gantry_folds_crc(void) { return 0; }
    #endif
    """
    uint32_t gantry_fold_crc(uint32_t crc, const uint8_t* p, int64_t n) noexcept nogil
    bint gantry_folds_crc() noexcept nogil


cdef uint32_t[8][256] CRC


cdef void fill_crc_table() noexcept:
    cdef uint32_t value
    cdef int i, k
    for i in range(256):
        value = <uint32_t>i
        for k in range(8):
            value = (value >> 1) ^ (0xEDB88320u if value & 1 else 0)
        CRC[0][i] = value
    for i in range(256):
        for k in range(1, 8):
            CRC[k][i] = (CRC[k - 1][i] >> 8) ^ CRC[0][CRC[k - 1][i] & 255]


fill_crc_table()

cdef bint FOLDS_CRC = gantry_folds_crc()


cdef uint32_t crc_of(const uint8_t* p, int64_t n) noexcept nogil:
    """CRC-32 with the sign bit cleared, as records keep it."""
    cdef uint32_t crc = 0xFFFFFFFFu
    cdef uint32_t low, high
    cdef int64_t whole
    if FOLDS_CRC and n >= 64:
        whole = n & ~<int64_t>15
        crc = gantry_fold_crc(crc, p, whole)
        p += whole
        n -= whole
    while n >= 8:
        low = crc ^ load32_little(p)
        high = load32_little(p + 4)
        crc = (CRC[7][low & 255] ^ CRC[6][(low >> 8) & 255] ^ CRC[5][(low >> 16) & 255]
               ^ CRC[4][low >> 24] ^ CRC[3][high & 255] ^ CRC[2][(high >> 8) & 255]
               ^ CRC[1][(high >> 16) & 255] ^ CRC[0][high >> 24])
        p += 8
        n -= 8
    while n > 0:
        crc = (crc >> 8) ^ CRC[0][(crc ^ p[0]) & 255]
        p += 1
        n -= 1
    return ~crc & 0x7FFFFFFFu
