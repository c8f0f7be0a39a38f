// SPDX-License-Identifier: MIT
/*
 * places LIBRARY: a thread stands at each instruction of a function's beginning, one after the
 * other, when the function is diverted and when it is put back. Its call is right, and the thunk
 * sees it just where the kernel's probe does not.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "divert/divert.h"
#include "probe/elf_file.h"
#include "probe/maps.h"
#include "probe/placement.h"

#define FUNCTION "cuDriverGetVersion"
#define AREA     (16ull << 20) /* below the function */
#define STEPS    8             /* instructions from the entry on */

struct shared {
	uint8_t *function;
	uint64_t area;
	volatile int ready, go, calls, right;
	volatile uint64_t thunks;
	uint8_t thunk[64];
};

struct places {
	const char *library;
	struct divert_module module;
	struct divert_function function;
	struct divert *divert;
	pid_t target;
	int rc;
	bool done;
};

static struct shared *shared;

static _Noreturn void fail(const char *what, const char *why)
{
	printf("places: %s: %s\n", what, why);
	exit(1);
}

static _Noreturn void target(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW);
	int (*function)(int *) = handle ? (int (*)(int *))dlsym(handle, FUNCTION) : NULL;
	int value, known = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!function || function(&known))
		_exit(2);
	shared->function = (uint8_t *)(uintptr_t)function;
	shared->area = ((uint64_t)(uintptr_t)function - AREA) & ~4095ull;
	if (mmap((void *)(uintptr_t)shared->area, 4096, PROT_READ | PROT_EXEC,
	         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
		_exit(2);
	shared->ready = 1;
	for (;;) {
		while (!shared->go)
			__builtin_ia32_pause();
		shared->go = 0;
		value = 0;
		shared->right += function(&value) == 0 && value == known;
		shared->calls++;
	}
}

static void on_done(void *data, const struct divert_result *result)
{
	struct places *places = data;

	places->done = true;
	places->rc = result->rc;
	if (result->rc && result->rc != -EAGAIN)
		fail("result", result->why);
}

static void open_library(struct places *places)
{
	const struct emulation emulation = { .nop5 = false };
	const struct elf_function *functions;
	struct placement placement;
	struct elf_file *file;
	struct err err;
	struct stat st;
	size_t n;

	places->module.path = places->library;
	places->module.fd = open(places->library, O_RDONLY | O_CLOEXEC);
	if (places->module.fd < 0 || fstat(places->module.fd, &st) ||
	    elf_file_open(places->module.fd, places->library, ELF_WHOLE, &file, &err))
		fail(places->library, "no such library");
	places->module.inode = st.st_ino;
	n = elf_file_functions(file, &functions);
	for (size_t i = 0; i < n; i++) {
		size_t len = 4096;
		const uint8_t *code = elf_file_bytes(file, functions[i].offset, &len);

		if (strcmp(functions[i].name, FUNCTION) != 0)
			continue;
		placement_choose(code, len, functions[i].size, ABI_X86_64, &emulation, &placement);
		places->function = (struct divert_function){ .address = functions[i].address,
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

static void await(struct places *places)
{
	struct pollfd fd = { .fd = divert_fd(places->divert), .events = POLLIN };
	struct err err = { 0 };

	for (places->done = false; !places->done;)
		if (poll(&fd, 1, 10000) <= 0 || divert_turn(places->divert, &err))
			fail("no answer", err.text);
}

/* push %rax; mov $count, %rax; lock incq (%rax); pop %rax; jmp *original(%rip) */
static void write_thunk(uint64_t original)
{
	static const uint8_t begin[] = { 0x50, 0x48, 0xb8 },
			     end[] = { 0xf0, 0x48, 0xff, 0x00, 0x58, 0xff, 0x25, 0, 0, 0, 0 };
	uint64_t count = (uint64_t)(uintptr_t)&shared->thunks;

	memcpy(shared->thunk, begin, sizeof(begin));
	memcpy(shared->thunk + sizeof(begin), &count, 8);
	memcpy(shared->thunk + sizeof(begin) + 8, end, sizeof(end));
	memcpy(shared->thunk + sizeof(begin) + 8 + sizeof(end), &original, 8);
}

/* Lets it call, and leaves it stopped `steps` instructions behind the entry. Returns its place. */
static uint64_t stand(const struct places *places, int steps)
{
	uint64_t entry = (uint64_t)(uintptr_t)shared->function;
	struct user_regs_struct regs = { 0 };
	int status, behind = -1;

	if (ptrace(PTRACE_SEIZE, places->target, NULL, NULL) ||
	    ptrace(PTRACE_INTERRUPT, places->target, NULL, NULL))
		fail("ptrace", strerror(errno));
	waitpid(places->target, &status, __WALL);
	shared->go = 1;
	while (behind < steps) {
		ptrace(PTRACE_SINGLESTEP, places->target, NULL, NULL);
		waitpid(places->target, &status, __WALL);
		ptrace(PTRACE_GETREGS, places->target, NULL, &regs);
		behind += behind >= 0 || regs.rip == entry;
	}
	ptrace(PTRACE_DETACH, places->target, NULL, SIGSTOP);
	return regs.rip - entry;
}

/* It goes on; how many times its thunk was called. */
static uint64_t go_on(const struct places *places)
{
	int calls = shared->calls, right = shared->right;
	uint64_t thunks = shared->thunks;

	kill(places->target, SIGCONT);
	for (int i = 0; shared->calls == calls; i++) {
		if (i == 5000 || waitpid(places->target, NULL, WNOHANG))
			fail("the call", "does not end");
		usleep(1000);
	}
	if (shared->right == right)
		fail("the call", "a wrong answer");
	return shared->thunks - thunks;
}

static void put(struct places *places)
{
	uint64_t thunk = (uint64_t)(uintptr_t)shared->thunk;
	struct divert_plan *plan = NULL;
	struct divert_need need;
	struct err err = { 0 };

	if (divert_look(places->divert, places->target, &places->module, &places->function, 1,
	                &need, &plan, &err))
		fail("divert_look", err.text);
	write_thunk(shared->area + places->function.original);
	do {
		if (divert_put(places->divert, plan, shared->area, &thunk, &err))
			fail("divert_put", err.text);
		await(places);
	} while (places->rc);
}

static void take_back(struct places *places)
{
	struct err err = { 0 };

	do {
		if (divert_take_back(places->divert, places->target, &err))
			fail("divert_take_back", err.text);
		await(places);
	} while (places->rc);
}

/* The probe sees what stands at its byte, or before it. */
static void try_place(struct places *places, int steps)
{
	uint64_t at = stand(places, steps), thunks;

	put(places);
	thunks = go_on(places);
	printf("diverted at +%lu: %lu by thunk\n", (unsigned long)at, (unsigned long)thunks);
	if (thunks != (at <= places->function.probe))
		fail("diverted", "the thunk saw a call that the probe had seen, or missed one");
	thunks = shared->thunks;
	at = stand(places, steps);
	take_back(places);
	go_on(places);
	thunks = shared->thunks - thunks;
	/* behind the jump it stands in the pad, in the thunk, or in the moved code */
	printf("put back at %+ld: %lu by thunk\n", (long)at, (unsigned long)thunks);
	if (thunks != (at > places->function.probe))
		fail("put back", "the thunk saw a call that the probe will see, or missed one");
}

int main(int argc, char **argv)
{
	static struct places places;
	struct err err = { 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2)
		fail("usage", "places LIBRARY");
	places.library = argv[1];
	open_library(&places);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE | PROT_EXEC,
	              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	places.target = fork();
	if (places.target == 0)
		target(places.library);
	while (!shared->ready)
		usleep(1000);
	maps_each(places.target, find_device, &places.module, NULL);
	if (divert_new(on_done, &places, &places.divert, &err))
		fail("divert_new", err.text);
	for (int i = 0; i < STEPS; i++)
		try_place(&places, i);
	divert_free(places.divert);
	kill(places.target, SIGKILL);
	return 0;
}
