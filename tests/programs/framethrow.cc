// SPDX-License-Identifier: MIT
/*
 * Throws an exception through eight frames, over and over: what runs then is mostly the unwinder of
 * libgcc. Prints "ready"; goes on until standard input ends.
 */
#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <unistd.h>

static std::atomic<bool> over;

extern "C" __attribute__((noipa)) void thrower(int depth)
{
	if (depth > 1)
		thrower(depth - 1);
	else
		throw std::runtime_error("thrown");
	asm volatile("" ::: "memory");
}

extern "C" __attribute__((noipa)) void catcher()
{
	while (!over) {
		try {
			thrower(8);
		} catch (const std::runtime_error &) {
		}
	}
}

int main()
{
	std::thread([] {
		char byte;

		while (read(STDIN_FILENO, &byte, 1) > 0)
			;
		over = true;
	}).detach();
	std::puts("ready");
	std::fflush(stdout);
	catcher();
	asm volatile("" ::: "memory");
	return 0;
}
