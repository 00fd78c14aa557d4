/* Patching the system call instructions of libc, in memory. */
#ifndef MR_PATCH_H
#define MR_PATCH_H

#include "local.h"

enum {
    MR_SITE_MOV = 1, /* mov $nr,%eax; syscall: the mov becomes the jump, the site goes on behind the syscall */
    MR_SITE_RAW,     /* the same for clone, clone3 and vfork, whose child returns on another stack */
    MR_SITE_CMP,     /* number not known before: syscall and the compare behind it become the jump */
    MR_SITE_LOAD,    /* mov x(%rsp),%rax; syscall: as MOV, with the number from the stack (see mr_cancels) */
    MR_SITE_CALL,    /* call of the function that makes a system call which may be cancelled: it calls us first */
};

#define MR_SITE_ANY 0xffffu /* number only known when it is called */

struct mr_site {
    u32 off; /* of the first byte replaced, from the load address */
    u16 nr;
    u8 kind, cmp; /* cmp: length of the compare, 5 or 6 */
};

#define MR_SITES 1024u
struct mr_sites {
    u32 magic, count;
    u64 text_from, text_to;
    u8 id[20];
    u32 id_len;
    struct mr_site site[MR_SITES];
};

/* sites.c */
int mr_sites_of(u64 base, struct mr_sites *s, const char *const folder[2], u32 uid);
void mr_sites_scan(const u8 *text, u64 len, u64 off, struct mr_sites *s);
int mr_cancels(const u8 *text, u64 len, const u8 *f, u64 off, const struct mr_sites *s);
/* patch.c */
int mr_patch(u64 base, const struct mr_sites *s);

#endif
