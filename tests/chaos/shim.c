/* What a server asks of its system, with faults: loaded in front of the C library (LD_PRELOAD).
 *
 * GANTRYMQ_FAULT_PAGE is a file of 64-bit numbers that is mapped and looked at with every call, so
 * that faults come and go while the server runs and outlive its restarts (chaos/shim.py writes it).
 * GANTRYMQ_FAULT_BELOW is the folder whose files are on the faulty disk.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct page {
    int64_t clock_ahead_ns;
    int64_t sync_delay_us;
    int64_t sync_error;
    int64_t write_delay_us;
    int64_t write_error;
    int64_t name_error; /* making, opening for writing, renaming, removing */
    int64_t hits;       /* how many calls were delayed or refused; counted here */
};

static volatile struct page nothing;
static volatile struct page *page = &nothing;
static char below[PATH_MAX];
static size_t below_length;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("GANTRYMQ_FAULT_PAGE"), *folder = getenv("GANTRYMQ_FAULT_BELOW");
    if (!path || !folder)
        return;
    below_length = strlen(folder);
    if (below_length >= sizeof below)
        return;
    memcpy(below, folder, below_length + 1);
    int handle = open(path, O_RDWR | O_CLOEXEC);
    if (handle < 0)
        return;
    void *map = mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
    close(handle);
    if (map != MAP_FAILED)
        page = map;
}

#define REAL(name)                                       \
    static __typeof__(name) *real;                       \
    if (!real)                                           \
        real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static int is_below(const char *path) { return !strncmp(path, below, below_length); }

static int is_handle_below(int handle) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return is_below(path);
}

/* Wait, then say whether to fail. */
static int trouble(int64_t delay_us, int64_t number) {
    if (!delay_us && !number)
        return 0;
    __atomic_fetch_add(&page->hits, 1, __ATOMIC_RELAXED);
    if (delay_us) {
        struct timespec pause = {delay_us / 1000000, delay_us % 1000000 * 1000};
        nanosleep(&pause, NULL);
    }
    if (number)
        errno = (int)number;
    return number != 0;
}

static int sync_trouble(int handle) {
    if (!page->sync_delay_us && !page->sync_error)
        return 0;
    return is_handle_below(handle) && trouble(page->sync_delay_us, page->sync_error);
}

static int write_trouble(int handle) {
    if (!page->write_delay_us && !page->write_error)
        return 0;
    int kept = errno;
    int found = is_handle_below(handle) && trouble(page->write_delay_us, page->write_error);
    if (!found)
        errno = kept;
    return found;
}

static int name_trouble(const char *path) {
    return page->name_error && is_below(path) && trouble(0, page->name_error);
}

/* -- forcing ---------------------------------------------------------------------------------- */

int fsync(int handle) {
    REAL(fsync);
    return sync_trouble(handle) ? -1 : real(handle);
}

int fdatasync(int handle) {
    REAL(fdatasync);
    return sync_trouble(handle) ? -1 : real(handle);
}

int msync(void *start, size_t length, int flags) {
    REAL(msync);
    return trouble(page->sync_delay_us, page->sync_error) ? -1 : real(start, length, flags);
}

/* -- writing ---------------------------------------------------------------------------------- */

ssize_t write(int handle, const void *bytes, size_t count) {
    REAL(write);
    return write_trouble(handle) ? -1 : real(handle, bytes, count);
}

ssize_t pwrite64(int handle, const void *bytes, size_t count, off64_t position) {
    REAL(pwrite64);
    return write_trouble(handle) ? -1 : real(handle, bytes, count, position);
}

ssize_t pwrite(int handle, const void *bytes, size_t count, off_t position) {
    return pwrite64(handle, bytes, count, position);
}

ssize_t pwritev64(int handle, const struct iovec *parts, int count, off64_t position) {
    REAL(pwritev64);
    return write_trouble(handle) ? -1 : real(handle, parts, count, position);
}

int ftruncate64(int handle, off64_t size) {
    REAL(ftruncate64);
    return write_trouble(handle) ? -1 : real(handle, size);
}

int ftruncate(int handle, off_t size) { return ftruncate64(handle, size); }

int posix_fallocate64(int handle, off64_t start, off64_t size) {
    REAL(posix_fallocate64);
    return write_trouble(handle) ? errno : real(handle, start, size);
}

int posix_fallocate(int handle, off_t start, off_t size) {
    return posix_fallocate64(handle, start, size);
}

/* -- names ------------------------------------------------------------------------------------ */

int open64(const char *path, int flags, ...) {
    REAL(open64);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (flags & (O_WRONLY | O_RDWR | O_CREAT) && name_trouble(path))
        return -1;
    return real(path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return open64(path, flags, mode);
}

int rename(const char *from, const char *to) {
    REAL(rename);
    return name_trouble(to) ? -1 : real(from, to);
}

int unlink(const char *path) {
    REAL(unlink);
    return name_trouble(path) ? -1 : real(path);
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    return name_trouble(path) ? -1 : real(path, mode);
}

/* -- the time --------------------------------------------------------------------------------- */

static void shift(struct timespec *now) {
    int64_t all = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec + page->clock_ahead_ns;
    now->tv_sec = all / 1000000000;
    now->tv_nsec = all % 1000000000;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(clock_gettime);
    int failed = real(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        shift(now);
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME, &exact))
        return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return -1;
    if (where)
        *where = now.tv_sec;
    return now.tv_sec;
}
