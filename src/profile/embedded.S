/* SPDX-License-Identifier: MIT */
/* What goes into pictures and pages as it is: style and script, each ended by a NUL. */
#ifdef __CET__
#include <cet.h> /* the note that a linker wants of every object */
#endif
	.section .rodata
	.globl flame_style, flame_script, page_style, page_script
flame_style:
	.incbin "src/profile/flame.css"
	.byte 0
flame_script:
	.incbin "src/profile/flame.js"
	.byte 0
page_style:
	.incbin "src/profile/page.css"
	.byte 0
page_script:
	.incbin "src/profile/page.js"
	.byte 0
	.section .note.GNU-stack, "", %progbits
