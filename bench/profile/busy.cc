// SPDX-License-Identifier: MIT
/*
 * A busy thread of C++ for bench/profile/run: sorts with a comparator, under some 20 functions.
 * Every 20 ms it says how far it is: the time, its iterations and how long it has waited for a CPU.
 */
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <vector>

static uint64_t now_ns()
{
	timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static unsigned long long waited_ns()
{
	unsigned long long ran = 0, waited = 0;
	FILE *file = fopen("/proc/self/schedstat", "re");

	if (file && fscanf(file, "%llu %llu", &ran, &waited) != 2)
		waited = 0;
	if (file)
		fclose(file);
	return waited;
}

__attribute__((noinline)) static unsigned sort_some(std::vector<unsigned> &values)
{
	unsigned seed = 1;

	for (auto &value : values)
		value = seed = seed * 1664525 + 1013904223;
	std::sort(values.begin(), values.end(),
	          [](unsigned a, unsigned b) { return a % 8191 < b % 8191; });
	return values[values.size() / 2];
}

__attribute__((noinline)) static unsigned dive(unsigned depth,
                                               const std::function<unsigned()> &work)
{
	unsigned result = depth ? dive(depth - 1, work) : work();

	__asm__ volatile("" : "+r"(result)); /* no tail call */
	return result;
}

int main()
{
	std::vector<unsigned> values(200);
	uint64_t next = 0, now;

	for (uint64_t count = 0;; count++) {
		dive(16, [&] { return sort_some(values); });
		now = now_ns();
		if (now < next)
			continue;
		printf("%llu %llu %llu\n", (unsigned long long)now, (unsigned long long)count,
		       waited_ns());
		fflush(stdout);
		next = now + 20000000;
	}
}
