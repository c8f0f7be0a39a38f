/* SPDX-License-Identifier: MIT */
/* The program that calls NVML, as it is run. */
#ifdef __CET__
#include <cet.h> /* the note that a linker wants of every object */
#endif
	.section .rodata
	.balign 16
	.globl embedded_nvml, embedded_nvml_end
embedded_nvml:
	.incbin NVML_PROGRAM
embedded_nvml_end:
	.section .note.GNU-stack, "", %progbits
