# CRC-32, eight bytes a step.

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


cdef uint32_t crc_of(const uint8_t* p, int64_t n) noexcept nogil:
    """CRC-32 with the sign bit cleared, as records keep it."""
    cdef uint32_t crc = 0xFFFFFFFFu
    cdef uint32_t low, high
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
