/* SPDX-License-Identifier: MIT */
/*
 * A library that looks like a CUDA driver library to a tracer and does nothing: cuInit and
 * cuLaunchKernel, so that it is known for one, a function of each shape that entries have in real
 * ones, and as many others as make the library as large as libcudart and libcuda together.
 *
 *   cuBenchPush    push; mov           libcudart 13, libcuda 580: the kernel emulates the push
 *   cuBenchEndbr   endbr64; push       builds with control-flow protection: endbr64 is single-stepped
 *   cuBenchStub    cmpl mem; je; jmp   libcuda 550: a stub, single-stepped at its symbol
 *
 * cuBenchPaced is another push, so that its calls are told from those of cuBenchPush.
 */
#ifdef __x86_64__

	.macro	function name
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.endm

	.macro	returns_zero name
	pop	%rbp
	xor	%eax, %eax
	ret
	.size	\name, . - \name
	.endm

	.macro	pushes name
	function \name
	push	%rbp
	mov	%rsp, %rbp
	returns_zero \name
	.endm

	.altmacro
	.macro	filler number
	pushes	cuFiller\number
	.endm

	.data
	.p2align 2
traced:	.long	0

	.text
	pushes	cuInit
	pushes	cuLaunchKernel
	pushes	cuBenchPush
	pushes	cuBenchPaced

	function cuBenchEndbr
	endbr64
	push	%rbp
	mov	%rsp, %rbp
	returns_zero cuBenchEndbr

	function cuBenchStub
	cmpl	$0x321cba00, traced(%rip)
	je	1f
	push	%rbp
	mov	%rsp, %rbp
	returns_zero cuBenchStub
1:	ud2

	.set	number, 1000
	.rept	1095
	filler	%number
	.set	number, number + 1
	.endr

#else
#error "the entry shapes are those of x86-64 libraries"
#endif

	.section .note.GNU-stack, "", @progbits
