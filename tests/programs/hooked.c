// SPDX-License-Identifier: MIT
/* hooked [MORE]: calls what libhooked.so.1 has, as often as hooks of one's own are tested with. */
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "programs/hooklib.h"

int main(int argc, char **argv)
{
	struct hooked_inner inner = { .deep = -3 };
	struct hooked_request request = { .question = 21,
		                          .inner = &inner,
		                          .label = "label\033[2J" };
	volatile long sum = 0;
	jmp_buf to;

	for (size_t i = 0; i < 4; i++)
		sum += ncclAllReduce(&inner, &request, 10 + i, (int)i * 2, 1, &to, (void *)0x77);
	sum += hooked_fill(&request, "a name\033[31m");
	sum += hooked_recurse(3);
	for (int i = 0; i < 3; i++) {
		if (!setjmp(to))
			hooked_jump(to);
	}
	for (int i = 1; i < 4; i++)
		hooked_mark(-i);
	for (long i = 0; argc > 1 && i < atol(argv[1]); i++)
		sum += hooked_recurse(0);
	printf("%ld\n", sum);
	return 0;
}
