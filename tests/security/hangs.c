// SPDX-License-Identifier: MIT
/*
 * A program whose kernels have names that nobody can read:
 *
 *   hangs memory FILE CALLS    they lie in FILE, of a file system that does not answer cuscope
 *   hangs page - CALLS         in a page of userfaultfd that is never served
 *   hangs pages FILE CALLS     each in another page of FILE, over and over again
 *   hangs code FILE CALLS      names are harmless, but FILE is mapped as code
 *   hangs none - CALLS         harmless
 *
 * It brings its own driver, whose functions do nothing, and prints how many calls it made.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES  (64 * 4096)
#define EXPORT __attribute__((visibility("default"), noipa))

EXPORT int cuInit(unsigned flags);
EXPORT int cuModuleGetFunction(void **function, void *module, const char *name);
EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
                          void **extra);

static volatile long made;

int cuInit(unsigned flags)
{
	made++;
	return (int)(flags * 0);
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
	made++;
	*function = module;
	return name ? 0 : 1;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
	made++;
	return function ? 0
	                : (int)(gx + gy + gz + bx + by + bz + shared + !!stream + !!params +
	                        !!extra);
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void *of_file(const char *path, int protection)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *memory = fd < 0 ? MAP_FAILED : mmap(NULL, BYTES, protection, MAP_PRIVATE, fd, 0);

	if (memory == MAP_FAILED)
		fail(path);
	return memory;
}

static void *of_nobody(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *memory = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .range = { (uintptr_t)memory, 65536 },
		                         .mode = UFFDIO_REGISTER_MODE_MISSING };

	if (fd < 0 || memory == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &range))
		fail("userfaultfd");
	return memory;
}

int main(int argc, char **argv)
{
	static char handles[64][256] __attribute__((aligned(16)));
	const char *name = "_Z8harmlessv";
	long calls = argc == 4 ? atol(argv[3]) : 0;

	if (argc != 4)
		return 2;
	if (!strcmp(argv[1], "memory") || !strcmp(argv[1], "pages"))
		name = of_file(argv[2], PROT_READ);
	else if (!strcmp(argv[1], "page"))
		name = of_nobody();
	else if (!strcmp(argv[1], "code"))
		of_file(argv[2], PROT_READ | PROT_EXEC);
	cuInit(0);
	for (long i = 0; i < calls; i++) {
		void *function;

		if (!strcmp(argv[1], "pages") && i)
			name += i % 64 ? 4096 : -63 * 4096;
		cuModuleGetFunction(&function, handles[i % 64], name);
		cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
	}
	printf("%ld\n", made);
	fflush(stdout);
	if (!strcmp(argv[1], "page"))
		sleep(3); /* its end lets go who reads it */
	else if (!strcmp(argv[1], "pages"))
		sleep(8);
	return 0;
}
