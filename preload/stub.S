/* Called by the trampolines in place of a system call instruction, with the registers set up for it and the
 * red zone already stepped over. Everything but rax, rcx and r11 comes back as it was. The C code behind it
 * is compiled without vector registers. */
#if defined(__x86_64__)
    .text
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
    .section .note.GNU-stack,"",@progbits
