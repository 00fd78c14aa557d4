/* A step of a workflow: reads files and checks every byte and the length of each, writes files, computes.
 *
 *   stream-step [-b BUFFER] [-f US_PER_FILE] [-l US] [-m US_PER_MIB] [-p PART/PARTS] [-s] [-z] [IN GROUP…] [OUT GROUP…]
 *
 * A group is PATH:FIRST:COUNT:STRIDE:SIZE; a # in PATH stands for the number. Files of several input groups
 * take turns. An output is written when its share of the input has been read, so a step can be a pipeline.
 * Compute time is CPU time, spent per input when there are inputs, else per output. With -s what was written is
 * on the device before the step ends, and not in the page cache. With -p only that part of each input is read, after
 * a seek. With -z the last byte of an output is written first, after a seek, so that the file is sparse until the rest is
 * there. With -l each open and each close of a file takes that long, as on storage that is far away. The path - is standard input or output. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PRIME 1048583u
#define MOST (1u << 20)
#define GROUPS 40

struct group {
    const char *path;
    long first, count, stride, size, next;
};

static unsigned char table[PRIME + MOST], buffer[MOST];
static long block = MOST, us_far, us_per_file, us_per_mib, sync_all, part, parts = 1, sparse;

static void fail(const char *what, const char *path)
{
    perror(path);
    fprintf(stderr, "stream-step: %s: %s\n", path, what);
    exit(1);
}

/* What belongs at an offset of a file depends on both; the table repeats after a prime number of bytes. */
static const unsigned char *bytes_at(uint64_t seed, uint64_t offset) { return table + (seed + offset) % PRIME; }

static void fill_table(void)
{
    uint64_t x = 88172645463325252u;
    for (uint32_t i = 0; i < sizeof table; i++) {
        if (i >= PRIME) {
            table[i] = table[i - PRIME];
            continue;
        }
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        table[i] = (unsigned char)(x >> 32);
    }
}

static uint64_t name_of(const struct group *g, long index, char *to, size_t size)
{
    const char *mark = strchr(g->path, '#');
    uint64_t seed = 1469598103934665603u;
    if (mark) snprintf(to, size, "%.*s%ld%s", (int)(mark - g->path), g->path, g->first + index * g->stride, mark + 1);
    else snprintf(to, size, "%s", g->path);
    if (strcmp(to, "-") == 0) return 1;
    const char *from = strstr(to, "//"); /* the part that is the same wherever the workflow runs */
    for (const char *p = from ? from + 2 : to; *p; p++) seed = (seed ^ (unsigned char)*p) * 1099511628211u;
    return seed >> 8;
}

static void compute(long us)
{
    struct timespec a, b;
    if (us <= 0) return;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    while ((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec < us * 1000);
}

static void far_away(void)
{
    if (us_far) usleep((useconds_t)us_far);
}

/* Output: all groups as one sequence of bytes, written up to a limit. */
static struct group outs[GROUPS];
static int out_count, out_group, out_fd = -1;
static long out_at, out_total, out_done;
static uint64_t out_seed;
static char out_path[4096];

static int out_open(void)
{
    while (out_group < out_count && outs[out_group].next == outs[out_group].count) out_group++;
    if (out_group == out_count) return 0;
    struct group *g = &outs[out_group];
    out_seed = name_of(g, g->next, out_path, sizeof out_path);
    far_away();
    out_fd = strcmp(out_path, "-") ? open(out_path, O_WRONLY | O_CREAT | O_TRUNC, 0644) : 1;
    if (out_fd < 0) fail("cannot be made", out_path);
    if (out_fd == 1) fcntl(1, F_SETPIPE_SZ, 1 << 20);
    out_at = 0;
    if (!sparse || g->size == 0) return 1;
    if (lseek(out_fd, g->size - 1, SEEK_SET) < 0 || write(out_fd, bytes_at(out_seed, (uint64_t)g->size - 1), 1) != 1 ||
        lseek(out_fd, 0, SEEK_SET) != 0)
        fail("cannot be written after a seek", out_path);
    return 1;
}

static void out_close(int with_compute)
{
    far_away();
    if (out_fd != 1 && close(out_fd) < 0) fail("cannot be closed", out_path);
    outs[out_group].next++;
    out_fd = -1;
    if (with_compute) compute(us_per_file);
}

static void write_up_to(long limit, int with_compute)
{
    while (out_done < limit || (limit == out_total && out_group < out_count)) {
        if (out_fd < 0 && !out_open()) return;
        const struct group *g = &outs[out_group];
        long n = g->size - out_at < block ? g->size - out_at : block;
        for (long at = 0; at < n;) {
            long put = write(out_fd, bytes_at(out_seed, (uint64_t)out_at) + at, (size_t)(n - at));
            if (put <= 0) fail("cannot be written", out_path);
            at += put;
        }
        out_at += n;
        out_done += n;
        if (with_compute) compute(us_per_mib * n / (1 << 20));
        if (out_at == g->size) out_close(with_compute);
    }
}

/* As if the next step ran on another machine: all that was written is on the device, and in no cache. */
static void settle(void)
{
    char path[4096];
    for (int k = 0; k < out_count; k++) {
        int any = 0;
        for (long i = 0; i < outs[k].count; i++) {
            name_of(&outs[k], i, path, sizeof path);
            int fd = open(path, O_RDONLY);
            if (fd < 0 || (!any && syncfs(fd) < 0)) fail("cannot be synced", path);
            any = 1;
            posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
            close(fd);
        }
    }
}

/* Input. */
static void read_file(const struct group *g, long index, long *read_in_all, long in_total)
{
    char path[4096];
    uint64_t seed = name_of(g, index, path, sizeof path);
    far_away();
    int fd = strcmp(path, "-") ? open(path, O_RDONLY) : 0;
    if (fd < 0) fail("cannot be opened", path);
    long at = g->size / parts * part, end = part + 1 == parts ? g->size : g->size / parts * (part + 1);
    if (at && lseek(fd, at, SEEK_SET) != at) fail("cannot be sought", path);
    for (;;) {
        /* The last part is read to the end of the file, which must be where it should be. */
        long n = end < g->size && end - at < block ? end - at : block;
        n = n ? read(fd, buffer, (size_t)n) : 0;
        if (n < 0) fail("cannot be read", path);
        if (n == 0) break;
        if (at + n > g->size) fail("is too long", path);
        if (memcmp(buffer, bytes_at(seed, (uint64_t)at), (size_t)n)) fail("has wrong bytes", path);
        at += n;
        *read_in_all += n;
        compute(us_per_mib * n / (1 << 20));
        if (out_total) write_up_to((long)((double)*read_in_all / (double)in_total * (double)out_total), 0);
    }
    if (at != end) {
        fprintf(stderr, "stream-step: %s: %ld of %ld bytes\n", path, at, end);
        exit(1);
    }
    if (sync_all) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    far_away();
    if (fd) close(fd);
    compute(us_per_file);
}

static void parse(struct group *g, char *text)
{
    char *field[5];
    for (int i = 4; i >= 1; i--) {
        char *colon = strrchr(text, ':');
        if (!colon) exit(2);
        *colon = 0;
        field[i] = colon + 1;
    }
    *g = (struct group){text, atol(field[1]), atol(field[2]), atol(field[3]), atol(field[4]), 0};
}

int main(int argc, char **argv)
{
    struct group ins[GROUPS];
    int in_count = 0, option;
    long in_total = 0, done = 0, most = 0;
    fill_table();
    while ((option = getopt(argc, argv, "+b:f:l:m:p:sz")) > 0) {
        if (option == 'b') block = atol(optarg);
        else if (option == 'f') us_per_file = atol(optarg);
        else if (option == 'l') us_far = atol(optarg);
        else if (option == 'm') us_per_mib = atol(optarg);
        else if (option == 'p' && sscanf(optarg, "%ld/%ld", &part, &parts) == 2 && part >= 0 && part < parts) continue;
        else if (option == 's') sync_all = 1;
        else if (option == 'z') sparse = 1;
        else return 2;
    }
    if (block < 1 || block > (long)MOST) return 2;
    int writing = 0;
    for (int i = optind; i < argc; i++) {
        if (!strcmp(argv[i], "IN") || !strcmp(argv[i], "OUT")) {
            writing = argv[i][0] == 'O';
            continue;
        }
        if (in_count == GROUPS || out_count == GROUPS) return 2;
        struct group *g = writing ? &outs[out_count++] : &ins[in_count++];
        parse(g, argv[i]);
        *(writing ? &out_total : &in_total) += g->count * g->size;
        if (!writing && g->count > most) most = g->count;
    }
    for (long i = 0; i < most; i++)
        for (int k = 0; k < in_count; k++)
            if (i < ins[k].count) read_file(&ins[k], i, &done, in_total);
    write_up_to(out_total, in_count == 0);
    if (sync_all) settle();
    return 0;
}
