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
	movaps	%xmm0, FRAME_VECTOR(%rsp)
	movaps	%xmm1, FRAME_VECTOR + 16(%rsp)
	movaps	%xmm2, FRAME_VECTOR + 32(%rsp)
	movaps	%xmm3, FRAME_VECTOR + 48(%rsp)
	movaps	%xmm4, FRAME_VECTOR + 64(%rsp)
	movaps	%xmm5, FRAME_VECTOR + 80(%rsp)
	movaps	%xmm6, FRAME_VECTOR + 96(%rsp)
	movaps	%xmm7, FRAME_VECTOR + 112(%rsp)
	movq	%r11, FRAME_SLOT(%rsp)
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

	/* As many as there can be, where their number is unknown. */
5:	subq	$8 * THUNK_STACK_MOST, %rsp
	.set	word, 0
	.rept	THUNK_STACK_MOST / 4
	movups	16 + 8 * word(%rbp), %xmm8
	movups	32 + 8 * word(%rbp), %xmm9
	movaps	%xmm8, 8 * word(%rsp)
	movaps	%xmm9, 16 + 8 * word(%rsp)
	.set	word, word + 4
	.endr
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
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
probe_thunks_end:
	.size	thunk_common, . - thunk_common
	.cfi_endproc

#endif

	.section .note.GNU-stack, "", %progbits
