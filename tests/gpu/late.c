// SPDX-License-Identifier: MIT
/*
 * Loads the library named by its argument after it has started, and with it libcuda, and calls its
 * main: not even the first call into what came late may be missed.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*late_main)(int, char **);

	if (!library) {
		fprintf(stderr, "late: %s\n", argc > 1 ? dlerror() : "which library?");
		return 2;
	}
	*(void **)&late_main = dlsym(library, "main");
	return late_main ? late_main(argc - 1, argv + 1) : 2;
}
