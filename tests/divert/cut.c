// SPDX-License-Identifier: MIT
/*
 * cut LIBRARY ROUNDS [threads=N] [signals] [forks] [throws] [loads] [probe] [comes] [again]
 *     [orphan] [patience=N]
 *
 * Diverts all functions of a library in a process that calls them all the time, and takes them
 * back, ROUNDS times. All answers have to be right, and the code at the end that of the file.
 *
 *	probe    with a kernel probe on one function, which is attached all the time: it and the
 *	         thunks have to have seen each call once
 *	comes    the probe comes and goes meanwhile
 *	again    all rounds use the area of the first one; then with other thunks it is refused
 *	orphan   the process that diverts is killed at a random moment in each round
 *	patience=N  after N answers that it could not be done in time, the code has to be the
 *file's, and the round is over
 */
#include "cut.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "divert/divert.h"
#include "probe/elf_file.h"
#include "probe/maps.h"
#include "probe/placement.h"

#define CPUS_MAX 256

struct cut {
	struct cut_options options;
	int rounds;
	bool probe, comes, again, refused, orphan, say;
	struct cut_shared *shared;
	pid_t target;
	struct elf_file *file;
	struct divert_module module;
	struct divert_function functions[CUT_FUNCTIONS];
	size_t count;
	size_t counted; /* which function is */
	struct divert *divert;
	/* of the result that came last */
	bool done;
	int rc;
	struct divert_plan *plan;
	uint32_t diverted, put_back, changed;
	/* of all */
	uint64_t stops, stopped_ns, longest_ns, tried_again, given_up;
	uint64_t patience;
	uint32_t threads;
	int probes[CPUS_MAX];
	size_t n_probes;
};

static void fail(const char *what, const char *why)
{
	printf("cut: %s: %s\n", what, why);
	exit(1);
}

static void nap(void)
{
	usleep(300);
}

/* ---- the probe ------------------------------------------------------------------------------- */

static int perf_type(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	int type = -1;

	if (!file || fscanf(file, "%d", &type) != 1)
		fail("uprobes", "not on this kernel");
	fclose(file);
	return type;
}

static void attach_probe(struct cut *cut)
{
	const struct divert_function *function = &cut->functions[cut->counted];
	struct perf_event_attr attr = { .size = sizeof(attr), .type = (uint32_t)perf_type() };
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	attr.config1 = (uint64_t)(uintptr_t)cut->options.library;
	attr.config2 = function->offset + function->probe;
	for (int cpu = 0; cpu < cpus && cpu < CPUS_MAX; cpu++) {
		int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, 0);

		if (fd < 0)
			fail("perf_event_open", strerror(errno));
		cut->probes[cut->n_probes++] = fd;
	}
}

static void detach_probe(struct cut *cut)
{
	while (cut->n_probes)
		close(cut->probes[--cut->n_probes]);
}

static uint64_t hits(const struct cut *cut)
{
	uint64_t sum = 0, n;

	for (size_t i = 0; i < cut->n_probes; i++)
		if (read(cut->probes[i], &n, sizeof(n)) == sizeof(n))
			sum += n;
	return sum;
}

/* ---- the library ----------------------------------------------------------------------------- */

static int compare_addresses(const void *left, const void *right)
{
	const struct divert_function *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

static int find_device(const struct mapping *mapping, void *data)
{
	struct divert_module *module = data;

	if (mapping->inode != module->inode)
		return 0;
	module->dev = mapping->dev;
	return 1;
}

static void open_library(struct cut *cut)
{
	const struct emulation emulation = { .nop5 = false };
	const struct elf_function *functions;
	struct placement placement;
	uint64_t counted = 0;
	struct err err;
	struct stat st;
	size_t n;

	cut->module.path = cut->options.library;
	cut->module.fd = open(cut->options.library, O_RDONLY | O_CLOEXEC);
	if (cut->module.fd < 0 || fstat(cut->module.fd, &st) ||
	    elf_file_open(cut->module.fd, cut->options.library, ELF_WHOLE, &cut->file, &err))
		fail(cut->options.library, "no such library");
	cut->module.inode = st.st_ino;
	n = elf_file_functions(cut->file, &functions);
	for (size_t i = 0; i < n && cut->count < CUT_FUNCTIONS; i++) {
		size_t len = 4096;
		const uint8_t *code = elf_file_bytes(cut->file, functions[i].offset, &len);

		placement_choose(code, len, functions[i].size, ABI_X86_64, &emulation, &placement);
		if (!strcmp(functions[i].name, "cuDriverGetVersion"))
			counted = functions[i].address;
		cut->functions[cut->count++] =
			(struct divert_function){ .address = functions[i].address,
			                          .offset = functions[i].offset,
			                          .size = functions[i].size,
			                          .probe = placement.skip };
	}
	qsort(cut->functions, cut->count, sizeof(*cut->functions), compare_addresses);
	for (size_t i = 0; i < cut->count; i++)
		if (cut->functions[i].address == counted)
			cut->counted = i;
}

/* The code of the library in the target, beside the file's. How many bytes differ. */
static int compare_mapping(const struct mapping *mapping, void *data)
{
	struct cut *cut = data;
	size_t bytes = mapping->end - mapping->start, differ = 0;
	uint8_t *now, *file;
	char path[64];
	int memory;

	if (mapping->inode != cut->module.inode)
		return 0;
	now = calloc(1, bytes);
	file = calloc(1, bytes);
	snprintf(path, sizeof(path), "/proc/%d/mem", cut->target);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	if (pread(memory, now, bytes, (off_t)mapping->start) != (ssize_t)bytes ||
	    pread(cut->module.fd, file, bytes, (off_t)mapping->offset) <= 0)
		differ = bytes;
	for (size_t i = 0; i < bytes; i++) {
		differ += now[i] != file[i];
		if (now[i] != file[i] && cut->say)
			printf("at 0x%zx: 0x%02x, should be 0x%02x\n", mapping->offset + i, now[i],
			       file[i]);
	}
	close(memory);
	free(now);
	free(file);
	return differ ? (int)differ : 0;
}

static int differing(struct cut *cut)
{
	return maps_each(cut->target, compare_mapping, cut, NULL);
}

/* ---- on and off ------------------------------------------------------------------------------ */

static void on_done(void *data, const struct divert_result *result)
{
	struct cut *cut = data;

	cut->done = true;
	cut->rc = result->rc;
	cut->diverted = result->diverted;
	cut->put_back = result->put_back;
	cut->changed = result->changed;
	cut->stops++;
	cut->threads = result->threads > cut->threads ? result->threads : cut->threads;
	cut->stopped_ns += result->stopped_ns;
	if (result->stopped_ns > cut->longest_ns)
		cut->longest_ns = result->stopped_ns;
	if (result->rc && result->rc != -EAGAIN && !(cut->refused && result->rc == -EEXIST))
		fail("result", result->why);
}

static void await_done(struct cut *cut)
{
	struct pollfd fd = { .fd = divert_fd(cut->divert), .events = POLLIN };
	struct err err = { 0 };

	for (cut->done = false; !cut->done;) {
		if (poll(&fd, 1, 10000) <= 0)
			fail("divert", "no answer in 10 s");
		if (divert_turn(cut->divert, &err))
			fail("divert", err.text);
	}
}

static void get_area(struct cut *cut)
{
	struct cut_shared *shared = cut->shared;
	struct divert_need need;
	struct err err = { 0 };
	unsigned asked;

	cut->plan = NULL; /* the last one was put, and is divert's */
	if (divert_look(cut->divert, cut->target, &cut->module, cut->functions, cut->count, &need,
	                &cut->plan, &err))
		fail("divert_look", err.text);
	if (cut->again && shared->area && need.bytes == shared->bytes)
		return;
	shared->near_start = need.near_start;
	shared->near_end = need.near_end;
	shared->bytes = need.bytes;
	shared->functions = (uint32_t)cut->count;
	for (size_t i = 0; i < cut->count; i++)
		shared->original[i] = cut->functions[i].refusal ? 0 : cut->functions[i].original;
	asked = atomic_fetch_add(&shared->asked, 1) + 1;
	for (int i = 0; atomic_load(&shared->answered) != asked; i++) {
		if (i > 20000)
			fail("area", "not mapped");
		nap();
	}
	if (!shared->area)
		fail("area", "no room");
}

/* False: it could not be done in time. */
static bool divert_all(struct cut *cut)
{
	uint64_t until = cut->tried_again + cut->patience;
	struct err err = { 0 };

	for (;;) {
		if (divert_put(cut->divert, cut->plan, cut->shared->area, cut->shared->thunk, &err))
			fail("divert_put", err.text);
		await_done(cut);
		if (!cut->rc)
			break;
		cut->tried_again++;
		if (cut->patience && cut->tried_again == until)
			return false;
	}
	if (cut->diverted < cut->count * 9 / 10)
		fail("divert_put", "too few functions");
	return true;
}

/* Nothing was written, and the plan is ours again. */
static void give_up(struct cut *cut)
{
	cut->given_up++;
	divert_plan_free(cut->plan);
	if (differing(cut))
		fail("divert_put", "given up, but the code is not that of the file");
}

static void take_all_back(struct cut *cut)
{
	struct err err = { 0 };

	do {
		if (divert_take_back(cut->divert, cut->target, &err))
			fail("divert_take_back", err.text);
		await_done(cut);
		cut->tried_again += cut->rc != 0;
	} while (cut->rc);
	if (cut->changed || cut->put_back < cut->count * 9 / 10)
		fail("divert_take_back", "not all was put back");
}

static void one_round(struct cut *cut)
{
	uint64_t before = cut->shared->diverted[cut->counted];

	get_area(cut);
	if (!divert_all(cut)) {
		give_up(cut);
		return;
	}
	if (cut->comes)
		attach_probe(cut);
	for (int i = 0; cut->shared->diverted[cut->counted] == before; i++) {
		if (i == 10000)
			fail("thunk", "no call came to it");
		nap();
	}
	take_all_back(cut);
	if (cut->comes)
		detach_probe(cut);
	nap();
}

/* Other code than the area has: nothing is written, neither there nor into the library. */
static void one_refused(struct cut *cut)
{
	uint64_t *thunk = &cut->shared->thunk[cut->counted];
	struct err err = { 0 };

	cut->refused = true;
	get_area(cut);
	++*thunk;
	if (divert_put(cut->divert, cut->plan, cut->shared->area, cut->shared->thunk, &err))
		fail("divert_put", err.text);
	await_done(cut);
	if (cut->rc != -EEXIST || differing(cut))
		fail("divert_put", "an area of other code was used");
	divert_plan_free(cut->plan);
	--*thunk;
	one_round(cut); /* as it was */
}

/* ---- a cuscope that is killed ---------------------------------------------------------------- */

static void one_orphan(struct cut *cut)
{
	pid_t child = fork();

	if (child == 0) {
		struct err err;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (divert_new(on_done, cut, &cut->divert, &err))
			fail("divert_new", err.text);
		for (;;)
			one_round(cut);
	}
	usleep((useconds_t)(100000 + rand() % 300000));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	/* What was ordered before is done, and put back. */
	usleep(500000);
	for (int i = 0; differing(cut); i++) {
		if (i == 100)
			fail("orphan", "not put back in 1.5 s");
		usleep(10000);
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void start_target(struct cut *cut)
{
	cut->shared = mmap(NULL, sizeof(*cut->shared), PROT_READ | PROT_WRITE,
	                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (cut->probe)
		attach_probe(cut);
	cut->target = fork();
	for (size_t i = 0; cut->target == 0 && i < cut->n_probes; i++)
		close(cut->probes[i]);
	if (cut->target == 0)
		cut_target(cut->shared, &cut->options);
	while (!atomic_load(&cut->shared->ready))
		nap();
	maps_each(cut->target, find_device, &cut->module, NULL);
}

static void stop_target(struct cut *cut)
{
	atomic_store(&cut->shared->stop, 1);
	for (int i = 0; atomic_load(&cut->shared->ready) != 2; i++) {
		if (i > 100000)
			fail("target", "its threads do not end");
		nap();
	}
}

/* The probe at the entry sees diverted calls as well; one behind the jump sees the others. */
static void check_counts(const struct cut *cut)
{
	const struct cut_shared *shared = cut->shared;
	uint64_t calls = shared->calls, thunks = shared->diverted[cut->counted];
	bool before = cut->functions[cut->counted].probe >= 5;
	uint64_t seen = hits(cut) + (before ? thunks : 0);

	printf("calls %lu, by thunk %lu, by probe %lu\n", (unsigned long)calls,
	       (unsigned long)thunks, (unsigned long)hits(cut));
	if (cut->probe && seen != calls)
		fail("counts", "calls were seen twice, or not at all");
	if (thunks > calls)
		fail("counts", "more calls by thunk than there were");
}

static void parse(struct cut *cut, int argc, char **argv)
{
	if (argc < 3)
		fail("usage", "cut LIBRARY ROUNDS [WORD...]");
	cut->options.library = argv[1];
	cut->options.threads = 32;
	cut->rounds = atoi(argv[2]);
	for (int i = 3; i < argc; i++) {
		cut->options.signals |= !strcmp(argv[i], "signals");
		cut->options.forks |= !strcmp(argv[i], "forks");
		cut->options.throws |= !strcmp(argv[i], "throws");
		cut->options.loads |= !strcmp(argv[i], "loads");
		cut->probe |= !strcmp(argv[i], "probe");
		cut->comes |= !strcmp(argv[i], "comes");
		cut->again |= !strcmp(argv[i], "again");
		cut->orphan |= !strcmp(argv[i], "orphan");
		sscanf(argv[i], "threads=%d", &cut->options.threads);
		sscanf(argv[i], "patience=%lu", &cut->patience);
	}
	if (cut->options.threads > CUT_THREADS)
		fail("usage", "too many threads");
}

int main(int argc, char **argv)
{
	static struct cut cut;
	struct err err = { 0 };
	int status = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	parse(&cut, argc, argv);
	open_library(&cut);
	start_target(&cut);
	if (!cut.orphan && divert_new(on_done, &cut, &cut.divert, &err))
		fail("divert_new", err.text);
	for (int i = 0; i < cut.rounds; i++) {
		if (cut.orphan)
			one_orphan(&cut);
		else
			one_round(&cut);
		if (waitpid(cut.target, &status, WNOHANG))
			fail("target",
			     WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it has ended");
	}
	if (cut.again)
		one_refused(&cut);
	divert_free(cut.divert);
	stop_target(&cut);
	check_counts(&cut);
	detach_probe(&cut);
	printf("others %lu, wrong %lu, waits %lu, interrupted %lu, signals %lu, forks %lu, "
	       "exceptions %lu, loads %lu\n",
	       cut.shared->others, cut.shared->wrong, cut.shared->waits, cut.shared->interrupted,
	       cut.shared->signals, cut.shared->forks, cut.shared->exceptions, cut.shared->loads);
	if (cut.shared->not_thrown)
		printf("not thrown %lu: another session's return probes are on the functions\n",
		       cut.shared->not_thrown);
	if (cut.stops)
		printf("stops %lu of %u threads, mean %.3f ms, longest %.3f ms, tried again %lu, "
		       "given up %lu\n",
		       cut.stops, cut.threads, (double)cut.stopped_ns / (double)cut.stops / 1e6,
		       (double)cut.longest_ns / 1e6, cut.tried_again, cut.given_up);
	if (cut.shared->wrong || cut.shared->interrupted)
		fail("target", "wrong answers, or interrupted waits");
	/* The kernel may take the probe away a little later. */
	for (int i = 0; differing(&cut); i++) {
		cut.say = i == 99;
		if (i == 100)
			fail("code", "not that of the file");
		usleep(10000);
	}
	kill(cut.target, SIGKILL);
	return 0;
}
