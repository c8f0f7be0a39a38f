// SPDX-License-Identifier: MIT
/*
 * unloads ROUNDS CALLS: loads the driver's library, makes CALLS calls, one each two milliseconds,
 * unloads it, and all that again. In the first round it waits where CUDA works.
 */
#include <dlfcn.h>
#include <unistd.h>

#include "sample.h"

/* Not by DRIVER, which remembers the function of the first library. */
#define CALL(fn, ...)                                                                              \
	do {                                                                                       \
		count("calls", 1, #fn);                                                            \
		sample_check(#fn, ((__typeof__(&fn))sample_symbol(driver, #fn))(__VA_ARGS__), 0,   \
		             NULL);                                                                \
	} while (0)

int main(int argc, char **argv)
{
	long rounds = sample_number(argc, argv, 1, 3), calls = sample_number(argc, argv, 2, 100);
	int version;

	for (long round = 0; round < rounds; round++) {
		driver = sample_open("libcuda.so.1");
		CALL(cuInit, 0);
		if (!round)
			sample_wait();
		for (long i = 0; i < calls; i++) {
			CALL(cuDriverGetVersion, &version);
			usleep(2000);
		}
		if (dlclose(driver))
			sample_fail("dlclose: %s", dlerror());
	}
	return sample_end();
}
