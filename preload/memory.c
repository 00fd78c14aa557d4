/* The compiler may call these by itself; libc's would use vector registers that a system call must leave
 * alone. */
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    char *t = to;
    const char *f = from;
    while (n--) *t++ = *f++;
    return to;
}

void *memmove(void *to, const void *from, size_t n)
{
    char *t = to;
    const char *f = from;
    if (t < f) while (n--) *t++ = *f++;
    else while (n--) t[n] = f[n];
    return to;
}

void *memset(void *to, int c, size_t n)
{
    char *t = to;
    while (n--) *t++ = (char)c;
    return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *x = a, *y = b;
    for (; n; n--, x++, y++)
        if (*x != *y) return *x - *y;
    return 0;
}
