/* SPDX-License-Identifier: MIT */
/* The agent's library, as agent_library.c hands it out; AGENT_LIBRARY is its path. */
#ifdef __CET__
#include <cet.h> /* the note that a linker wants of every object */
#endif
	.section .rodata
	.globl embedded_agent, embedded_agent_end
	.balign 16
embedded_agent:
	.incbin AGENT_LIBRARY
embedded_agent_end:
	.section .note.GNU-stack, "", %progbits
