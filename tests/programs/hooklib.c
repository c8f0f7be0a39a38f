// SPDX-License-Identifier: MIT
/*
 * libhooked.so.1: functions of every shape that hooks of one's own are for, with names as NCCL has
 * them. Nothing here is CUDA.
 */
#include <setjmp.h>
#include <stdint.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "programs/hooklib.h"

/* Types are numbered as ncclDataType_t is. */
int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, void *comm,
                  void *stream)
{
	usleep(200);
	return count == 13 ? 3 : 0;
}

long hooked_fill(struct hooked_request *request, const char *name)
{
	request->answer = 2 * request->question;
	request->inner->deep = -7;
	return (long)strlen(name) - 100;
}

int hooked_recurse(int depth)
{
	return depth ? 1 + hooked_recurse(depth - 1) : 0;
}

void hooked_jump(void *to)
{
	longjmp(to, 1);
}

/* A marker (USDT), written by hand: what <sys/sdt.h> makes of DTRACE_PROBE2(hooked, step, n, n *
 * n). */
void hooked_mark(int n)
{
#ifdef __x86_64__
	__asm__ volatile("990: nop\n"
	                 ".pushsection .note.stapsdt,\"\",\"note\"\n"
	                 ".balign 4\n"
	                 ".4byte 992f-991f, 994f-993f, 3\n"
	                 "991: .asciz \"stapsdt\"\n"
	                 "992: .balign 4\n"
	                 "993: .8byte 990b\n"
	                 ".8byte _.stapsdt.base\n"
	                 ".8byte 0\n"
	                 ".asciz \"hooked\"\n"
	                 ".asciz \"step\"\n"
	                 ".asciz \"-4@%%edi 4@%%esi 8@$-5\"\n"
	                 "994: .balign 4\n"
	                 ".popsection\n"
	                 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
	                 ".weak _.stapsdt.base\n"
	                 ".hidden _.stapsdt.base\n"
	                 "_.stapsdt.base: .space 1\n"
	                 ".size _.stapsdt.base, 1\n"
	                 ".popsection\n"
	                 :
	                 : "D"(n), "S"(n * n));
#endif
}

/* As a compiler calls what it moves out of a function: jumped to, and never to be hooked. */
__asm__(".pushsection .text\n"
        ".type hooked_mark.cold, %function\n"
        "hooked_mark.cold: ret\n"
        ".size hooked_mark.cold, . - hooked_mark.cold\n"
        ".globl hooked_mark.cold.1\n"
        ".type hooked_mark.cold.1, %function\n"
        "hooked_mark.cold.1: ret\n"
        ".size hooked_mark.cold.1, . - hooked_mark.cold.1\n"
        ".popsection\n");
