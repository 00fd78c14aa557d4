/* Called by the trampolines in place of a system call instruction, with the registers set up for it and the
 * red zone already stepped over. Everything but rax, rcx and r11 comes back as it was. The C code behind it
 * is compiled without vector registers. */
#if defined(__x86_64__)
    .text
#ifndef MR_NO_STUB
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
    push %r9
    push %r8
    push %r10
    push %rdx
    push %rsi
    push %rdi
    push %rax
    mov %rsp, %rdi
    and $-16, %rsp
    call mr_dispatch
    lea -48(%rbp), %rsp
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
#endif
    .section .note.GNU-stack,"",@progbits
