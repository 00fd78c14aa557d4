/* millrace-board serve: a board whose rules come while it is in use, and that tells what is committed. It makes the
 * board from the lines on stdin up to `end`, goes on reading further ones, and takes the board away with the end of
 * stdin: so also when their writer was killed.
 *
 * in:  step NAME | rule … | sync WORD           out:  committed PATH | failed PATH REASON | synced WORD | error TEXT */
#include "tool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;
static u32 told; /* files below this number were looked at when all before them had settled */
static u8 *settled;
static u32 settled_size;

/* The fields of our lines are escaped as in plans. */
static void print_field(const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 0x20 || c == '%' || c == ',') printf("%%%02X", c);
        else putchar(c);
    }
}

/* Files that are complete with others: only this tool looks at them when no reader waits. */
static void evaluate_dependants(u32 n)
{
    struct mr_guard g;
    for (u32 i = told; i < n; i++) {
        const struct mr_file *f = mr_file_at(i);
        if (f->commit != MR_ON_FILE || mr_load(&f->state) >= MR_COMMITTED) continue;
        mr_lock(&g);
        mr_file_evaluate(i);
        mr_unlock(&g);
    }
}

static void tell_settled(void)
{
    u32 n = mr_used(MR_FILES);
    if (n > settled_size) {
        u32 size = n + 1024;
        settled = realloc(settled, size);
        memset(settled + settled_size, 0, size - settled_size);
        settled_size = size;
    }
    evaluate_dependants(n);
    for (u32 i = told; i < n; i++) {
        const struct mr_file *f = mr_file_at(i);
        u32 state = mr_load(&f->state);
        if (settled[i] || state < MR_COMMITTED) continue;
        settled[i] = 1;
        fputs(state == MR_COMMITTED ? "committed\t" : "failed\t", stdout);
        print_field(mr_text_at(f->path));
        if (state == MR_FAILED) {
            putchar('\t');
            print_field(mr_text_at(f->reason));
        }
        putchar('\n');
    }
    while (told < n && settled[told]) told++;
}

static void *watch(void *unused)
{
    (void)unused;
    for (;;) {
        u32 seen = mr_load(&mr_b->settled_seq);
        pthread_mutex_lock(&printing);
        tell_settled();
        fflush(stdout);
        pthread_mutex_unlock(&printing);
        mr_add(&mr_b->settled_waiters, 1);
        long r = mr_futex_wait(&mr_b->settled_seq, seen, 200000000u);
        mr_add(&mr_b->settled_waiters, (u32)-1);
        if (r == -ETIMEDOUT && mr_any_dead()) {
            struct mr_guard g;
            mr_lock(&g);
            mr_reap();
            mr_unlock(&g);
        }
    }
    return 0;
}

static void take(char *line)
{
    char why[200];
    pthread_mutex_lock(&printing);
    if (!strncmp(line, "sync\t", 5)) {
        tell_settled();
        printf("synced\t%s\n", line + 5);
    } else {
        struct mr_guard g;
        mr_lock(&g);
        int bad = mr_plan_more(line, why, sizeof why);
        mr_unlock(&g);
        if (bad) printf("error\t%s\n", why);
    }
    fflush(stdout);
    pthread_mutex_unlock(&printing);
}

int mr_command_serve(const struct mr_options *o)
{
    char *line = 0, *plan = 0;
    size_t size = 0, length = 0;
    for (ssize_t n; (n = getline(&line, &size, stdin)) > 0;) {
        plan = realloc(plan, length + (size_t)n + 1);
        memcpy(plan + length, line, (size_t)n + 1);
        length += (size_t)n;
        if (!strcmp(line, "end\n")) break;
    }
    struct mr_options mine = *o;
    mine.owner = (u32)getpid(); /* a board whose keeper was killed is cleared away by the next */
    int code = mr_make_board(plan ? plan : "", &mine);
    if (code) return code;
    puts("ready");
    fflush(stdout);
    pthread_t thread;
    if (pthread_create(&thread, 0, watch, 0)) return mr_say(MR_FAILED_COMMAND, "cannot start a thread");
    for (ssize_t n; (n = getline(&line, &size, stdin)) > 0;) {
        if (line[n - 1] == '\n') line[n - 1] = 0;
        take(line);
    }
    mr_remove_board();
    _exit(0);
}
