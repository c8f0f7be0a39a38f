/* SPDX-License-Identifier: MIT */
/* Scripts and style of the page, of the live ones, of a profile's and of a picture's, as build/page has them. Each has an end, and a NUL behind it. */
#ifdef __CET__
#include <cet.h> /* the note that a linker wants of every object */
#endif
	.section .rodata
	.globl report_page_script, report_page_script_end, report_page_script_hash
	.globl report_live_script, report_live_script_end, report_live_script_hash
	.globl report_agent_script, report_agent_script_end, report_agent_script_hash
	.globl report_profile_script, report_profile_script_end, report_profile_script_hash
	.globl report_flame_script, report_flame_style
	.globl report_page_style, report_page_style_end, report_page_style_hash
report_page_script:
	.incbin "page.js"
report_page_script_end:
	.byte 0
report_page_script_hash:
	.incbin "page.js.hash"
	.byte 0
report_live_script:
	.incbin "live.js"
report_live_script_end:
	.byte 0
report_live_script_hash:
	.incbin "live.js.hash"
	.byte 0
report_agent_script:
	.incbin "agent.js"
report_agent_script_end:
	.byte 0
report_agent_script_hash:
	.incbin "agent.js.hash"
	.byte 0
report_profile_script:
	.incbin "profile.js"
report_profile_script_end:
	.byte 0
report_profile_script_hash:
	.incbin "profile.js.hash"
	.byte 0
report_flame_script:
	.incbin "flame.js"
	.byte 0
report_flame_style:
	.incbin "src/page/flame/flame.css"
	.byte 0
report_page_style:
	.incbin "page.css"
report_page_style_end:
	.byte 0
report_page_style_hash:
	.incbin "page.css.hash"
	.byte 0
	.section .note.GNU-stack, "", %progbits
