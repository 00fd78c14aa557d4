/* The command millrace-board. Uses libc freely; the logic it links does not. */
#ifndef MR_TOOL_H
#define MR_TOOL_H

#include "board.h"

#include <stdio.h>

enum { MR_OK = 0, MR_FAILED_COMMAND = 1, MR_USAGE = 2, MR_LIVE = 3, MR_NO_BOARD = 4, MR_TOOK_TOO_LONG = 5 };

struct mr_options {
    const char *workflow, *app, *lib;
    int replace, force, plan, shared, synced, live, asked;
    u32 owner;
    double timeout;
    u64 since, bytes;
    char **rest;
    int rest_count;
};

/* plan.c: fills the empty board in mr_b; 0, or the number of the bad line with a message in why */
struct mr_plan {
    char *workflow, *dir;
};
int mr_plan_head(const char *text, struct mr_plan *plan, char *why, size_t size);
int mr_plan_load(const char *text, char *why, size_t size);
int mr_plan_more(char *line, char *why, size_t size);

/* tool_links.c */
u32 mr_oddities(const char *dir);
u32 mr_ways_in(const char *dir);
void mr_known_names(const char *dir);

/* tool.c */
int mr_open_board(const struct mr_options *o); /* 0 or an exit code, with a message */
int mr_board_live(void);
int mr_make_board(const char *text, const struct mr_options *o);
void mr_remove_board(void);
int mr_say(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

int mr_command_exec(const struct mr_options *o);
int mr_command_serve(const struct mr_options *o);
int mr_command_relay(const struct mr_options *o);
int mr_command_ps(const struct mr_options *o);
int mr_command_events(const struct mr_options *o);
int mr_command_list(const struct mr_options *o);
int mr_command_match(const struct mr_options *o);

#endif
