// SPDX-License-Identifier: MIT
/*
 * hostile LIBRARY: processes that change while one of their functions is about to be diverted. Each
 * is refused, or diverted, as it should be; and in each case others are diverted afterwards.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "divert/divert_stop.h"
#include "divert/divert.h"
#include "probe/elf_file.h"
#include "probe/maps.h"
#include "probe/placement.h"

#define FUNCTION "cuDriverGetVersion"
#define AREA     (16ull << 20) /* below the function */

/* What the target and we share. */
struct shared {
	uint8_t *function;
	uint64_t area;
	volatile int ready, act, acted, rounds; /* act: 2 for `late` */
	void (*volatile late)(void);
};

struct hostile {
	const char *library;
	struct divert_module module;
	struct divert_function function;
	struct divert *divert;
	struct shared *shared;
	pid_t target;
	int rc;
	bool done;
	uint8_t refusal;
};

static struct shared *shared;

/* ---- what targets do ------------------------------------------------------------------------- */

static void nothing(void)
{
}

static void is_not_dumpable(void)
{
	prctl(PR_SET_DUMPABLE, 0);
}

static void exits(void)
{
	_exit(0);
}

static void executes(void)
{
	execlp("sleep", "sleep", "1000", (char *)NULL);
}

static void *sleeps(void *unused)
{
	for (;;)
		pause();
	return NULL;
}

static void has_many_threads(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16384);
	for (int i = 0; i < 5000; i++)
		pthread_create(&thread, &attr, sleeps, NULL);
}

static void unmaps_the_area(void)
{
	munmap((void *)(uintptr_t)shared->area, 4096);
}

static void makes_the_area_writable(void)
{
	mprotect((void *)(uintptr_t)shared->area, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static void changes_the_function(void)
{
	int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	if (pwrite(memory, "\xcc", 1, (off_t)(uintptr_t)(shared->function + 2)) != 1)
		_exit(2);
}

/* Its code is served by a userfaultfd that does nothing. */
static void serves_the_function(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = { .api = UFFD_API };
	uint8_t *page = (uint8_t *)((uintptr_t)shared->function & ~4095ul);
	struct uffdio_register range = { .range = { (uintptr_t)page, 4096 },
		                         .mode = UFFDIO_REGISTER_MODE_MISSING };

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
	    mmap(page, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
	         0) == MAP_FAILED ||
	    ioctl(fd, UFFDIO_REGISTER, &range))
		_exit(2);
}

static int helps(void *unused)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sleep(10);
	return 0;
}

static void is_stopped(void)
{
	shared->acted = 1;
	raise(SIGSTOP);
}

/* ---- what they do once they are diverted ----------------------------------------------------- */

/* A child that shares its memory keeps it as it is, whatever it executes itself. */
static void keep_memory(void)
{
	static char stack[65536];

	if (clone(helps, stack + sizeof(stack), CLONE_VM, NULL) < 0)
		_exit(2);
}

static void becomes_another(void)
{
	keep_memory();
	executes();
}

static void becomes_itself_again(void)
{
	keep_memory();
	execl("/proc/self/exe", "hostile", (char *)NULL);
}

static void gets_another_user(void)
{
	if (syscall(SYS_setresuid, 65534, 0, 0))
		_exit(2);
}

/* ---- the target ------------------------------------------------------------------------------ */

static _Noreturn void target(const char *library, void (*act)(void))
{
	void *handle = dlopen(library, RTLD_NOW);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	shared->function = handle ? dlsym(handle, FUNCTION) : NULL;
	if (!shared->function)
		_exit(2);
	shared->area = ((uint64_t)(uintptr_t)shared->function - AREA) & ~4095ull;
	if (mmap((void *)(uintptr_t)shared->area, 4096, PROT_READ | PROT_EXEC,
	         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
		_exit(2);
	shared->ready = 1;
	for (;;) {
		if (shared->act) {
			void (*now)(void) = shared->act == 2 ? shared->late : act;

			shared->act = 0;
			now();
			shared->acted = 1;
		}
		shared->rounds++;
		usleep(1000);
	}
}

/* ---- diverting it ---------------------------------------------------------------------------- */

static _Noreturn void fail(const char *what, const char *why)
{
	printf("hostile: %s: %s\n", what, why);
	exit(1);
}

static void on_done(void *data, const struct divert_result *result)
{
	struct hostile *hostile = data;

	hostile->done = true;
	hostile->rc = result->rc;
	hostile->refusal = result->plan && result->count ? result->refusals[0] : 0;
	printf("  %s\n", result->rc ? result->why : "done");
}

static void open_library(struct hostile *hostile)
{
	const struct emulation emulation = { .nop5 = false };
	const struct elf_function *functions;
	struct placement placement;
	struct elf_file *file;
	struct err err;
	struct stat st;
	size_t n;

	hostile->module.path = hostile->library;
	hostile->module.fd = open(hostile->library, O_RDONLY | O_CLOEXEC);
	if (hostile->module.fd < 0 || fstat(hostile->module.fd, &st) ||
	    elf_file_open(hostile->module.fd, hostile->library, ELF_WHOLE, &file, &err))
		fail(hostile->library, "no such library");
	hostile->module.inode = st.st_ino;
	n = elf_file_functions(file, &functions);
	for (size_t i = 0; i < n; i++) {
		size_t len = 4096;
		const uint8_t *code = elf_file_bytes(file, functions[i].offset, &len);

		if (strcmp(functions[i].name, FUNCTION) != 0)
			continue;
		placement_choose(code, len, functions[i].size, ABI_X86_64, &emulation, &placement);
		hostile->function = (struct divert_function){ .address = functions[i].address,
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

static void start(struct hostile *hostile, void (*act)(void))
{
	memset(shared, 0, sizeof(*shared));
	hostile->target = fork();
	if (hostile->target == 0)
		target(hostile->library, act);
	while (!shared->ready)
		usleep(1000);
	maps_each(hostile->target, find_device, &hostile->module, NULL);
}

static void await(struct hostile *hostile)
{
	struct pollfd fd = { .fd = divert_fd(hostile->divert), .events = POLLIN };
	uint64_t until_ns = stop_now_ns() + 10000000000u;
	struct err err = { 0 };

	hostile->done = false;
	while (!hostile->done) {
		poll(&fd, 1, 10);
		if (divert_turn(hostile->divert, &err) || stop_now_ns() > until_ns)
			fail("no answer", err.text);
	}
}

/* What divert_look, or the result of divert_put, says. */
static int divert_one(struct hostile *hostile, bool debugged)
{
	uint64_t thunk = (uint64_t)(uintptr_t)shared->function; /* never called */
	struct divert_plan *plan = NULL;
	struct divert_need need;
	struct err err = { 0 };
	int rc = divert_look(hostile->divert, hostile->target, &hostile->module, &hostile->function,
	                     1, &need, &plan, &err);

	if (rc || !need.bytes)
		fail("divert_look", err.text);
	shared->act = 1;
	for (int i = 0; i < 5000 && !shared->acted && !waitpid(hostile->target, NULL, WNOHANG); i++)
		usleep(1000);
	usleep(100000); /* one that executes another program tells nothing */
	if (debugged && ptrace(PTRACE_SEIZE, hostile->target, NULL, NULL))
		fail("ptrace", strerror(errno));
	do {
		if (divert_put(hostile->divert, plan, shared->area, &thunk, &err))
			fail("divert_put", err.text);
		await(hostile);
	} while (hostile->rc == -EAGAIN); /* the machine has other work */
	if (hostile->rc)
		divert_plan_free(plan);
	return hostile->rc;
}

static void take_back(struct hostile *hostile, int expected)
{
	struct err err = { 0 };

	do {
		if (divert_take_back(hostile->divert, hostile->target, &err))
			fail("divert_take_back", err.text);
		await(hostile);
	} while (hostile->rc == -EAGAIN);
	if (hostile->rc != expected)
		fail("divert_take_back", strerror(-hostile->rc));
}

/* It is diverted, and then has other memory or may do more: it is left alone. */
static void try_become(struct hostile *hostile, const char *name, void (*act)(void), int rc)
{
	printf("%s, when it is diverted\n", name);
	start(hostile, nothing);
	shared->late = act;
	if (divert_one(hostile, false))
		fail(name, strerror(-hostile->rc));
	shared->act = 2;
	usleep(300000);
	take_back(hostile, rc);
	divert_gone(hostile->divert, hostile->target);
	kill(hostile->target, SIGKILL);
	waitpid(hostile->target, NULL, __WALL);
}

static const struct hostile_case {
	const char *name;
	void (*act)(void);
	int rc;
	enum entry_refusal refusal;
	bool debugged, ends;
} cases[] = {
	{ "an ordinary process", nothing, 0, ENTRY_MOVABLE, false, false },
	{ "one that is not dumpable", is_not_dumpable, 0, ENTRY_MOVABLE, false, false },
	{ "one that exits", exits, -ESRCH, ENTRY_MOVABLE, false, true },
	{ "one that executes a program", executes, -ESRCH, ENTRY_MOVABLE, false, true },
	{ "one with 5,000 threads", has_many_threads, -E2BIG, ENTRY_MOVABLE, false, false },
	{ "one that unmaps the area", unmaps_the_area, -EFAULT, ENTRY_MOVABLE, false, false },
	{ "one with a writable area", makes_the_area_writable, -EFAULT, ENTRY_MOVABLE, false,
	  false },
	{ "one whose code is changed", changes_the_function, 0, ENTRY_CHANGED, false, false },
	{ "one that serves its code", serves_the_function, -ESRCH, ENTRY_MOVABLE, false, false },
	{ "one that is stopped", is_stopped, 0, ENTRY_MOVABLE, false, true },
	{ "one that is debugged", nothing, -EBUSY, ENTRY_MOVABLE, true, false },
	{ "an ordinary one, after these", nothing, 0, ENTRY_MOVABLE, false, false },
};

static void try_case(struct hostile *hostile, const struct hostile_case *one)
{
	int rounds;

	printf("%s\n", one->name);
	start(hostile, one->act);
	if (divert_one(hostile, one->debugged) != one->rc || hostile->refusal != one->refusal)
		fail(one->name, strerror(-hostile->rc));
	if (!hostile->rc)
		take_back(hostile, 0);
	rounds = shared->rounds;
	for (int i = 0; !one->ends && shared->rounds == rounds; i++) {
		if (i == 5000)
			fail(one->name, "it does not go on");
		usleep(1000);
	}
	divert_gone(hostile->divert, hostile->target);
	kill(hostile->target, SIGKILL);
	waitpid(hostile->target, NULL, __WALL);
}

int main(int argc, char **argv)
{
	static struct hostile hostile;
	struct err err = { 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 1)
		return sleep(1000) != 0; /* becomes_itself_again */
	if (argc != 2)
		fail("usage", "hostile LIBRARY");
	hostile.library = argv[1];
	open_library(&hostile);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	              0);
	if (divert_new(on_done, &hostile, &hostile.divert, &err))
		fail("divert_new", err.text);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		try_case(&hostile, &cases[i]);
	try_become(&hostile, "one that executes a program", becomes_another, -ESRCH);
	try_become(&hostile, "one that executes its own again", becomes_itself_again, -ESRCH);
	try_become(&hostile, "one that gets another user", gets_another_user, -EPERM);
	divert_free(hostile.divert);
	return 0;
}
