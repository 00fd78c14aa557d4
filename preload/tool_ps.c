/* millrace-board ps, events, list and match: what the board says, as JSON lines. */
#include "tool.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const commits[] = {"on_termination", "on_close", "on_file", "on_n_files"};
static const char *const states[] = {"absent", "growing", "committed", "failed"};
static const char *const wait_kinds[] = {"exists", "commit", "data", "list"};
static const char *const events[] = {"committed", "failed", "ended", "killed", "deadlock", "timeout", "full", "note", "trusted", "moved", "broken", "rewritten", "unseen"};

/* Bytes of the character that begins here, 0 when it is none of UTF-8. */
static u32 character(const unsigned char *s)
{
    u32 n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    for (u32 i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    int bad = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f);
    return bad ? 0 : n;
}

/* Names of files are bytes. Those that are no UTF-8 become half a surrogate pair each (src/stream/raw-names.ts). */
static void string(const char *text)
{
    putchar('"');
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        u32 n = character(s);
        if (!n) printf("\\udc%02x", *s++);
        else if (*s == '"' || *s == '\\') printf("\\%c", *s++);
        else if (*s < 0x20) printf("\\u%04x", *s++);
        else for (; n; n--) putchar(*s++);
    }
    putchar('"');
}

static const char *step_name(u32 step) { return step == MR_NONE ? 0 : mr_text_at(mr_step_at(step)->name); }

static void name_or_null(const char *s)
{
    if (s) string(s);
    else fputs("null", stdout);
}

static double seconds_since(u64 then) { return (double)(s64)(mr_now() - then) / 1e9; }

static void print_producers(const struct mr_rule *r)
{
    putchar('[');
    for (u32 i = 0; i < r->producer_count; i++) {
        if (i) putchar(',');
        string(step_name(*mr_list_at(r->producers + i)));
    }
    putchar(']');
}

static void print_commit(u32 commit, u32 count)
{
    printf("\"commit\":\"%s", commits[commit]);
    if (count || commit == MR_ON_TERMINATION) {
        if (commit != MR_ON_FILE) printf(":%u", count);
    }
    putchar('"');
}

static void print_board(void)
{
    u32 procs = 0;
    for (u32 i = 0; i < mr_used(MR_PROCS); i++) procs += mr_proc_at(i)->slot.used != 0;
    int live = procs || (mr_b->owner && mr_alive(mr_b->owner, mr_b->owner_start));
    fputs("{\"type\":\"board\",\"workflow\":", stdout);
    string(mr_text_at(mr_b->workflow));
    fputs(",\"dir\":", stdout);
    string(mr_text_at(mr_b->dir));
    fputs(",\"layer\":", stdout);
    name_or_null(mr_b->layer ? mr_text_at(mr_b->layer) : 0);
    printf(",\"live\":%s,\"uid\":%u,\"created\":%.3f,\"lib\":%u,\"files\":%u,\"processes\":%u,\"failed\":%s,\"repaired\":%u,\"path\":",
        live ? "true" : "false", mr_b->uid, (double)mr_b->created_wall / 1e9, MR_VERSION, mr_used(MR_FILES), procs,
        mr_b->failed ? "true" : "false", mr_b->recovered);
    string(mr_b->shm);
    puts("}");
}

static void print_step(u32 i)
{
    const struct mr_step *s = mr_step_at(i);
    u32 procs = 0;
    for (u32 k = 0; k < mr_used(MR_PROCS); k++) {
        const struct mr_proc *p = mr_proc_at(k);
        procs += p->slot.used && p->step == i && !(p->flags & MR_KEEPER);
    }
    printf("{\"type\":\"step\",\"id\":%u,\"name\":", i);
    string(mr_text_at(s->name));
    if (s->expected) printf(",\"instances\":%u", s->expected);
    else fputs(",\"instances\":null", stdout);
    printf(",\"running\":%u,\"endedOk\":%u,\"endedFailed\":%u,\"ended\":%s,\"failed\":%s,\"processes\":%u", s->running,
        s->ended_ok, s->ended_failed, mr_step_over(i) ? "true" : "false", mr_step_failed(i) ? "true" : "false", procs);
    if (s->reason) {
        fputs(",\"reason\":", stdout);
        string(mr_text_at(s->reason));
    }
    puts("}");
}

/* Descriptors that live processes of the workflow have open for reading on the path. */
static u32 count_readers(const char *full)
{
    u32 readers = 0;
    for (u32 i = 0; i < mr_used(MR_PROCS); i++) {
        const struct mr_proc *p = mr_proc_at(i);
        char path[64], link[4096];
        if (!p->slot.used || p->state != MR_ALIVE) continue;
        snprintf(path, sizeof path, "/proc/%u/fd", p->pid);
        DIR *d = opendir(path);
        for (struct dirent *e; d && (e = readdir(d));) {
            struct stat st;
            ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof link - 1);
            if (n <= 0) continue;
            link[n] = 0;
            if (!strcmp(link, full) && !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW)) readers += !(st.st_mode & S_IWUSR);
        }
        if (d) closedir(d);
    }
    return readers;
}

static void print_file(u32 i)
{
    const struct mr_file *f = mr_file_at(i);
    const char *path = mr_text_at(f->path);
    char full[8192];
    struct stat st;
    snprintf(full, sizeof full, "%s/%s", mr_text_at(mr_b->dir), path);
    fputs("{\"type\":\"file\",\"path\":", stdout);
    string(path);
    printf(",\"kind\":\"%s\",\"state\":\"%s\",\"mode\":\"%s\",", f->is_dir ? "dir" : "file", states[f->state],
        f->mode == MR_NO_UPDATE ? "no_update" : "update");
    print_commit(f->commit, f->count);
    printf(",\"rule\":%u,\"closes\":%u,\"written\":%llu,", f->rule, f->closes, (unsigned long long)f->frontier);
    if (stat(full, &st) == 0) printf("\"size\":%lld", (long long)st.st_size);
    else fputs("\"size\":null", stdout);
    printf(",\"writers\":%u,\"readers\":%u,\"waiters\":%u,\"begun\":%u,\"committedFiles\":%u,\"producers\":", f->writers,
        f->state == MR_GROWING && !f->is_dir ? count_readers(full) : 0, f->waiters, f->begun_children, f->committed_children);
    print_producers(mr_rule_at(f->rule));
    printf(",\"permanent\":%s", mr_is_marked(MR_RULE_PERMANENT, path, f->path_len) ? "true" : "false");
    if (f->state == MR_FAILED) {
        fputs(",\"reason\":", stdout);
        string(mr_text_at(f->reason));
    }
    puts("}");
}

static void print_process(u32 i)
{
    const struct mr_proc *p = mr_proc_at(i);
    const char *state = "running";
    int may_be_blocked = 0; /* the kernel is asked only about instances with a process that waits for a file */
    for (u32 k = 0; k < mr_used(MR_WAITS); k++) {
        const struct mr_wait *w = mr_wait_at(k);
        if (!w->slot.used) continue;
        if (w->proc == i) state = "waiting";
        may_be_blocked |= p->instance != MR_NONE && mr_proc_at(w->proc)->instance == p->instance;
    }
    if (p->flags & MR_EXECING) state = "unseen";
    if (p->flags & MR_KEEPER) state = "keeper";
    printf("{\"type\":\"process\",\"pid\":%u,\"step\":", p->pid);
    name_or_null(step_name(p->step));
    if (p->instance == MR_NONE) fputs(",\"instance\":null", stdout);
    else printf(",\"instance\":%u", p->instance);
    printf(",\"state\":\"%s\",\"blocked\":%s,\"writing\":[", state, may_be_blocked && mr_cannot_move(i) ? "true" : "false");
    int first = 1;
    for (u32 h = p->holds; h; h = mr_hold_at(h - 1)->slot.link) {
        if (!first) putchar(',');
        first = 0;
        string(mr_text_at(mr_file_at(mr_ofd_at(mr_hold_at(h - 1)->ofd)->file)->path));
    }
    printf("],\"since\":%.3f}\n", seconds_since(p->since));
}

static void print_wait(u32 i)
{
    const struct mr_wait *w = mr_wait_at(i);
    const struct mr_proc *p = mr_proc_at(w->proc);
    const struct mr_file *f = mr_file_at(w->file);
    const struct mr_rule *r = mr_rule_at(f->rule);
    char sentence[600], who[200] = "";
    for (u32 k = 0; k < r->producer_count; k++) {
        strncat(who, k ? ", " : "", sizeof who - strlen(who) - 1);
        strncat(who, step_name(*mr_list_at(r->producers + k)), sizeof who - strlen(who) - 1);
    }
    static const char *const what[] = {"for", "for the commit of", "for more of", "for the listing of"};
    snprintf(sentence, sizeof sentence, "%s (pid %u) waits %s %s, written by %s",
        p->step == MR_NONE ? "a process of no step" : step_name(p->step), p->pid, what[w->kind], mr_text_at(f->path), who);
    printf("{\"type\":\"wait\",\"pid\":%u,\"tid\":%u,\"step\":", p->pid, w->tid);
    name_or_null(step_name(p->step));
    fputs(",\"path\":", stdout);
    string(mr_text_at(f->path));
    printf(",\"for\":\"%s\",\"at\":%llu,\"want\":%llu,\"seconds\":%.3f,\"on\":", wait_kinds[w->kind],
        (unsigned long long)w->at, (unsigned long long)w->want, seconds_since(w->since));
    print_producers(r);
    fputs(",\"sentence\":", stdout);
    string(sentence);
    puts("}");
}

static void print_around(void)
{
    static char line[MR_AROUND];
    struct mr_guard g;
    mr_lock(&g);
    u32 length = mr_b->around_len < MR_AROUND ? mr_b->around_len : MR_AROUND;
    memcpy(line, mr_b->around, length);
    mr_unlock(&g);
    if (length) printf("%.*s\n", (int)length, line);
}

static void print_events(u64 since)
{
    u64 last = mr_load(&mr_b->event_seq), seq = last > MR_EVENT_COUNT - 1 ? last - MR_EVENT_COUNT + 2 : 1;
    for (seq = seq > since ? seq : since + 1; seq <= last; seq++) {
        const struct mr_event *e = mr_event_at((u32)(seq % MR_EVENT_COUNT));
        if (e->seq != seq) continue;
        printf("{\"type\":\"event\",\"seq\":%llu,\"time\":%.3f,\"kind\":\"%s\",\"path\":", (unsigned long long)seq,
            (double)e->wall / 1e9, events[e->kind]);
        name_or_null(e->path ? mr_text_at(e->path - 1) : 0);
        fputs(",\"step\":", stdout);
        name_or_null(step_name(e->step));
        printf(",\"pid\":%u,\"text\":", e->pid);
        string(e->text);
        puts("}");
    }
}

int mr_command_ps(const struct mr_options *o)
{
    struct mr_guard g;
    int code = mr_open_board(o);
    if (code) return code;
    mr_lock(&g);
    mr_reap();
    for (u32 i = 0; i < mr_used(MR_FILES); i++) mr_file_evaluate(i);
    mr_unlock(&g);
    /* printed without the lock: a slow reader of our output must not stop the workflow */
    print_board();
    for (u32 i = 0; i < mr_used(MR_STEPS); i++) print_step(i);
    for (u32 i = 0; i < mr_used(MR_FILES); i++) print_file(i);
    for (u32 i = 0; i < mr_used(MR_PROCS); i++)
        if (mr_proc_at(i)->slot.used) print_process(i);
    for (u32 i = 0; i < mr_used(MR_WAITS); i++)
        if (mr_wait_at(i)->slot.used) print_wait(i);
    print_around();
    print_events(o->since);
    return 0;
}

int mr_command_events(const struct mr_options *o)
{
    int code = mr_open_board(o);
    if (!code) print_events(o->since);
    return code;
}

int mr_command_list(const struct mr_options *o)
{
    char prefix[64];
    (void)o;
    snprintf(prefix, sizeof prefix, "millrace.%u.", getuid());
    DIR *d = opendir("/dev/shm");
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[400];
        snprintf(path, sizeof path, "/dev/shm/%s", e->d_name);
        if (strncmp(e->d_name, prefix, strlen(prefix)) || mr_board_open(path, getuid()) < 0) continue;
        mr_board_live(); /* books those that died without a word */
        print_board();
        munmap(mr_b, mr_b->bytes);
    }
    if (d) closedir(d);
    return 0;
}

int mr_command_match(const struct mr_options *o)
{
    char why[200], self[40], *text = 0;
    if (o->plan) {
        size_t size = 0;
        struct mr_plan plan = {0};
        ssize_t n = getdelim(&text, &size, 0, stdin);
        int fd = memfd_create("plan", MFD_CLOEXEC), line;
        snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
        if (n < 0 || fd < 0 || mr_board_layout(fd, self) < 0) return mr_say(MR_FAILED_COMMAND, "cannot read the plan");
        line = mr_plan_head(text, &plan, why, sizeof why);
        if (!line) line = mr_plan_load(text, why, sizeof why);
        if (line) return mr_say(MR_USAGE, "plan line %d: %s", line, why);
    } else {
        int code = mr_open_board(o);
        if (code) return code;
    }
    for (int i = 0; i < o->rest_count; i++) {
        int is_dir;
        u32 len = (u32)strlen(o->rest[i]), rule = mr_rule_find(o->rest[i], len, &is_dir);
        fputs("{\"path\":", stdout);
        string(o->rest[i]);
        printf(",\"excluded\":%s,\"permanent\":%s", mr_is_marked(MR_RULE_EXCLUDE, o->rest[i], len) ? "true" : "false",
            mr_is_marked(MR_RULE_PERMANENT, o->rest[i], len) ? "true" : "false");
        if (rule == MR_NONE) {
            puts(",\"rule\":null}");
            continue;
        }
        const struct mr_rule *r = mr_rule_at(rule);
        printf(",\"rule\":%u,\"kind\":\"%s\",\"pattern\":", rule, is_dir ? "dir" : "file");
        string(mr_text_at(r->text));
        printf(",\"mode\":\"%s\",", r->mode == MR_NO_UPDATE ? "no_update" : "update");
        print_commit(is_dir || r->commit != MR_ON_N_FILES ? r->commit : MR_ON_CLOSE, is_dir || r->commit != MR_ON_N_FILES ? r->count : 1);
        fputs(",\"producers\":", stdout);
        print_producers(r);
        puts("}");
    }
    return 0;
}
