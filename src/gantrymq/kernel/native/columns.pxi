# Records as Arrow columns: little-endian numbers, i32 offsets into values, validity bitmaps.

cdef enum:
    # In the order of COLUMN_NAMES; a test compares the two.
    C_QUEUE_ID = 0
    C_STORE_SIZE = 1
    C_BODY_CRC = 2
    C_FLAG = 3
    C_SYS_FLAG = 4
    C_RECONSUME_TIMES = 5
    C_QUEUE_OFFSET = 6
    C_LOG_OFFSET = 7
    C_BORN_TIMESTAMP = 8
    C_STORE_TIMESTAMP = 9
    C_PREPARED_OFFSET = 10
    C_BODY = 11
    C_TOPIC = 12
    C_PROPERTIES = 13
    C_BORN_HOST = 14
    C_STORE_HOST = 15
    C_MESSAGE_ID = 16
    C_TAGS = 17
    C_KEYS = 18
    C_UNIQUE_KEY = 19
    C_COUNT = 20
    C_FIRST_WIDE = 6
    C_FIRST_VARIABLE = 11
    C_FIRST_NULLABLE = 17


cdef struct Col:
    bint wanted
    bint nulls
    Out values
    Out offsets
    Out validity


cdef inline bint add32(Col* col, uint32_t v) noexcept nogil:
    if not ensure(&col.values, 4):
        return False
    store32_little(col.values.data + col.values.size, v)
    col.values.size += 4
    return True


cdef inline bint add64(Col* col, uint64_t v) noexcept nogil:
    if not ensure(&col.values, 8):
        return False
    store64_little(col.values.data + col.values.size, v)
    col.values.size += 8
    return True


cdef inline bint close_value(Col* col) noexcept nogil:
    """Note where a variable value ended."""
    if not ensure(&col.offsets, 4):
        return False
    store32_little(col.offsets.data + col.offsets.size, <uint32_t>col.values.size)
    col.offsets.size += 4
    return True


cdef bint add_mended(Col* col, const uint8_t* p, const uint8_t* end) noexcept nogil:
    """Append text, each ill-formed part as U+FFFD."""
    cdef uint32_t char
    cdef int n
    if not ensure(&col.values, <size_t>(3 * (end - p))):
        return False
    while p < end:
        n = next_char(p, end, &char)
        if char == ILL_FORMED:
            put(&col.values, b"\xef\xbf\xbd", 3)
        else:
            put(&col.values, p, <size_t>n)
        p += n
    return True


cdef inline bint add_text(Col* col, const uint8_t* p, int64_t n) noexcept nogil:
    if is_utf8(p, n):
        if not ensure(&col.values, <size_t>n):
            return False
        put(&col.values, p, <size_t>n)
    elif not add_mended(col, p, p + n):
        return False
    return close_value(col)


cdef inline bint add_binary(Col* col, const uint8_t* p, int64_t n) noexcept nogil:
    if not ensure(&col.values, <size_t>n):
        return False
    put(&col.values, p, <size_t>n)
    return close_value(col)


cdef bint add_nullable(Col* col, Slice* s, int64_t row) noexcept nogil:
    if row % 8 == 0:
        if not ensure(&col.validity, 1):
            return False
        col.validity.data[col.validity.size] = 0
        col.validity.size += 1
    if not s.there:
        col.nulls = True
        return close_value(col)
    col.validity.data[row // 8] |= <uint8_t>(1 << (row % 8))
    return add_text(col, s.p, s.n)


cdef bint add_host(Col* col, const uint8_t* p, int n) noexcept nogil:
    """`a.b.c.d:port`, or eight hexadecimal groups for IPv6, as Java prints them."""
    cdef Out* out = &col.values
    cdef const char* digits = b"0123456789abcdef"
    cdef uint32_t group
    cdef int i, shift
    if not ensure(out, 64):
        return False
    if n == 8:
        for i in range(4):
            put_number(out, p[i])
            put(out, b"." if i < 3 else b":", 1)
    else:
        for i in range(8):
            group = load16(p + 2 * i)
            shift = 12
            while shift > 0 and not (group >> shift):
                shift -= 4
            while shift >= 0:
                put(out, &digits[(group >> shift) & 15], 1)
                shift -= 4
            put(out, b":", 1)
    put_number(out, <int32_t>load32(p + n - 4))
    return close_value(col)


cdef bint add_message_id(Col* col, Rec* r) noexcept nogil:
    if not ensure(&col.values, 56):
        return False
    put_hex(&col.values, r.store_host, r.store_bytes)
    put_hex(&col.values, r.p + 28, 8)
    return close_value(col)


cdef bint add_numbers(Col* cols, Rec* r) noexcept nogil:
    if cols[C_QUEUE_ID].wanted and not add32(&cols[C_QUEUE_ID], <uint32_t>r.queue_id): return False
    if cols[C_STORE_SIZE].wanted and not add32(&cols[C_STORE_SIZE], <uint32_t>r.size): return False
    if cols[C_BODY_CRC].wanted and not add32(&cols[C_BODY_CRC], r.crc): return False
    if cols[C_FLAG].wanted and not add32(&cols[C_FLAG], <uint32_t>r.flag): return False
    if cols[C_SYS_FLAG].wanted and not add32(&cols[C_SYS_FLAG], <uint32_t>r.sys_flag): return False
    if cols[C_RECONSUME_TIMES].wanted and not add32(&cols[C_RECONSUME_TIMES], <uint32_t>r.reconsume_times):
        return False
    if cols[C_QUEUE_OFFSET].wanted and not add64(&cols[C_QUEUE_OFFSET], <uint64_t>r.queue_offset): return False
    if cols[C_LOG_OFFSET].wanted and not add64(&cols[C_LOG_OFFSET], <uint64_t>r.log_offset): return False
    if cols[C_BORN_TIMESTAMP].wanted and not add64(&cols[C_BORN_TIMESTAMP], <uint64_t>r.born_timestamp):
        return False
    if cols[C_STORE_TIMESTAMP].wanted and not add64(&cols[C_STORE_TIMESTAMP], <uint64_t>r.store_timestamp):
        return False
    return not cols[C_PREPARED_OFFSET].wanted or add64(&cols[C_PREPARED_OFFSET], <uint64_t>r.prepared_offset)


cdef bint add_row(Col* cols, Rec* r, int64_t row, bint parse) noexcept nogil:
    cdef Properties properties
    if not add_numbers(cols, r): return False
    if cols[C_BODY].wanted and not add_binary(&cols[C_BODY], r.body, r.body_bytes): return False
    if cols[C_TOPIC].wanted and not add_text(&cols[C_TOPIC], r.topic, r.topic_bytes): return False
    if cols[C_PROPERTIES].wanted and not add_text(&cols[C_PROPERTIES], r.properties, r.properties_bytes):
        return False
    if cols[C_BORN_HOST].wanted and not add_host(&cols[C_BORN_HOST], r.born_host, r.born_bytes): return False
    if cols[C_STORE_HOST].wanted and not add_host(&cols[C_STORE_HOST], r.store_host, r.store_bytes): return False
    if cols[C_MESSAGE_ID].wanted and not add_message_id(&cols[C_MESSAGE_ID], r): return False
    if not parse:
        return True
    read_properties(r.properties, r.properties_bytes, &properties)
    if cols[C_TAGS].wanted and not add_nullable(&cols[C_TAGS], &properties.tags, row): return False
    if cols[C_KEYS].wanted and not add_nullable(&cols[C_KEYS], &properties.keys, row): return False
    return not cols[C_UNIQUE_KEY].wanted or add_nullable(&cols[C_UNIQUE_KEY], &properties.unique_key, row)


cdef bint is_chosen(Rec* r, Slice* topics, int64_t n) noexcept nogil:
    cdef int64_t i
    if n == 0:
        return True
    for i in range(n):
        if topics[i].n == r.topic_bytes and memcmp(topics[i].p, r.topic, <size_t>r.topic_bytes) == 0:
            return True
    return False


cdef struct ColumnScan:
    int64_t position
    int64_t rows
    int64_t scanned
    int64_t taken_bytes
    int state
    bint out_of_memory


cdef void scan_rows(
    ColumnScan* s, Col* cols, const uint8_t* base, int64_t stop, int64_t log_base, bint verify,
    Slice* topics, int64_t topic_count, int64_t rows_max, int64_t bytes_max, bint parse,
) noexcept nogil:
    cdef Rec r
    while True:
        s.state = walk(base, s.position, stop, log_base, verify, &r)
        if s.state != WALK_GOOD:
            return
        if is_chosen(&r, topics, topic_count):
            if s.rows == rows_max or (s.rows > 0 and s.taken_bytes + r.size > bytes_max):
                s.state = WALK_LIMIT
                return
            if not add_row(cols, &r, s.rows, parse):
                s.out_of_memory = True
                return
            s.rows += 1
            s.taken_bytes += r.size
        s.scanned += 1
        s.position += r.size


cdef object column_of(Col* col, int index):
    return make(Column, (
        taken(&col.values),
        taken(&col.offsets) if index >= C_FIRST_VARIABLE else None,
        taken(&col.validity) if index >= C_FIRST_NULLABLE and col.nulls else None,
    ))


def scan_columns(buffer, start, end, log_base, verify_crc, names, topics, rows_max, bytes_max):
    """Return the chosen columns of the records in a range."""
    cdef View view = reading(buffer, start, end)
    cdef int64_t stop = end
    cdef int64_t c_log_base = checked_base(log_base)
    cdef bint verify = bool(verify_crc)
    cdef list topic_list = list(topics)
    cdef int64_t topic_count = len(topic_list)
    cdef int64_t c_rows_max
    cdef int64_t c_bytes_max
    cdef Col[C_COUNT] cols
    cdef Slice* wanted = NULL
    cdef ColumnScan s
    cdef bytes name_bytes
    cdef bint parse
    cdef int i
    cdef dict result = {}
    names = tuple(names)
    for name in names:
        if name not in COLUMN_NAMES:
            raise InvalidValue(f"columns: {name!r} is not one of {', '.join(COLUMN_NAMES)}")
    if rows_max < 1 or bytes_max < 1 or bytes_max > 536870912:
        raise InvalidValue(
            "columns: rows_max and bytes_max must be positive, bytes_max at most 536870912"
        )
    c_rows_max = min(rows_max, 0x7FFFFFFFFFFFFFFF)
    c_bytes_max = bytes_max
    memset(cols, 0, sizeof(cols))
    memset(&s, 0, sizeof(ColumnScan))
    s.position = start
    for name in names:
        cols[<int>COLUMN_NAMES.index(name)].wanted = True
    parse = cols[C_TAGS].wanted or cols[C_KEYS].wanted or cols[C_UNIQUE_KEY].wanted
    try:
        wanted = <Slice*>malloc(<size_t>(topic_count + 1) * sizeof(Slice))
        if wanted == NULL:
            raise MemoryError
        for i in range(<int>topic_count):
            name_bytes = topic_list[i]
            wanted[i].p = <const uint8_t*>PyBytes_AS_STRING(name_bytes)
            wanted[i].n = PyBytes_GET_SIZE(name_bytes)
        for i in range(C_FIRST_VARIABLE, C_COUNT):
            if cols[i].wanted and not close_value(&cols[i]):
                raise MemoryError
        with nogil:
            scan_rows(
                &s, cols, view.p, stop, c_log_base, verify, wanted, topic_count, c_rows_max, c_bytes_max, parse
            )
        if s.out_of_memory:
            raise MemoryError
        for name in names:
            i = COLUMN_NAMES.index(name)
            result[name] = column_of(&cols[i], i)
        return make(Columns, (s.position, s.rows, s.scanned, STOPS[s.state], result))
    finally:
        free(wanted)
        for i in range(C_COUNT):
            free(cols[i].values.data)
            free(cols[i].offsets.data)
            free(cols[i].validity.data)
