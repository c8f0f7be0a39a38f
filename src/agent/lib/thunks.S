/* SPDX-License-Identifier: MIT */
/* See thunks.h. */
#include "agent/lib/thunks.h"
#ifdef __CET__
#include <cet.h> /* the note that a linker wants of every object */
#endif

#ifdef __x86_64__

	.text
	.balign	64
	.globl	probe_thunks, probe_thunks_end
	.hidden	probe_thunks, probe_thunks_end
	.type	probe_thunks, @function
	.type	thunk_common, @function
	.cfi_startproc

	.hidden	probe_slots, probe_gate, probe_own

probe_thunks:
	.set	slot, 0
	.rept	THUNKS
	endbr64
	movl	$slot, %r11d		/* r11 is anybody's between functions */
	jmp	thunk_common
	.balign	THUNK_BYTES, 0xcc
	.set	slot, slot + 1
	.endr
	.size	probe_thunks, . - probe_thunks

/* As many words of the stack as there can be, where their number is unknown. */
	.macro	COPY_MOST
	subq	$8 * THUNK_STACK_MOST, %rsp
	.set	word, 0
	.rept	THUNK_STACK_MOST / 4
	movups	16 + 8 * word(%rbp), %xmm8
	movups	32 + 8 * word(%rbp), %xmm9
	movaps	%xmm8, 8 * word(%rsp)
	movaps	%xmm9, 16 + 8 * word(%rsp)
	.set	word, word + 4
	.endr
	.endm

/*
 * All that is saved has its place below the frame pointer, by which it is found when the original
 * has returned: so no other register has to be kept.
 */
thunk_common:
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	subq	$FRAME_BYTES, %rsp	/* now a multiple of 16 */
	movq	%rdi, (%rsp)
	movq	%rsi, 8(%rsp)
	movq	%rdx, 16(%rsp)
	movq	%rcx, 24(%rsp)
	movq	%r8, 32(%rsp)
	movq	%r9, 40(%rsp)
	movq	%rax, 48(%rsp)
	movq	%r10, 56(%rsp)
	movq	%r11, FRAME_SLOT(%rsp)
	leaq	probe_slots(%rip), %r10
	shlq	$SLOT_SHIFT, %r11
	addq	%r11, %r10
	cmpl	$THUNK_COUNTS, SLOT_DOES(%r10)
	je	count
ask:	movaps	%xmm0, FRAME_VECTOR(%rsp)
	movaps	%xmm1, FRAME_VECTOR + 16(%rsp)
	movaps	%xmm2, FRAME_VECTOR + 32(%rsp)
	movaps	%xmm3, FRAME_VECTOR + 48(%rsp)
	movaps	%xmm4, FRAME_VECTOR + 64(%rsp)
	movaps	%xmm5, FRAME_VECTOR + 80(%rsp)
	movaps	%xmm6, FRAME_VECTOR + 96(%rsp)
	movaps	%xmm7, FRAME_VECTOR + 112(%rsp)
	movq	%rsp, %rdi
	call	probe_enter
	movq	%rax, %r11		/* whether to come back */
	movq	(%rsp), %rdi
	movq	8(%rsp), %rsi
	movq	16(%rsp), %rdx
	movq	24(%rsp), %rcx
	movq	32(%rsp), %r8
	movq	40(%rsp), %r9
	movq	48(%rsp), %rax
	movq	56(%rsp), %r10
	movaps	FRAME_VECTOR(%rsp), %xmm0
	movaps	FRAME_VECTOR + 16(%rsp), %xmm1
	movaps	FRAME_VECTOR + 32(%rsp), %xmm2
	movaps	FRAME_VECTOR + 48(%rsp), %xmm3
	movaps	FRAME_VECTOR + 64(%rsp), %xmm4
	movaps	FRAME_VECTOR + 80(%rsp), %xmm5
	movaps	FRAME_VECTOR + 96(%rsp), %xmm6
	movaps	FRAME_VECTOR + 112(%rsp), %xmm7
	testq	%r11, %r11
	jnz	1f

	/* As if nothing had been there: the original returns to the caller. */
	movq	FRAME_ORIGINAL(%rsp), %r11
	.cfi_remember_state
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	jmpq	*%r11
	.cfi_restore_state

	/*
	 * Two words at a time, the last ones first; one more place where their number is odd. No
	 * argument is in xmm8 and above, and a function may change them.
	 */
1:	movq	FRAME_WORDS(%rsp), %r11
	testq	%r11, %r11
	jz	4f
	cmpq	$THUNK_STACK_MOST, %r11
	je	5f
	testb	$1, %r11b
	jz	3f
	subq	$8, %rsp
	pushq	8(%rbp, %r11, 8)
	decq	%r11
	jz	4f
3:	subq	$16, %rsp
	movups	(%rbp, %r11, 8), %xmm8
	movaps	%xmm8, (%rsp)
	subq	$2, %r11
	jnz	3b
	jmp	4f

5:	COPY_MOST
4:	call	*FRAME_ORIGINAL - FRAME_BYTES(%rbp)
	leaq	-FRAME_BYTES(%rbp), %rsp
	movq	%rax, 48(%rsp)
	movq	%rdx, 16(%rsp)
	movaps	%xmm0, FRAME_VECTOR(%rsp)
	movaps	%xmm1, FRAME_VECTOR + 16(%rsp)
	movq	%rsp, %rdi
	call	probe_exit
	movq	48(%rsp), %rax
	movq	16(%rsp), %rdx
	movaps	FRAME_VECTOR(%rsp), %xmm0
	movaps	FRAME_VECTOR + 16(%rsp), %xmm1
	.cfi_remember_state
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_restore_state

	/*
	 * r10: the slot. What is not there probe_enter makes: the thread's state, its share of the
	 * counts, and that the words of the stack were seen to be there. In a child of fork, whose
	 * gate is all zeroes, it counts the call as a child's.
	 */
count:	movq	SLOT_ORIGINAL(%r10), %r11
	movq	%r11, FRAME_ORIGINAL(%rsp)
	movq	probe_gate(%rip), %r10
	cmpq	$0, GATE_COUNTS(%r10)
	je	ask
	leaq	probe_own@tlsdesc(%rip), %rax
	call	*probe_own@tlscall(%rax)
	movq	%fs:(%rax), %rax
	testq	%rax, %rax
	jz	ask
	movl	GATE_PID(%r10), %r11d
	cmpl	%r11d, THREAD_PID(%rax)
	jne	ask
	cmpq	$0, THREAD_COUNTS(%rax)
	je	ask
	movl	%ebp, %r11d		/* do they end in the page that they begin in? */
	andl	$4095, %r11d
	cmpl	$4096 - 16 - 8 * THUNK_STACK_MOST, %r11d
	jbe	6f
	cmpq	%rbp, THREAD_LOW(%rax)
	ja	ask
	leaq	16 + 8 * THUNK_STACK_MOST(%rbp), %r11
	cmpq	THREAD_HIGH(%rax), %r11
	ja	ask

	/* A call around it, if its frame lies above, and is not one that was left by a longjmp. */
6:	movq	%rax, FRAME_STATE(%rsp)
	xorl	%r11d, %r11d
	movq	THREAD_COUNTING(%rax), %r10
	cmpq	%rbp, %r10
	cmovbe	%r11, %r10
	movq	%r10, FRAME_SESSION(%rsp)
	movq	%rbp, THREAD_COUNTING(%rax)
	movq	48(%rsp), %rax
	movq	56(%rsp), %r10
	COPY_MOST
	call	*FRAME_ORIGINAL - FRAME_BYTES(%rbp)
	leaq	-FRAME_BYTES(%rbp), %rsp
	movq	FRAME_STATE(%rsp), %r11
	movq	FRAME_SESSION(%rsp), %r10
	movq	THREAD_COUNTING(%r11), %rcx
	movq	%r10, THREAD_COUNTING(%r11)
	testl	%eax, %eax
	jnz	8f

	/* One instruction, as a signal's handler may count too. The memory is always mapped. */
7:	movq	THREAD_COUNTS(%r11), %rcx
	movq	FRAME_SLOT(%rsp), %rsi
	cmpl	$0, THREAD_SHARES(%r11)
	jne	1f
	incq	(%rcx, %rsi, 8)
	jmp	2f
1:	lock incq (%rcx, %rsi, 8)
2:	.cfi_remember_state
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_restore_state

8:	cmpl	$THUNK_NOT_READY, %eax
	je	7b
	movq	%rax, 48(%rsp)
	movq	%rcx, FRAME_WORDS(%rsp)
	movq	%rdx, FRAME_MARK(%rsp)
	movaps	%xmm0, FRAME_VECTOR(%rsp)
	movaps	%xmm1, FRAME_VECTOR + 16(%rsp)
	movq	%rsp, %rdi
	call	probe_count_failed
	movq	48(%rsp), %rax
	movq	FRAME_MARK(%rsp), %rdx
	movaps	FRAME_VECTOR(%rsp), %xmm0
	movaps	FRAME_VECTOR + 16(%rsp), %xmm1
	.cfi_remember_state
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_restore_state
probe_thunks_end:
	.size	thunk_common, . - thunk_common
	.cfi_endproc

#endif

	.section .note.GNU-stack, "", %progbits
