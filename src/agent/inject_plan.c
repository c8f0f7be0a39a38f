// SPDX-License-Identifier: MIT
#include "agent/inject_plan.h"

#ifdef __x86_64__

#include <cpuid.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"

#ifndef MFD_EXEC /* Linux 6.3 */
#define MFD_EXEC 0x10u
#endif

#define STATE_AT    (16u << 10) /* in the area, behind struct area */
#define STATE_BYTES (48u << 10)

_Static_assert(sizeof(struct area) <= STATE_AT, "the area's parts do not overlap");
_Static_assert(sizeof(struct plan_word) == sizeof(uint64_t[6 - PLAN_WORD]), "the last arguments");
_Static_assert(sizeof(struct timespec) == sizeof(((struct plan_word *)0)->sent), "as it is told");

/* 0 without XSAVE; else the bytes that all enabled parts of the state take. */
static unsigned xsave_bytes(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) ||
	    !__get_cpuid_count(13, 0, &a, &b, &c, &d))
		return 0;
	return b;
}

bool plan_fits(void)
{
	return xsave_bytes() <= STATE_BYTES;
}

/*
 * That it can be sealed tells it from other files (inject_run.c). Kernels before 6.3 do not
 * know MFD_EXEC; later ones may want it (sysctl vm.memfd_noexec).
 */
static uint64_t memfd_flags(void)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("cuscope-attach", flags | MFD_EXEC);

	if (fd >= 0)
		close(fd);
	return flags | (fd >= 0 || errno != EINVAL ? MFD_EXEC : 0);
}

/* One row a step. `load` has a bit for each argument that is where the value stands. */
struct inject_plan_row {
	enum plan_step step;
	uint64_t code;
	uint64_t arg[6];
	unsigned load;
	unsigned fails; /* FAILS_* */
	enum plan_step otherwise;
};

#define AT(member)     (base + offsetof(struct area, member))
#define RESULT(number) (AT(step) + (number) * sizeof(struct step) + offsetof(struct step, result))
#define LOAD(i)        (1u << (i))
#define SOCKETS        (SOCK_SEQPACKET | SOCK_CLOEXEC)

static void add_rows(struct area *area, uint64_t base, const struct inject_plan_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct step *step = &area->step[rows[i].step];

		step->code = rows[i].code;
		memcpy(step->arg, rows[i].arg, sizeof(step->arg));
		step->loads = rows[i].load;
		step->fails = rows[i].fails;
		step->otherwise =
			rows[i].otherwise ? AT(step) + rows[i].otherwise * sizeof(*step) : 0;
	}
}

static void make_descriptors(struct area *area, uint64_t base)
{
	const struct inject_plan_row rows[] = {
		{ STEP_MEMFD,
		  SYS_memfd_create,
		  { AT(name), memfd_flags() },
		  0,
		  FAILS_ERROR,
		  STEP_CLOSE_OURS },
		{ STEP_PAIR,
		  SYS_socketpair,
		  { AF_UNIX, SOCKETS, 0, AT(pair) },
		  0,
		  FAILS_ERROR,
		  STEP_CLOSE_OURS },
		{ STEP_REPORT_PAIR,
		  SYS_socketpair,
		  { AF_UNIX, SOCKETS, 0, AT(report) },
		  0,
		  FAILS_NEVER,
		  0 },
		{ STEP_CLOSE_OURS, SYS_close, { AT(pair[0]) }, LOAD(0), FAILS_NEVER, 0 },
		{ STEP_CLOSE_REPORT_OURS, SYS_close, { AT(report[0]) }, LOAD(0), FAILS_NEVER, 0 },
		{ STEP_GO, AT(go), { 0 }, LOAD(LOADS_CODE), FAILS_NEVER, STEP_CLOSE_MEMFD_UNUSED },
		{ STEP_CLOSE_MEMFD, SYS_close, { RESULT(STEP_MEMFD) }, LOAD(0), FAILS_NEVER, 0 },
		{ STEP_CLOSE_MEMFD_UNUSED,
		  SYS_close,
		  { RESULT(STEP_MEMFD) },
		  LOAD(0),
		  FAILS_NEVER,
		  0 },
		{ STEP_CLOSE_SOCKET, SYS_close, { AT(pair[1]) }, LOAD(0), FAILS_NEVER, 0 },
		{ STEP_CLOSE_REPORT, SYS_close, { AT(report[1]) }, LOAD(0), FAILS_NEVER, 0 },
	};

	add_rows(area, base, rows, ARRAY_SIZE(rows));
}

static void make_calls(struct area *area, uint64_t base, const struct inject_target *target,
                       uint64_t mark)
{
	uint64_t call = AT(step) + STEP_CALL * sizeof(struct step);
	uint64_t word = call + offsetof(struct step, arg[PLAN_WORD]);
	const struct inject_plan_row rows[] = {
		{ STEP_DLOPEN,
		  target->dlopen,
		  { AT(path), target->mode },
		  0,
		  FAILS_ZERO,
		  STEP_DLERROR },
		{ STEP_DLSYM,
		  target->dlsym,
		  { RESULT(STEP_DLOPEN), AT(function) },
		  LOAD(0),
		  FAILS_ZERO,
		  STEP_DLERROR },
		{ STEP_LOADED_AT, SYS_clock_gettime, { CLOCK_REALTIME, word }, 0, FAILS_NEVER, 0 },
		{ STEP_LOADED,
		  SYS_sendto,
		  { AT(report[1]), word, sizeof(struct plan_word), MSG_NOSIGNAL },
		  LOAD(0),
		  FAILS_ERROR,
		  STEP_CLOSE_SOCKET },
		{ STEP_CALL,
		  RESULT(STEP_DLSYM),
		  { AT(pair[1]), [5] = mark },
		  LOAD(0) | LOAD(LOADS_CODE),
		  FAILS_NEVER,
		  0 },
		{ STEP_CALLED, 0, { 0 }, 0, FAILS_NEVER, STEP_TOLD_AT },
		{ STEP_DLERROR, target->dlerror, { 0 }, 0, FAILS_ZERO, STEP_CLOSE_MEMFD_UNUSED },
		{ STEP_ERROR_LENGTH,
		  target->code + (uint64_t)(inject_code_length - inject_code),
		  { RESULT(STEP_DLERROR) },
		  LOAD(0),
		  FAILS_NEVER,
		  0 },
		{ STEP_ERROR_TEXT,
		  SYS_sendto,
		  { AT(report[1]), RESULT(STEP_DLERROR), RESULT(STEP_ERROR_LENGTH), MSG_NOSIGNAL },
		  LOAD(0) | LOAD(1) | LOAD(2),
		  FAILS_NEVER,
		  0 },
		{ STEP_TOLD_AT, SYS_clock_gettime, { CLOCK_REALTIME, word }, 0, FAILS_NEVER, 0 },
		{ STEP_TELL,
		  SYS_sendto,
		  { AT(report[1]), call, sizeof(struct step), MSG_NOSIGNAL },
		  LOAD(0),
		  FAILS_NEVER,
		  0 },
	};

	add_rows(area, base, rows, ARRAY_SIZE(rows));
}

/* Where the library is there already: nothing to close, nothing to open. */
static void make_short(struct area *area, uint64_t base, const struct inject_target *target)
{
	const struct inject_plan_row jump = {
		STEP_DLOPEN, 0, { 0 }, 0, FAILS_NEVER, STEP_LOADED_AT
	};

	if (!target->loaded)
		return;
	add_rows(area, base, &jump, 1);
	area->step[STEP_CALL].code = target->loaded;
	area->step[STEP_CALL].loads &= ~(uint64_t)LOAD(LOADS_CODE);
}

void plan_make(struct plan *plan, const struct inject_target *target,
               const struct inject_options *options, uint64_t base)
{
	struct area *area = &plan->area;

	memset(plan, 0, sizeof(*plan));
	if (getrandom(&plan->mark, sizeof(plan->mark), GRND_NONBLOCK) != sizeof(plan->mark))
		plan->mark = base ^ (uint64_t)getpid() << 48;
	area->head.errno_location = target->errno_location;
	area->head.xsave = xsave_bytes() != 0;
	area->head.state = base + STATE_AT;
	area->pair[0] = area->pair[1] = area->report[0] = area->report[1] = -1;
	area->step[STEP_MEMFD].result = (uint64_t)-1;
	snprintf(area->name, sizeof(area->name), "%s", options->name);
	snprintf(area->function, sizeof(area->function), "%s", options->function);
	make_descriptors(area, base);
	make_calls(area, base, target, plan->mark);
	make_short(area, base, target);
}

uint64_t plan_first(const struct plan *plan, const struct inject_target *target, uint64_t base)
{
	return AT(step) + (target->loaded ? STEP_PAIR : STEP_MEMFD) * sizeof(struct step);
}

#endif
