/* SPDX-License-Identifier: MIT */
/* void call_with_registers(struct registers *): see target.c. */
#define GENERAL       40
#define VECTOR        120
#define GENERAL_AFTER 632
#define VECTOR_AFTER  720

#ifdef __x86_64__
	.text
	.globl	call_with_registers
call_with_registers:
	.cfi_startproc /* else nobody knows whose locks it may have */
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	push	%rdi
	.cfi_adjust_cfa_offset 56
	.cfi_offset rbp, -24
	.altmacro
	.macro	load i
	vmovdqu	VECTOR + 32 * \i(%rdi), %ymm\i
	.endm
	.macro	store i
	vmovdqu	%ymm\i, VECTOR_AFTER + 32 * \i(%rcx)
	.endm
	.set	i, 0
	.rept	16
	load	%i
	.set	i, i + 1
	.endr
	mov	GENERAL(%rdi), %rbx
	mov	GENERAL + 8(%rdi), %rbp
	mov	GENERAL + 16(%rdi), %r8
	mov	GENERAL + 24(%rdi), %r9
	mov	GENERAL + 32(%rdi), %r10
	mov	GENERAL + 40(%rdi), %r12
	mov	GENERAL + 48(%rdi), %r13
	mov	GENERAL + 56(%rdi), %r14
	mov	GENERAL + 64(%rdi), %r15
	mov	0(%rdi), %rax
	mov	16(%rdi), %rsi
	mov	24(%rdi), %rdx
	pushq	GENERAL + 72(%rdi)
	popfq
	mov	8(%rdi), %rdi
	syscall
	pushfq
	cld
	pop	%r11
	mov	(%rsp), %rcx
	mov	%rbx, GENERAL_AFTER(%rcx)
	mov	%rbp, GENERAL_AFTER + 8(%rcx)
	mov	%r8, GENERAL_AFTER + 16(%rcx)
	mov	%r9, GENERAL_AFTER + 24(%rcx)
	mov	%r10, GENERAL_AFTER + 32(%rcx)
	mov	%r12, GENERAL_AFTER + 40(%rcx)
	mov	%r13, GENERAL_AFTER + 48(%rcx)
	mov	%r14, GENERAL_AFTER + 56(%rcx)
	mov	%r15, GENERAL_AFTER + 64(%rcx)
	mov	%r11, GENERAL_AFTER + 72(%rcx)
	mov	%rax, GENERAL_AFTER + 80(%rcx)
	.set	i, 0
	.rept	16
	store	%i
	.set	i, i + 1
	.endr
	vzeroupper
	pop	%rdi
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	.cfi_adjust_cfa_offset -56
	.cfi_restore rbp
	ret
	.cfi_endproc
#endif
	.section .note.GNU-stack, "", %progbits
