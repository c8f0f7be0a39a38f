// SPDX-License-Identifier: MIT
/*
 * gostack ROUNDS: stands in for a program of Go, which looks through its stacks for the addresses
 * that its functions return to, and ends where one of them is none of its own. It has the note by
 * which such programs are known.
 */
#include <stdio.h>
#include <stdlib.h>

__asm__(".pushsection .note.go.buildid, \"a\", @note\n"
        ".long 4, 4, 4\n"
        ".ascii \"Go\\0\\0test\"\n"
        ".popsection\n");

extern const char __executable_start[], etext[];

__attribute__((noinline, noipa)) long step(long n)
{
	const char *to = __builtin_return_address(0);

	if (to < __executable_start || to >= etext) {
		fprintf(stderr, "unexpected return pc %p\n", (const void *)to);
		exit(2);
	}
	return n + 1;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 10, n = 0;

	while (n < rounds)
		n = step(n);
	printf("%ld rounds\n", n);
	return 0;
}
