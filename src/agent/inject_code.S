/* SPDX-License-Identifier: MIT */
/* See inject_code.h. rbx: area, r12: its size, rbp: frame, r14: step, r15: its `loads`. */
#define __ASSEMBLY__
#include "agent/inject_code.h"
#ifdef __CET__
#include <cet.h> /* the note that a linker wants of every object */
#endif

	.section .rodata
	.balign 16
	.globl inject_code, inject_code_end, inject_code_mapped
	.globl inject_code_stepped, inject_code_step, inject_code_length

#ifdef __x86_64__

#define NR_mmap           9
#define NR_munmap         11
#define NR_rt_sigaction   13
#define NR_rt_sigprocmask 14
#define NR_rt_sigpending  127

/* Argument i of the step; the kernel destroys rax, rcx and r11 only. */
.macro argument i, register
	mov	STEP_ARGS + 8 * \i(%r14), \register
	bt	$\i, %r15
	jnc	1f
	mov	(\register), \register
1:
.endm

inject_code:
	syscall				/* rt_sigprocmask */
	mov	$NR_mmap, %eax		/* (0, r12, READ | WRITE, PRIVATE | ANONYMOUS, -1, 0) */
	xor	%edi, %edi
	mov	%r12, %rsi
	mov	$3, %edx
	mov	$0x22, %r10d
	or	$-1, %r8
	xor	%r9d, %r9d
	syscall
inject_code_mapped:
	mov	%rax, %rbx
	cmp	$-4096, %rax
	ja	.Lrestore
	mov	AREA_FIRST(%rbx), %r14
	test	%r14, %r14
	jz	.Lunmap

	/* All vector registers: loaders and constructors use what the processor has. */
	mov	%rsp, %rbp
	lea	(%rbx, %r12), %rsp
	cld
	mov	AREA_STATE(%rbx), %rdi
	or	$-1, %eax
	or	$-1, %edx
	cmpq	$0, AREA_XSAVE(%rbx)
	je	1f
	xsave64	(%rdi)
	jmp	2f
1:	fxsave64 (%rdi)
2:	call	*AREA_ERRNO(%rbx)
	mov	%rax, AREA_ERRNO_ADDRESS(%rbx)
	mov	(%rax), %eax
	mov	%rax, AREA_ERRNO_VALUE(%rbx)

inject_code_step:
.Lstep:
	mov	STEP_LOADS(%r14), %r15
	argument 0, %rdi
	argument 1, %rsi
	argument 2, %rdx
	argument 3, %r10
	argument 4, %r8
	argument 5, %r9
	mov	STEP_CODE(%r14), %rax
	bt	$LOADS_CODE, %r15
	jnc	1f
	mov	(%rax), %rax
1:	test	%rax, %rax
	jz	.Lfailed
	cmp	$4096, %rax
	jae	2f
	syscall
inject_code_stepped:
	jmp	3f
2:	mov	%r10, %rcx
	call	*%rax
3:	mov	%rax, STEP_RESULT(%r14)
	mov	STEP_FAILS(%r14), %ecx
	cmp	$FAILS_ERROR, %ecx
	jb	.Lnext			/* FAILS_NEVER */
	ja	4f
	cmp	$-4096, %rax
	ja	.Lfailed
	jmp	.Lnext
4:	test	%rax, %rax		/* FAILS_ZERO */
	jz	.Lfailed
.Lnext:
	add	$STEP_BYTES, %r14
	jmp	.Lstep
.Lfailed:
	mov	STEP_OTHERWISE(%r14), %r14
	test	%r14, %r14
	jnz	.Lstep

	mov	AREA_ERRNO_ADDRESS(%rbx), %rax
	mov	AREA_ERRNO_VALUE(%rbx), %ecx
	mov	%ecx, (%rax)
	mov	AREA_STATE(%rbx), %rdi
	or	$-1, %eax
	or	$-1, %edx
	cmpq	$0, AREA_XSAVE(%rbx)
	je	1f
	xrstor64 (%rdi)
	jmp	2f
1:	fxrstor64 (%rdi)

	/* Signals that came meanwhile: does the handler of one end the interrupted call? */
2:	cmpq	$INTERRUPTS_NEVER, FRAME_INTERRUPTS(%rbp)
	je	.Lback
	mov	$NR_rt_sigpending, %eax
	lea	AREA_PENDING(%rbx), %rdi
	mov	$8, %esi
	syscall
	mov	FRAME_MASK(%rbp), %r14
	not	%r14
	and	AREA_PENDING(%rbx), %r14
.Lsignal:
	bsf	%r14, %r15
	jz	.Lback
	btr	%r15, %r14
	mov	$NR_rt_sigaction, %eax	/* (r15 + 1, NULL, action, 8) */
	lea	1(%r15), %edi
	xor	%esi, %esi
	lea	AREA_ACTION(%rbx), %rdx
	mov	$8, %r10d
	syscall
	cmpq	$1, AREA_ACTION(%rbx)	/* SIG_DFL, SIG_IGN */
	jbe	.Lsignal
	cmpq	$INTERRUPTS_ALWAYS, FRAME_INTERRUPTS(%rbp)
	je	1f
	testl	$0x10000000, AREA_ACTION + 8(%rbx) /* SA_RESTART */
	jnz	.Lsignal
1:	movq	$-4, FRAME_RAX(%rbp)	/* EINTR, behind the call */
	addq	$2, FRAME_RIP(%rbp)
.Lback:
	mov	%rbp, %rsp

.Lunmap:
	mov	$NR_munmap, %eax
	mov	%rbx, %rdi
	mov	%r12, %rsi
	syscall
.Lrestore:
	mov	$NR_rt_sigprocmask, %eax /* (SIG_SETMASK, &frame->mask, NULL, 8) */
	mov	$2, %edi
	lea	FRAME_MASK(%rsp), %rsi
	xor	%edx, %edx
	mov	$8, %r10d
	syscall
	lea	FRAME_FLAGS(%rsp), %rsp
	popfq
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	pop	%r11
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rax
	pop	%rdx
	pop	%rsi
	pop	%rdi
	pop	%rcx
	pop	%rsp
	jmp	*%rcx			/* no ret: shadow stacks know nothing of it */

inject_code_length:
	xor	%eax, %eax
1:	cmpb	$0, (%rdi, %rax)
	je	2f
	inc	%eax
	cmp	$700, %eax		/* as much as a struct err holds */
	jb	1b
2:	ret

#else

inject_code:
inject_code_mapped:
inject_code_stepped:
inject_code_step:
inject_code_length:

#endif

inject_code_end:
	.section .note.GNU-stack, "", %progbits
