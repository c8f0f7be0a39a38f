// SPDX-License-Identifier: MIT
/*
 * CUDA 13's launch from a host stub: a function that does nothing but jump to cudaLaunchKernel, with
 * all arguments where they were. The instructions are those of the real libcudart 13.0.
 */
	.macro tail name, target
	.text
	.balign 16
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
#if defined(__x86_64__)
	push	%rbp
	.cfi_adjust_cfa_offset 8
	mov	%rsp, %rbp
	pop	%rbp
	.cfi_adjust_cfa_offset -8
	jmp	\target
#elif defined(__aarch64__)
	b	\target
#endif
	.cfi_endproc
	.size \name, . - \name
	.endm

	tail __cudaLaunchKernel, cudaLaunchKernel
	tail __cudaLaunchKernel_ptsz, cudaLaunchKernel_ptsz

	.section .note.GNU-stack, "", %progbits
