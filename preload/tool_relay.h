/* millrace-board relay: keeps the boards of several nodes in step.
 *
 * A file has one home: the node on which a step creates it. There its rule decides when it is complete. The relay of the
 * home writes frames about it on stdout, and the relays of the nodes that read it take them on stdin: they make a real file
 * that grows in the same way, and raise the frontier on their board as bytes arrive. So programs there wait as on one node.
 *
 * A frame: u32 length of the content, u8 type, the content. Numbers are little endian. All but ENDED begin with a path
 * (u16 length, bytes) below the managed directory. */
#ifndef MR_RELAY_H
#define MR_RELAY_H

#include "tool.h"

enum {
    MR_FRAME_BEGIN = 64, /* u32 generation, u8 flags: MR_BEGIN_DIR, MR_BEGIN_AGAIN */
    MR_FRAME_DATA,       /* u64 offset, the bytes. In a shared directory: u64, how many bytes from the start others can see */
    MR_FRAME_COMPLETE,   /* u64 size (~0: it is not there), u32 mode */
    MR_FRAME_FAIL,       /* text: the reason */
    MR_FRAME_CUT,        /* u32 generation, u8: it is gone, not just shorter. What was sent of it is void */
    MR_FRAME_ENDED,      /* u16 length, name of a step, u32 instances that ended well, u32 that failed, text: the reason. Since the last one */
    MR_FRAME_WANT,       /* begins with a pattern. u8: it has wildcards; text: the step of another node that reads what it names.
                            With --asked: the name of one file, which is on the board, and nothing behind it */
    MR_FRAME_GO,         /* all WANTs have come */
    MR_FRAME_AGAIN,      /* in: what was sent is to be sent again, because a node may not have got it. out: that was done; u32: for how many of them */
    MR_FRAME_HOLD,       /* in: u8: 1 no more bytes of this file for now, 0 go on. Other files do not wait for it */
    MR_FRAME_LATE,       /* out: it is complete or has failed, and is held: the ENDEDs that follow are for nodes that have it whole */
    MR_FRAME_AROUND,     /* in: text: a line of `ps` about the other nodes. No name */
};

/* A directory that a rule names: it is complete when each node finds it so. A file that may have been sent before, with the
 * same bytes when the generation is the same. */
enum { MR_BEGIN_DIR = 1, MR_BEGIN_AGAIN = 2 };

#define MR_FRAME_MAX (256u << 10) /* bytes of a file in one frame */
#define MR_TURN (1u << 20)        /* bytes of a file before it is the turn of the next */

/* All nodes see one directory: frames tell how far a file is, and carry no bytes. */
extern int mr_is_shared;
extern int mr_is_synced;    /* others see bytes only after fsync */
/* --live: steps and rules are added while the board is in use (`serve`), and the other side wants all files of this node. What came
 * and is not complete at the end of stdin has failed: its node is lost.
 * --asked: it wants only what it asks for, also what came here from a third node. Ends of steps are not told: they may be older
 * than the question for a file of that step, which would then be taken for one that its step has not made. */
extern int mr_is_live, mr_only_asked;
extern u64 mr_sight_limit;  /* nanoseconds until what another node has told of must be seen here */

/* Ends of instances on other nodes, by step: they are not ours to tell. Under the board's lock. */
extern u32 *mr_remote_ok, *mr_remote_failed;
extern volatile int mr_look_at_all; /* a name that was another node's is free again */
extern u32 mr_send_again; /* how often all had to be sent again */

void mr_path_of(char *to, size_t size, const char *path);

int mr_is_held(u32 file);

/* With --asked: the next file that was asked for; MR_NONE: there is none. */
u32 mr_next_asked(void);

/* The number of a step on another node that reads the file, plus one; 0: no node needs it. */
u32 mr_wanted_by(const char *name, int is_dir);

/* tool_send.c: looks once at the board and sends what is new, of each file a piece. */
enum { MR_NO_NEWS, MR_NEWS, MR_MORE_NEWS };
int mr_send_news(void);

/* tool_receive.c: takes one frame. 0, or an exit code with a message. */
int mr_take_frame(u8 type, const u8 *content, u32 length);
/* With --live: what came and is not complete never will be. */
void mr_fail_begun(void);
/* Frames that tell of what this node does not see yet: whether there are any, and a look whether that has changed. */
int mr_has_aside(void);
int mr_take_aside(void);

#endif
