# Many small writes to many files, in one call.

cdef extern from "<errno.h>" nogil:
    int errno
    int EEXIST
    int EINTR
    int ENOENT

cdef extern from "<fcntl.h>" nogil:
    int open(const char* path, int flags, int mode)
    int O_CLOEXEC
    int O_CREAT
    int O_WRONLY

cdef extern from "<sys/stat.h>" nogil:
    struct stat:
        int64_t st_size
    int fstat(int handle, stat* found)
    int mkdir(const char* path, int mode)

cdef extern from "<unistd.h>" nogil:
    int close(int handle)
    int ftruncate(int handle, int64_t size)
    ssize_t pwrite(int handle, const void* data, size_t count, int64_t position)


cdef struct FileWrite:
    char* path          # its slashes are zeros for a moment while directories are made
    const uint8_t* data
    int64_t count
    int64_t position
    int64_t size


cdef int make_directories(char* path) noexcept nogil:
    """Make the directories that a file lies in; return 0 or the error."""
    cdef char* at = path + 1
    cdef int failed
    while at[0]:
        if at[0] == c'/':
            at[0] = 0
            failed = errno if mkdir(path, 0o777) else 0
            at[0] = c'/'
            if failed and failed != EEXIST:
                return failed
        at += 1
    return 0


cdef int open_file(char* path) noexcept nogil:
    cdef int handle = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
    while handle < 0 and errno == EINTR:
        handle = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
    return handle


cdef int fill_file(int handle, FileWrite* write) noexcept nogil:
    cdef stat found
    cdef ssize_t done
    if fstat(handle, &found) or (found.st_size < write.size and ftruncate(handle, write.size)):
        return errno
    while write.count:
        done = pwrite(handle, write.data, <size_t>write.count, write.position)
        if done < 0:
            if errno == EINTR:
                continue
            return errno
        write.data += done
        write.position += done
        write.count -= done
    return 0


cdef int write_file(FileWrite* write) noexcept nogil:
    """Return 0 or the error."""
    cdef int failed
    cdef int handle = open_file(write.path)
    if handle < 0 and errno == ENOENT:
        failed = make_directories(write.path)
        if failed:
            return failed
        handle = open_file(write.path)
    if handle < 0:
        return errno
    failed = fill_file(handle, write)
    if close(handle) and not failed:
        failed = errno
    return failed


def write_files(list writes):
    """Write at positions of files, in order, and make those that are not there."""
    cdef int64_t count = len(writes)
    cdef int64_t i = 0
    cdef int failed = 0
    cdef list paths = [bytearray(fsencode(write[0])) for write in writes]
    cdef FileWrite* plain = <FileWrite*>calloc(<size_t>count + 1, sizeof(FileWrite))
    cdef bytes data
    if plain == NULL:
        raise MemoryError
    try:
        for i in range(count):
            data = writes[i][2]
            check_write(paths[i], writes[i][1], writes[i][3])
            plain[i].path = PyByteArray_AS_STRING(paths[i])
            plain[i].data = <const uint8_t*>PyBytes_AS_STRING(data)
            plain[i].count = PyBytes_GET_SIZE(data)
            plain[i].position = writes[i][1]
            plain[i].size = writes[i][3]
        i = 0
        with nogil:
            while i < count and not failed:
                failed = write_file(&plain[i])
                i += 1
    finally:
        free(plain)
    if failed:
        raise OSError(failed, strerror(failed), writes[i - 1][0])


cdef int check_write(bytearray path, position, size) except -1:
    if b"\0" in path:
        raise InvalidValue("write: a path holds no zeros")
    if not (0 <= position <= 4611686018427387904 and 0 <= size <= 4611686018427387904):
        raise InvalidValue("write: position and size must be between 0 and 2**62")
    return 0
