/* millrace-board relay: see tool_relay.h. One thread takes frames, the other looks at the board and sends. */
#include "tool_relay.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_BUSY_US 300
#define LOOK_IDLE_US 2000
#define SIGHT_MS 2
#define REAP_NS 200000000u

u32 *mr_remote_ok, *mr_remote_failed;
volatile int mr_look_at_all;
u32 mr_send_again;
int mr_is_shared, mr_is_synced, mr_is_live, mr_only_asked;
u64 mr_sight_limit = 30000000000u;

void mr_path_of(char *to, size_t size, const char *path)
{
    snprintf(to, size, "%s/%s", mr_text_at(mr_b->dir), path);
}

/* ---- what other nodes read ---- */

struct want {
    char *pattern, *inside; /* inside: what lies below it */
    int is_glob;
    u32 step;
};

static struct want *wants;
static u32 want_count;
static volatile int has_all_wants;

static int add_want(const u8 *content, u32 length)
{
    u16 size;
    if (length < 3) return mr_say(MR_USAGE, "a frame is too short");
    memcpy(&size, content, 2);
    if (size + 3u >= length || length > 4096) return mr_say(MR_USAGE, "a frame is damaged");
    char name[4097];
    memcpy(name, content + size + 3, length - size - 3);
    name[length - size - 3] = 0;
    wants = realloc(wants, (want_count + 1) * sizeof *wants);
    struct want *w = &wants[want_count++];
    *w = (struct want){malloc(size + 1u), malloc(size + 3u), content[size + 2], mr_step_find(name)};
    memcpy(w->pattern, content + 2, size);
    w->pattern[size] = 0;
    snprintf(w->inside, size + 3u, "%s/*", w->pattern);
    return w->step == MR_NONE ? mr_say(MR_USAGE, "no step %s", name) : 0;
}

static int covers(const struct want *w, const char *name, int is_dir)
{
    size_t length = strlen(w->pattern), own = strlen(name);
    if (w->is_glob) return mr_glob(w->pattern, name) || mr_glob(w->inside, name) || is_dir;
    if (!strncmp(w->pattern, name, length) && (!name[length] || name[length] == '/')) return 1;
    return is_dir && !strncmp(w->pattern, name, own) && w->pattern[own] == '/';
}

u32 mr_wanted_by(const char *name, int is_dir)
{
    for (u32 i = 0; i < want_count; i++)
        if (covers(&wants[i], name, is_dir)) return wants[i].step + 1;
    return 0;
}

/* ---- what was asked for ---- */

struct asked {
    struct asked *next;
    u32 file;
};

static struct asked *asked, **asked_end = &asked;
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

static int ask(const u8 *content, u32 length)
{
    u16 size;
    if (length < 2) return mr_say(MR_USAGE, "a frame is too short");
    memcpy(&size, content, 2);
    if (size + 2u != length) return mr_say(MR_USAGE, "a frame is damaged");
    u32 file = mr_file_find((const char *)content + 2, size);
    if (file == MR_NONE) return mr_say(MR_USAGE, "there is no file %.*s on the board", (int)size, (const char *)content + 2);
    struct asked *one = malloc(sizeof *one);
    if (!one) return mr_say(MR_FAILED_COMMAND, "no memory left");
    *one = (struct asked){.file = file};
    pthread_mutex_lock(&asking);
    *asked_end = one;
    asked_end = &one->next;
    pthread_mutex_unlock(&asking);
    return 0;
}

u32 mr_next_asked(void)
{
    pthread_mutex_lock(&asking);
    struct asked *one = asked;
    u32 file = one ? one->file : MR_NONE;
    if (one && !(asked = one->next)) asked_end = &asked;
    pthread_mutex_unlock(&asking);
    free(one);
    return file;
}

/* ---- what has to wait ---- */

static u8 *held; /* by record */

int mr_is_held(u32 file) { return __atomic_load_n(&held[file], __ATOMIC_RELAXED); }

static int hold(const u8 *content, u32 length)
{
    u16 size;
    if (length < 3) return mr_say(MR_USAGE, "a frame is too short");
    memcpy(&size, content, 2);
    if (size + 3u != length) return mr_say(MR_USAGE, "a frame is damaged");
    u32 file = mr_file_find((const char *)content + 2, size);
    if (file != MR_NONE) __atomic_store_n(&held[file], content[length - 1], __ATOMIC_RELAXED);
    return 0;
}

/* ---- what `ps` says of other nodes ---- */

static int note_around(const u8 *content, u32 length)
{
    struct mr_guard g;
    if (length < 2 || length - 2 > sizeof mr_b->around) return mr_say(MR_USAGE, "a line about other nodes has %u bytes", length);
    mr_lock(&g);
    memcpy(mr_b->around, content + 2, length - 2);
    mr_b->around_len = length - 2;
    mr_unlock(&g);
    return 0;
}

/* ---- taking frames ---- */

static int read_all(void *to, size_t n)
{
    for (u8 *at = to; n;) {
        ssize_t got = read(0, at, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        at += got;
        n -= (size_t)got;
    }
    return 1;
}

static volatile int is_over;
static int code;

static void *take(void *unused)
{
    u8 head[5], *content = 0;
    u32 size = 0;
    (void)unused;
    for (;;) {
        struct pollfd in = {.fd = 0, .events = POLLIN};
        while (!code && mr_has_aside() && !mr_load(&mr_b->gone)) {
            code = mr_take_aside();
            if (poll(&in, 1, SIGHT_MS) > 0) break;
        }
        if (code || !read_all(head, sizeof head)) break;
        u32 length;
        memcpy(&length, head, 4);
        if (length > MR_FRAME_MAX + 4096) {
            code = mr_say(MR_FAILED_COMMAND, "a frame of %u bytes came from another node", length);
            break;
        }
        if (length > size) content = realloc(content, size = length);
        if (!read_all(content, length)) break;
        if (head[4] == MR_FRAME_WANT) code = mr_only_asked ? ask(content, length) : add_want(content, length);
        else if (head[4] == MR_FRAME_GO) has_all_wants = 1;
        else if (head[4] == MR_FRAME_AGAIN) mr_add(&mr_send_again, 1);
        else if (head[4] == MR_FRAME_HOLD) code = hold(content, length);
        else if (head[4] == MR_FRAME_AROUND) code = note_around(content, length);
        else code = mr_take_frame(head[4], content, length);
    }
    if (mr_is_live) mr_fail_begun();
    is_over = 1;
    return 0;
}

/* ---- the command ---- */

static void reap(void)
{
    static u64 last;
    struct mr_guard g;
    u64 now = mr_now();
    if (now - last < REAP_NS) return;
    last = now;
    if (!mr_any_dead()) return;
    mr_lock(&g);
    mr_reap();
    mr_unlock(&g);
}

int mr_command_relay(const struct mr_options *o)
{
    int err = mr_open_board(o);
    if (err) return err;
    mr_is_shared = o->shared;
    mr_is_synced = o->synced;
    if (o->timeout > 0) mr_sight_limit = (u64)(o->timeout * 1e9);
    mr_is_live = has_all_wants = o->live;
    mr_only_asked = o->asked;
    u32 steps = mr_is_live ? MR_MAX_STEPS : mr_used(MR_STEPS);
    mr_remote_ok = calloc(steps + 1, sizeof *mr_remote_ok);
    mr_remote_failed = calloc(steps + 1, sizeof *mr_remote_failed);
    fcntl(1, F_SETPIPE_SZ, MR_TURN); /* fewer and larger reads, where it is a pipe */
    held = calloc(mr_b->region[MR_FILES].cap, 1);
    pthread_t thread;
    if (pthread_create(&thread, 0, take, 0)) return mr_say(MR_FAILED_COMMAND, "cannot start a thread");
    while (!has_all_wants && !is_over) usleep(LOOK_BUSY_US);
    for (int last = 0; !last && !mr_load(&mr_b->gone);) {
        last = is_over; /* what happened until the end of stdin is sent */
        reap();
        int news = mr_send_news();
        if (news != MR_MORE_NEWS) usleep(news ? LOOK_BUSY_US : LOOK_IDLE_US);
    }
    return code;
}
