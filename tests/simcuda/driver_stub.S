// SPDX-License-Identifier: MIT
/*
 * The shape that libcuda 550's exported functions have: a comparison with a magic number that says
 * the driver is gone, and a jump through a table to the function. stubs.inc, made from the driver's
 * own list of exported functions, holds one line `stub NAME` for each.
 */
	.macro stub name
	.text
	.balign 16
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	cmpl	$0x321cba00, simcuda_gone(%rip)
	je	1f
	jmp	*2f(%rip)
1:
	movl	$4, %eax /* CUDA_ERROR_DEINITIALIZED */
	ret
	.cfi_endproc
	.size \name, . - \name
	.section .data.rel.ro.stubs, "aw"
2:
	.quad sim_\name
	.endm

	.data
	.balign 4
simcuda_gone:
	.long 0

	.include "stubs.inc"

	.section .note.GNU-stack, "", @progbits
