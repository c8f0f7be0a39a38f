/* SPDX-License-Identifier: MIT */
/* What goes into pictures and pages as it is: style and script, each ended by a NUL. */
#ifdef __CET__
#include <cet.h> /* the note that a linker wants of every object */
#endif
	.section .rodata
	.globl flame_style, flame_script, flame_script_hash
flame_style:
	.incbin "src/profile/flame.css"
	.byte 0
flame_script:
	.incbin "src/profile/flame.js"
	.byte 0
flame_script_hash:
	.incbin "flame.js.hash"
	.byte 0
	.section .note.GNU-stack, "", %progbits
