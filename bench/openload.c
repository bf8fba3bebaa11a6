// openload: sends at a given rate whatever comes back, as a crowd of producers does.
//
//   cc -O2 -o openload openload.c
//   openload HOST PORT TOPIC QUEUES CONNS BODY SLICE_MS INTERVAL_MS PHASE...
//
// A PHASE is RATE:SECONDS, RATE single sends a second over all connections, or wN:SECONDS, a closed
// loop with N in flight on each connection, which finds out how much can be taken in. In every slice
// of SLICE_MS each connection has its turn. What a connection's buffer cannot hold any more, because
// the peer does not read, is not sent and counted as such.
//
// Every answer counts for the phase and the interval in which its request was made. One JSON object
// comes out: phases, intervals, the causes of refusals (the word in brackets that a remark begins
// with), and how late this program itself was at worst. One thread, one epoll loop.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { RING = 1 << 14, IN_CAP = 256 << 10, OUT_CAP = 256 << 10, SUB = 32, BUCKETS = 40 * SUB, CAUSES = 16, PHASES = 16 };
static const uint32_t FIRST = 1000000000u;  // ten digits, always

typedef struct { uint64_t offered, accepted, refused, unsent; uint32_t max_us, lat[BUCKETS], said_no[BUCKETS]; } tally;
typedef struct { int fd, closed; uint32_t next, inflight; size_t in_len, out_len, out_pos; char *in, *out; uint64_t *sent_at; } conn;
typedef struct { double rate, seconds; int window; uint64_t start, stop; tally *t; } phase;

static conn *cs;
static int conns, queues, body_size;
static phase ph[PHASES];
static int phases;
static tally *intervals;
static int interval_n;
static uint64_t start_us, interval_us;
static struct { char word[40]; uint64_t n; } causes[CAUSES];
static char *tmpl;
static size_t tmpl_len, at_op, at_born, at_uniq, at_queue;
static uint64_t uniq, unreadable;

static uint64_t now_us(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u; }
static void put32(char *p, uint32_t v) { v = htonl(v); memcpy(p, &v, 4); }
static uint32_t get32(const char *p) { uint32_t v; memcpy(&v, p, 4); return ntohl(v); }
static void digits(char *p, int n, uint64_t v) { while (n--) { p[n] = (char)('0' + v % 10); v /= 10; } }
static void hex(char *p, int n, uint64_t v) { while (n--) { p[n] = "0123456789ABCDEF"[v & 15]; v >>= 4; } }

static int bucket(uint64_t us) {
    if (us < SUB) return (int)us;
    int e = 63 - __builtin_clzll(us);
    int b = (e - 4) * SUB + (int)((us >> (e - 5)) & (SUB - 1));
    return b < BUCKETS ? b : BUCKETS - 1;
}
static double bucket_ms(int b) {
    if (b < SUB) return b / 1000.0;
    int e = b / SUB + 4;
    return (double)(((uint64_t)(SUB + b % SUB)) << (e - 5)) / 1000.0;
}
static double quantile(const uint32_t *h, double q) {
    uint64_t n = 0, seen = 0;
    for (int i = 0; i < BUCKETS; i++) n += h[i];
    if (!n) return 0;
    for (int i = 0; i < BUCKETS; i++) { seen += h[i]; if ((double)seen >= q * (double)n) return bucket_ms(i); }
    return 0;
}

static void make_template(const char *topic) {
    char h[2048], mark[16];
    int n = snprintf(h, sizeof h,
        "{\"code\":310,\"extFields\":{\"a\":\"openload\",\"b\":\"%s\",\"c\":\"TBW102\",\"d\":\"%d\",\"e\":\"@\","
        "\"f\":\"0\",\"g\":\"#############\",\"h\":\"0\",\"i\":\"UNIQ_KEY\\u00017F00000100002A139A55%%%%%%%%%%%%%%%%%%%%%%%%\\u0002WAIT\\u0001true\\u0002TAGS\\u0001TagA\","
        "\"j\":\"0\",\"k\":\"false\",\"l\":\"0\",\"m\":\"false\"},\"flag\":0,\"language\":\"JAVA\",\"opaque\":1000000000,"
        "\"serializeTypeCurrentRPC\":\"JSON\",\"version\":399}", topic, queues);
    tmpl_len = (size_t)(8 + n + body_size);
    tmpl = malloc(tmpl_len);
    put32(tmpl, (uint32_t)(4 + n + body_size));
    put32(tmpl + 4, (uint32_t)n);
    memcpy(tmpl + 8, h, (size_t)n);
    memset(tmpl + 8 + n, 'x', (size_t)body_size);
    (void)mark;
    at_queue = (size_t)((char *)memmem(tmpl, tmpl_len, "\"e\":\"@\"", 7) - tmpl) + 5;
    at_born = (size_t)((char *)memmem(tmpl, tmpl_len, "#############", 13) - tmpl);
    at_uniq = (size_t)((char *)memmem(tmpl, tmpl_len, "%%%%%%%%%%%%", 12) - tmpl);
    at_op = (size_t)((char *)memmem(tmpl, tmpl_len, "1000000000", 10) - tmpl);
}

static tally *phase_of(uint64_t us) { for (int i = 0; i < phases; i++) if (us < ph[i].stop) return ph[i].t; return ph[phases - 1].t; }
static tally *interval_of(uint64_t us) { uint64_t i = (us - start_us) / interval_us; return &intervals[i < (uint64_t)interval_n ? i : (uint64_t)interval_n - 1]; }

static void flush(conn *c) {
    while (c->out_pos < c->out_len) {
        ssize_t w = write(c->fd, c->out + c->out_pos, c->out_len - c->out_pos);
        if (w <= 0) { if (w < 0 && errno != EAGAIN && errno != EINTR) c->closed = 1; return; }
        c->out_pos += (size_t)w;
    }
    c->out_pos = c->out_len = 0;
}

static void offer(conn *c, int count, uint64_t now, uint64_t wall_ms) {
    tally *p = phase_of(now), *i = interval_of(now);
    p->offered += (uint64_t)count; i->offered += (uint64_t)count;
    if (c->out_pos && c->out_len + tmpl_len * (size_t)count > OUT_CAP) { memmove(c->out, c->out + c->out_pos, c->out_len - c->out_pos); c->out_len -= c->out_pos; c->out_pos = 0; }
    while (count) {
        if (c->closed || c->inflight >= RING - 1 || c->out_len + tmpl_len > OUT_CAP) { p->unsent += (uint64_t)count; i->unsent += (uint64_t)count; break; }
        char *f = c->out + c->out_len;
        memcpy(f, tmpl, tmpl_len);
        digits(f + at_op, 10, c->next);
        digits(f + at_born, 13, wall_ms);
        hex(f + at_uniq, 12, ++uniq);
        f[at_queue] = (char)('0' + uniq % (uint64_t)queues);
        c->sent_at[c->next & (RING - 1)] = now;
        c->next = c->next == 2147483646u ? FIRST : c->next + 1;
        c->out_len += tmpl_len;
        c->inflight++;
        count--;
    }
    flush(c);
}

static void note_cause(const char *h, size_t n) {
    const char *p = memmem(h, n, "\"remark\":\"[", 11);
    char word[40] = "none";
    if (p) { p += 11; size_t k = 0; while (k < sizeof word - 1 && p + k < h + n && p[k] != ']') { word[k] = p[k]; k++; } word[k] = 0; }
    for (int i = 0; i < CAUSES; i++) {
        if (!causes[i].n) { strcpy(causes[i].word, word); causes[i].n = 1; return; }
        if (!strcmp(causes[i].word, word)) { causes[i].n++; return; }
    }
    causes[CAUSES - 1].n++;
}

static void on_frame(conn *c, const char *f, uint64_t now) {
    size_t hl = get32(f + 4) & 0xFFFFFF;
    const char *h = f + 8, *code = memmem(h, hl, "\"code\":", 7), *op = memmem(h, hl, "\"opaque\":", 9);
    if (!code || !op || f[4]) { unreadable++; return; }
    uint32_t opaque = (uint32_t)strtoul(op + 9, NULL, 10);
    int is_ok = code[7] == '0';
    uint64_t sent = c->sent_at[opaque & (RING - 1)], us = now - sent;
    tally *both[2] = {phase_of(sent), interval_of(sent)};
    c->inflight--;
    for (int i = 0; i < 2; i++) {
        tally *t = both[i];
        if (is_ok) { t->accepted++; t->lat[bucket(us)]++; if (us > t->max_us) t->max_us = (uint32_t)us; }
        else { t->refused++; t->said_no[bucket(us)]++; }
    }
    if (!is_ok) note_cause(h, hl);
}

static void take(conn *c) {
    ssize_t r = read(c->fd, c->in + c->in_len, IN_CAP - c->in_len);
    if (r <= 0) { if (r == 0 || (errno != EAGAIN && errno != EINTR)) { c->closed = 1; close(c->fd); c->fd = -1; } return; }
    uint64_t now = now_us();
    c->in_len += (size_t)r;
    size_t at = 0;
    while (c->in_len - at >= 8) {
        size_t len = get32(c->in + at) + 4u;
        if (c->in_len - at < len) break;
        on_frame(c, c->in + at, now);
        at += len;
    }
    if (at) { memmove(c->in, c->in + at, c->in_len - at); c->in_len -= at; }
}

static void print_tally(const tally *t, double seconds) {
    uint64_t unanswered = t->offered - t->unsent - t->accepted - t->refused;
    printf("\"seconds\":%.3f,\"offered\":%llu,\"accepted\":%llu,\"refused\":%llu,\"unsent\":%llu,\"unanswered\":%llu,"
           "\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"p999_ms\":%.3f,\"max_ms\":%.3f,\"refused_p99_ms\":%.3f}",
        seconds, (unsigned long long)t->offered, (unsigned long long)t->accepted, (unsigned long long)t->refused, (unsigned long long)t->unsent,
        (unsigned long long)unanswered, quantile(t->lat, .5), quantile(t->lat, .99), quantile(t->lat, .999), t->max_us / 1000.0, quantile(t->said_no, .99));
}

int main(int argc, char **argv) {
    if (argc < 10) { fprintf(stderr, "see the head of openload.c\n"); return 2; }
    queues = atoi(argv[4]); conns = atoi(argv[5]); body_size = atoi(argv[6]);
    double slice = atof(argv[7]) / 1000;
    interval_us = (uint64_t)(atof(argv[8]) * 1000);
    double total = 0;
    for (int i = 9; i < argc && phases < PHASES; i++, phases++) {
        phase *p = &ph[phases];
        char *colon = strchr(argv[i], ':');
        if (!colon || queues < 1 || queues > 9 || conns < 1 || interval_us < 1000 || slice <= 0) { fprintf(stderr, "bad arguments\n"); return 2; }
        if (argv[i][0] == 'w') p->window = atoi(argv[i] + 1); else p->rate = atof(argv[i]);
        p->seconds = atof(colon + 1); p->t = calloc(1, sizeof(tally)); total += p->seconds;
    }
    struct rlimit files = {(rlim_t)conns + 64, (rlim_t)conns + 64};
    struct rlimit have; getrlimit(RLIMIT_NOFILE, &have);
    if (have.rlim_cur < files.rlim_cur) { files.rlim_max = have.rlim_max; setrlimit(RLIMIT_NOFILE, &files); }
    interval_n = (int)(total * 1e6 / (double)interval_us) + 1;
    intervals = calloc((size_t)interval_n, sizeof(tally));
    make_template(argv[3]);
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2]))};
    inet_pton(AF_INET, argv[1], &sa.sin_addr);
    int ep = epoll_create1(0);
    cs = calloc((size_t)conns, sizeof(conn));
    for (int i = 0; i < conns; i++) {
        conn *c = &cs[i];
        c->fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(c->fd, (struct sockaddr *)&sa, sizeof sa)) { perror("connect"); return 2; }
        int one = 1;
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        fcntl(c->fd, F_SETFL, O_NONBLOCK);
        c->in = malloc(IN_CAP); c->out = malloc(OUT_CAP); c->sent_at = malloc(RING * sizeof(uint64_t)); c->next = FIRST;
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
        epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &ev);
    }
    start_us = now_us();
    uint64_t at = start_us, late = 0;
    for (int i = 0; i < phases; i++) { ph[i].start = at; at += (uint64_t)(ph[i].seconds * 1e6); ph[i].stop = at; }
    uint64_t end = at, grace = end + 5000000, issued = 0;
    int current = 0, cursor = 0;
    for (;;) {
        uint64_t now = now_us(), pending = 0;
        while (current < phases && now >= ph[current].stop) { current++; issued = 0; }
        if (current < phases) {
            phase *p = &ph[current];
            struct timespec t; clock_gettime(CLOCK_REALTIME, &t);
            uint64_t wall = (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
            if (p->window) {
                for (int i = 0; i < conns; i++) if ((int)cs[i].inflight < p->window && !cs[i].closed) offer(&cs[i], p->window - (int)cs[i].inflight, now, wall);
            } else {
                uint64_t due = (uint64_t)(p->rate * (double)(now - p->start) / 1e6);
                int burst = (int)(p->rate * slice / conns + 0.999);
                if (due > issued && p->rate > 0) { uint64_t behind = (uint64_t)((double)(due - issued) / p->rate * 1e6); if (behind > late) late = behind; }
                for (int turns = 0; turns < 64 && issued + (uint64_t)burst <= due; turns++) { offer(&cs[cursor], burst, now, wall); issued += (uint64_t)burst; cursor = (cursor + 1) % conns; }
            }
        }
        for (int i = 0; i < conns; i++) { conn *c = &cs[i]; if (!c->closed) { pending += c->inflight; if (current >= phases && c->out_pos < c->out_len) flush(c); } }
        if (current >= phases && (!pending || now > grace)) break;
        struct epoll_event evs[256];
        int n = epoll_wait(ep, evs, 256, current < phases && !ph[current].window ? 0 : 1);
        for (int i = 0; i < n; i++) take(evs[i].data.ptr);
        if (!n && current < phases && !ph[current].window) { struct timespec nap = {0, 200000}; nanosleep(&nap, NULL); }
    }
    int closed = 0;
    for (int i = 0; i < conns; i++) closed += cs[i].closed;
    printf("{\"late_ms\":%.1f,\"closed\":%d,\"unreadable\":%llu,\"phases\":[", late / 1000.0, closed, (unsigned long long)unreadable);
    for (int i = 0; i < phases; i++) { printf("%s{", i ? "," : ""); print_tally(ph[i].t, ph[i].seconds); }
    printf("],\"intervals\":[");
    for (int i = 0; i < interval_n; i++) { printf("%s{\"at_s\":%.3f,", i ? "," : "", (double)i * (double)interval_us / 1e6); print_tally(&intervals[i], (double)interval_us / 1e6); }
    printf("],\"causes\":{");
    for (int i = 0; i < CAUSES && causes[i].n; i++) printf("%s\"%s\":%llu", i ? "," : "", causes[i].word, (unsigned long long)causes[i].n);
    printf("}}\n");
    return 0;
}
