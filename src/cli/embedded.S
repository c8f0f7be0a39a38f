/* SPDX-License-Identifier: MIT */
/* The completions of the shells, each ended by a NUL. */
#ifdef __CET__
#include <cet.h> /* the note that a linker wants of every object */
#endif
	.section .rodata
	.globl completion_bash, completion_zsh, completion_fish
completion_bash:
	.incbin "src/cli/completion/cuscope.bash"
	.byte 0
completion_zsh:
	.incbin "src/cli/completion/cuscope.zsh"
	.byte 0
completion_fish:
	.incbin "src/cli/completion/cuscope.fish"
	.byte 0
	.section .note.GNU-stack, "", %progbits
