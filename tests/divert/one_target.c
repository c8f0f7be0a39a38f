// SPDX-License-Identifier: MIT
#include "one_target.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/elf_file.h"
#include "probe/maps.h"
#include "probe/placement.h"

#define FUNCTION "cuDriverGetVersion"
#define AREA     (16ull << 20) /* below the function */

void one_target_fail(const char *what, const char *why)
{
	printf("failed: %s: %s\n", what, why);
	exit(1);
}

static void open_library(struct one_target *target)
{
	const struct emulation emulation = { .nop5 = false };
	const struct elf_function *functions;
	struct placement placement;
	struct elf_file *file;
	struct err err;
	struct stat st;
	size_t n;

	target->module.path = target->library;
	target->module.fd = open(target->library, O_RDONLY | O_CLOEXEC);
	if (target->module.fd < 0 || fstat(target->module.fd, &st) ||
	    elf_file_open(target->module.fd, target->library, ELF_WHOLE, &file, &err))
		one_target_fail(target->library, "no such library");
	target->module.inode = st.st_ino;
	n = elf_file_functions(file, &functions);
	for (size_t i = 0; i < n; i++) {
		size_t len = 4096;
		const uint8_t *code = elf_file_bytes(file, functions[i].offset, &len);

		if (strcmp(functions[i].name, FUNCTION) != 0)
			continue;
		placement_choose(code, len, functions[i].size, ABI_X86_64, &emulation, &placement);
		memcpy(target->file, code, sizeof(target->file));
		target->function = (struct divert_function){ .address = functions[i].address,
			                                     .offset = functions[i].offset,
			                                     .size = functions[i].size,
			                                     .probe = placement.skip };
	}
	elf_file_free(file);
}

static int find_device(const struct mapping *mapping, void *data)
{
	struct divert_module *module = data;

	if (mapping->inode != module->inode)
		return 0;
	module->dev = mapping->dev;
	return 1;
}

static _Noreturn void run(struct one_target *target, void (*body)(struct one_shared *))
{
	void *handle = dlopen(target->library, RTLD_NOW);
	void *function = handle ? dlsym(handle, FUNCTION) : NULL;
	struct one_shared *shared = target->shared;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!function)
		_exit(2);
	memcpy(&shared->function, &function, sizeof(function));
	shared->area = ((uint64_t)(uintptr_t)function - AREA) & ~4095ull;
	if (mmap((void *)(uintptr_t)shared->area, 4096, PROT_READ | PROT_EXEC,
	         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
		_exit(2);
	shared->ready = 1;
	if (body)
		body(shared);
	for (;;)
		pause();
}

void one_target_start(struct one_target *target, const char *library,
                      void (*body)(struct one_shared *))
{
	one_target_start_as(target, library, NULL, body);
}

void one_target_start_as(struct one_target *target, const char *library,
                         void (*first)(struct one_shared *), void (*body)(struct one_shared *))
{
	*target = (struct one_target){ .library = library };
	open_library(target);
	target->shared = mmap(NULL, sizeof(*target->shared), PROT_READ | PROT_WRITE | PROT_EXEC,
	                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	target->pid = fork();
	if (target->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (first)
			first(target->shared);
		run(target, body);
	}
	while (!target->shared->ready && !waitpid(target->pid, NULL, WNOHANG))
		usleep(1000);
	if (!target->shared->ready)
		one_target_fail("the target", "it ended");
	if (target->shared->pid)
		target->pid = target->shared->pid;
	target->area = target->shared->area;
	target->thunk = (uint64_t)(uintptr_t)target->shared->thunk;
	maps_each(target->pid, find_device, &target->module, NULL);
}

void one_target_end(struct one_target *target)
{
	kill(target->pid, SIGKILL);
	waitpid(target->pid, NULL, __WALL);
	munmap(target->shared, sizeof(*target->shared));
	close(target->module.fd);
}

/* lock incq of the count, and on to the moved code: by r11, which is nobody's there. */
static void write_thunk(const struct one_target *target)
{
	static const uint8_t begin[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x49, 0xbb };
	static const uint8_t middle[] = { 0xf0, 0x49, 0xff, 0x03, 0x49, 0xbb };
	static const uint8_t end[] = { 0x41, 0xff, 0xe3 };
	uint64_t count = (uint64_t)(uintptr_t)&target->shared->thunks;
	uint64_t original = target->area + target->function.original;
	uint8_t *at = target->shared->thunk;

	at = mempcpy(at, begin, sizeof(begin));
	at = mempcpy(at, &count, 8);
	at = mempcpy(at, middle, sizeof(middle));
	at = mempcpy(at, &original, 8);
	memcpy(at, end, sizeof(end));
}

struct divert_plan *one_target_look(struct one_target *target, struct divert *divert)
{
	struct divert_plan *plan = NULL;
	struct divert_need need;
	struct err err = { 0 };

	if (divert_look(divert, target->pid, &target->module, &target->function, 1, &need, &plan,
	                &err))
		one_target_fail("divert_look", err.text);
	if (!need.bytes)
		one_target_fail("divert_look", entry_refusal_text(target->function.refusal));
	write_thunk(target);
	return plan;
}

bool one_target_is_as_in_file(const struct one_target *target)
{
	uint8_t now[sizeof(target->file)];
	void *function;
	struct iovec to = { now, sizeof(now) }, from = { NULL, sizeof(now) };

	memcpy(&function, &target->shared->function, sizeof(function));
	from.iov_base = function;
	return process_vm_readv(target->pid, &to, 1, &from, 1, 0) == (ssize_t)sizeof(now) &&
	       !memcmp(now, target->file, sizeof(now));
}
