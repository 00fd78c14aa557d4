/* Called by the trampolines in place of a system call instruction, with the registers set up for it and the
 * red zone already stepped over. Everything but rax, rcx and r11 comes back as it was. The C code behind it
 * is compiled without vector registers.
 *
 * With the carry set, the trampoline is to make the call itself (MR_GO). That is more than a short cut: on its way
 * through the kernel the processor forgets where our functions return to, and each return after it costs as much as
 * twenty instructions. */
#if defined(__x86_64__)
#define MR_LINKS_AT 144             /* of `links` in the board (dispatch.c checks) */
    .text
#ifndef MR_NO_STUB
/* The registers of the call as struct mr_call, and its address for the C function. */
.macro push_call
    push %r9
    push %r8
    push %r10
    push %rdx
    push %rsi
    push %rdi
    push %rax
    mov %rsp, %rdi
.endm

/* What the look at a path has used comes back. */
.macro unsave_path
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdx
    .cfi_adjust_cfa_offset -8
    pop %rax
    .cfi_adjust_cfa_offset -8
.endm

/* The same for calls that name a path, in rdi or rsi. Nearly all of them lie outside of the managed directory, and that
 * is seen here: the path is absolute, has no two of '.' and '/' side by side (the only way back in), and does not begin
 * like the directory. All else is for C, with the length of the path when it begins with the directory. */
    .globl mr_stub_path1
    .hidden mr_stub_path1
    .globl mr_stub_path2
    .hidden mr_stub_path2
    .type mr_stub_path1, @function
mr_stub_path2:
    .cfi_startproc
    mov %rsi, %r11
    jmp 1f
mr_stub_path1:
    mov %rdi, %r11
1:  mov %r11, %rcx
    shr $12, %rcx               /* is the page known to be readable? */
    push %rax
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    lea mr_pages(%rip), %rdx
    mov %ecx, %eax
    and $1023, %eax             /* MR_PAGES */
    cmp (%rdx,%rax,8), %rcx
    jne 9f
    movups %xmm0, -24(%rsp)
    movups %xmm1, -40(%rsp)
    mov %r11, %rsi
    and $-16, %rsi
    mov %r11d, %ecx
    and $15, %ecx
    movdqa (%rsi), %xmm0
    pxor %xmm1, %xmm1
    pcmpeqb %xmm0, %xmm1
    por ones(%rip), %xmm0
    pcmpeqb slashes(%rip), %xmm0
    pmovmskb %xmm1, %eax        /* ends */
    pmovmskb %xmm0, %edx        /* '.' and '/', which differ in the last bit */
    shr %cl, %eax               /* without what lies before the path */
    shl %cl, %eax
    shr %cl, %edx
    shl %cl, %edx
    xor %ecx, %ecx              /* bit 0: the last byte before was one of them */
2:  lea (%rcx,%rdx,2), %ecx
    and %edx, %ecx              /* two side by side */
    test %eax, %eax
    jne 3f
    test %ecx, %ecx
    jne 8f
    add $16, %rsi
    test $4080, %esi            /* another page */
    je 8f
    mov %edx, %ecx
    shr $15, %ecx
    movdqa (%rsi), %xmm0
    pxor %xmm1, %xmm1
    pcmpeqb %xmm0, %xmm1
    por ones(%rip), %xmm0
    pcmpeqb slashes(%rip), %xmm0
    pmovmskb %xmm1, %eax
    pmovmskb %xmm0, %edx
    jmp 2b
3:  lea -1(%rax), %edx
    xor %eax, %edx              /* up to the end */
    test %edx, %ecx
    jne 8f
    bsf %eax, %eax
    add %rsi, %rax
    sub %r11, %rax              /* the length */
    cmp $8, %rax
    jb 8f
    mov (%r11), %rcx
    cmp $0x2f, %cl
    jne 8f
    mov mr_fence(%rip), %rsi    /* length of the directory; negative: do not judge by it */
    test %rsi, %rsi
    js 8f
    cmp %rsi, %rax
    jb 5f
    mov -8(%r11,%rsi), %rdx
    cmp mr_fence+16(%rip), %rdx
    je 7f
4:  mov mr_b(%rip), %rdx         /* links outside that lead in: C asks the kernel */
    testb $16, MR_LINKS_AT(%rdx)
    jne 8f
    movabs $0x6474732f7665642f, %rdx /* "/dev/std" */
    cmp %rdx, %rcx
    je 8f
    movabs $0x2f64662f7665642f, %rdx /* "/dev/fd/" */
    cmp %rdx, %rcx
    je 8f
    movabs $0x65732f636f72702f, %rdx /* "/proc/se" */
    cmp %rdx, %rcx
    je 8f
    movups -24(%rsp), %xmm0
    movups -40(%rsp), %xmm1
    unsave_path
    stc
    ret
    .cfi_adjust_cfa_offset 24
5:  cmp mr_fence+8(%rip), %rcx  /* shorter: it may be a directory above */
    jne 4b
    jmp 8f
7:  movups -24(%rsp), %xmm0     /* inside, it seems */
    movups -40(%rsp), %xmm1
    mov %rax, %rcx
    unsave_path
    push %rbp
    .cfi_adjust_cfa_offset 8
    mov %rsp, %rbp
    push_call
    mov %r11, %rsi
    mov %ecx, %edx
    and $-16, %rsp
    call mr_decide_inside
    jmp 6f
    .cfi_adjust_cfa_offset 16
8:  movups -24(%rsp), %xmm0
    movups -40(%rsp), %xmm1
9:  unsave_path
    jmp mr_stub
    .cfi_endproc
    .size mr_stub_path1, . - mr_stub_path1

    .globl mr_stub
    .hidden mr_stub
    .type mr_stub, @function
mr_stub:
    .cfi_startproc
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register rbp
    push_call
    and $-16, %rsp
    call mr_decide
6:  cmp $-5000, %rax            /* MR_GO */
    jne 1f
    mov -56(%rbp), %rax
    stc
    jmp 2f
1:  clc
2:  lea -48(%rbp), %rsp
    pop %rdi
    pop %rsi
    pop %rdx
    pop %r10
    pop %r8
    pop %r9
    pop %rbp
    .cfi_def_cfa rsp, 8
    ret
    .cfi_endproc
    .size mr_stub, . - mr_stub
#endif

/* s64 mr_scan(const char *path): the length, or -1 when a '/' is followed by '.' or '/'. Aligned loads of
 * sixteen bytes never reach into a page that the string does not. The vector registers are put back. */
    .globl mr_scan
    .hidden mr_scan
    .type mr_scan, @function
mr_scan:
    .cfi_startproc
    movups %xmm0, -24(%rsp)
    movups %xmm1, -40(%rsp)
    movups %xmm2, -56(%rsp)
    movups %xmm3, -72(%rsp)
    mov $0x2f2f2f2f, %eax
    movd %eax, %xmm1
    pshufd $0, %xmm1, %xmm1
    mov $0x2e2e2e2e, %eax
    movd %eax, %xmm2
    pshufd $0, %xmm2, %xmm2
    mov %edi, %ecx
    and $15, %ecx
    mov %rdi, %rsi
    and $-16, %rsi
    mov $-1, %r9d
    shl %cl, %r9d               /* bytes of the first block that belong to the string */
    xor %r8d, %r8d              /* bit 0: the byte before this block was a slash */
1:  movdqa (%rsi), %xmm0
    pxor %xmm3, %xmm3
    pcmpeqb %xmm0, %xmm3
    pmovmskb %xmm3, %r10d       /* ends */
    movdqa %xmm0, %xmm3
    pcmpeqb %xmm1, %xmm3
    pmovmskb %xmm3, %eax        /* slashes */
    pcmpeqb %xmm2, %xmm0
    pmovmskb %xmm0, %edx        /* dots */
    and %r9d, %r10d
    and %r9d, %eax
    or %eax, %edx
    lea (%r8,%rax,2), %r11d     /* behind a slash */
    mov %eax, %r8d
    shr $15, %r8d
    and %r11d, %edx
    test %r10d, %r10d
    jne 2f
    mov $-1, %r9d
    test $0xffff, %edx
    jne 3f
    add $16, %rsi
    jmp 1b
2:  bsf %r10d, %ecx
    mov $1, %eax
    shl %cl, %eax
    dec %eax                    /* bytes before the end */
    test %eax, %edx
    jne 3f
    lea (%rsi,%rcx), %rax
    sub %rdi, %rax
    jmp 4f
3:  mov $-1, %rax
4:  movups -24(%rsp), %xmm0
    movups -40(%rsp), %xmm1
    movups -56(%rsp), %xmm2
    movups -72(%rsp), %xmm3
    ret
    .cfi_endproc
    .size mr_scan, . - mr_scan
    .section .rodata
    .balign 16
ones:
    .fill 16, 1, 1
slashes:
    .fill 16, 1, 0x2f
#endif
    .section .note.GNU-stack,"",@progbits
