// SPDX-License-Identifier: MIT
/*
 * Every way of attaching that this kernel has, from the one that is named down to the last: the
 * eBPF programs must load, and hooked calls of another process must come back one by one, with
 * their arguments and results. Needs no CUDA library, so that a failure here is one of the
 * programs or of the kernel.
 *
 *   ladder BEST        session, multi, single or stub: what this kernel must offer
 *
 * Programs that sum up, walk stacks or choose processes are loaded on the first rung that the
 * kernel has. With LADDER_ALL=1 in the environment they are on each, which an emulated machine
 * takes a minute for.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bpf/wire_fold.h"
#include "probe/attach.h"
#include "probe/programs.h"
#include "probe/kernel_features.h"
#include "trace/event.h"

#define CALLS 1000
#define HOOK  7

static const struct rung {
	const char *name;
	enum mechanism mechanism;
	const char *without; /* hides the rungs above */
} ladder[] = {
	{ "session", MECHANISM_SESSION, NULL },
	{ "multi", MECHANISM_MULTI, "session" },
	{ "single", MECHANISM_SINGLE, "session,multi" },
	{ "stub", MECHANISM_STUB, "session,multi,cookie" },
};
#define RUNGS (sizeof(ladder) / sizeof(*ladder))

static void call_and_exit(void)
{
	for (long i = 0; i < CALLS; i++)
		self_target(i, -i);
	_exit(0);
}

struct seen {
	pid_t child;
	bool call[CALLS]; /* by its argument: a child that changes its CPU changes the ring */
	long right, wrong;
};

static void check_record(struct seen *seen, const struct wire_head *head)
{
	const struct wire_call *call = (const struct wire_call *)head;
	uint64_t i = call->word[WIRE_AT_REG];

	if (head->type != WIRE_CALL || head->tgid != (uint32_t)seen->child)
		return;
	if (head->hook == HOOK && i < CALLS && !seen->call[i] &&
	    call->word[WIRE_AT_REG + 1] == -i && call->result == 0 &&
	    call->begin_ns <= head->time_ns) {
		seen->call[i] = true;
		seen->right++;
	} else {
		seen->wrong++;
	}
}

static void drain_ring(struct ring *ring, struct seen *seen)
{
	const struct wire_head *head;
	size_t bytes;

	while ((head = ring_peek(ring, &bytes))) {
		check_record(seen, head);
		ring_advance(ring);
	}
}

static void drain(struct programs *programs, struct seen *seen)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	const struct rings *rings = programs_rings(programs);

	for (int i = 0; i < 200 && seen->right + seen->wrong < CALLS; i++) {
		for (size_t ring = 0; ring < rings_count(rings); ring++)
			drain_ring(rings_at(rings, ring), seen);
		nanosleep(&pause, NULL);
	}
}

static uint64_t lost(struct programs *programs)
{
	uint64_t sum = 0;

	for (int i = 0; i < WIRE_LOST; i++)
		sum += programs_state(programs)->lost[i];
	return sum;
}

static int hook_and_count(struct programs *programs, struct seen *seen, struct err *err)
{
	struct attach_point point = {
		.offset = self_target_offset(),
		.cookie = cookie_with_hook(HOOK) | cookie_with_words(WIRE_AT_REG + 2) |
		          cookie_with_out0(COOKIE_NONE) | cookie_with_out1(COOKIE_NONE) |
		          cookie_with_blob(COOKIE_NONE) | cookie_with_string(COOKIE_NONE) |
		          cookie_with_kernel(COOKIE_NONE) | cookie_with_name_key(COOKIE_NONE),
	};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct attachment *attachment;
	int r = attach(programs, fd, &point, 1, true, false, &attachment, err);

	close(fd);
	if (r)
		return r;
	seen->child = fork();
	if (!seen->child)
		call_and_exit();
	waitpid(seen->child, NULL, 0);
	drain(programs, seen);
	attachment_free(attachment);
	return 0;
}

#define ALL_HOOKS (OWN_HOOKS_USER | OWN_HOOKS_KERNEL | OWN_HOOKS_TRACE)

/* The programs with all that sums up in them, which is most of what the verifier has to follow. */
static int load_folding(const struct programs_options *options, struct err *err)
{
	const uint32_t tools = FOLD_TOOL_MEMORY | FOLD_TOOL_LAUNCHES | FOLD_TOOL_COPIES;
	struct programs_options folding = *options;
	int r = 0;

	for (int way = 0; way < 4 && !r; way++) { /* with stacks, with hooks of one's own */
		struct programs *programs = NULL;

		folding.stacks = way & 1;
		folding.settings.stacks = way & 1;
		folding.own_hooks = way & 2 ? ALL_HOOKS : 0;
		folding.settings.fold = way & 2 ? tools | FOLD_TOOL_HOOKS : tools;
		r = programs_load(&folding, &programs, err);
		programs_free(programs);
	}
	return r;
}

/* The programs that walk stacks: of samples, and of calls as often as `one_in` and `call_ns` say.
 */
static int load_walking(const struct programs_options *options, uint32_t one_in, uint64_t call_ns,
                        struct err *err)
{
	struct programs_options walking = *options;
	struct programs *programs = NULL;
	int r;

	walking.stacks = true;
	walking.settings.sample_ns = 1000000;
	walking.settings.call_stacks = 0xfe;
	walking.own_hooks = ALL_HOOKS;
	walking.settings.call_stack_one_in = one_in;
	walking.settings.call_stack_ns = call_ns;
	r = programs_load(&walking, &programs, err);
	programs_free(programs);
	return r;
}

/*
 * Processes that are chosen by name or by cgroup: parts of the programs that the verifier never
 * sees when all processes are targets. They are attached too.
 */
static int load_choosing(const struct programs_options *options, uint32_t fold, struct err *err)
{
	struct programs_options choosing = *options;
	struct programs *programs = NULL;
	bool mmap_seen;
	int r = 0;

	choosing.settings.all = 0;
	choosing.settings.follow = 1;
	choosing.settings.fold = fold;
	for (int by_cgroup = 0; by_cgroup <= 1 && !r; by_cgroup++) {
		choosing.settings.name = !by_cgroup;
		choosing.settings.cgroup = by_cgroup;
		r = programs_load(&choosing, &programs, err);
		if (!r)
			r = programs_follow_processes(programs, &mmap_seen, err);
		programs_free(programs);
		programs = NULL;
	}
	return r;
}

/* What the simplest programs do not have in them. */
static int load_others(const struct rung *rung, const struct programs_options *options)
{
	struct err err = { 0 };
	const char *what = "summing up";
	int r = load_folding(options, &err);

	if (!r) {
		what = "walking stacks";
		r = load_walking(options, 8, 0, &err) || load_walking(options, 1, 1000000, &err);
	}
	if (!r) {
		what = "choosing by name or cgroup";
		r = load_choosing(options, 0, &err) ||
		    load_choosing(options, FOLD_TOOL_MEMORY, &err);
	}
	if (r)
		printf("FAIL: %s: %s: %s\n", rung->name, what, err.text);
	return r;
}

static bool climb(const struct rung *rung, bool best)
{
	struct programs_options options = { .settings = { .returns = 1, .all = 1 } };
	struct programs *programs = NULL;
	struct kernel_features *features;
	struct seen seen = { 0 };
	struct err err = { 0 };
	bool good = false;

	if (kernel_features_new(rung->without, &features, &err)) {
		printf("FAIL: %s: %s\n", rung->name, err.text);
		return false;
	}
	options.mechanism = mechanism_best(features);
	if (options.mechanism != rung->mechanism)
		printf("FAIL: %s: the kernel offers '%s' at best\n", rung->name,
		       mechanism_name(options.mechanism));
	else if (programs_load(&options, &programs, &err) || hook_and_count(programs, &seen, &err))
		printf("FAIL: %s: %s\n", rung->name, err.text);
	else if (seen.right != CALLS || seen.wrong || lost(programs))
		printf("FAIL: %s: of %d calls %ld came back right and %ld wrong, %lu were lost\n",
		       rung->name, CALLS, seen.right, seen.wrong, (unsigned long)lost(programs));
	else
		good = !(best || getenv("LADDER_ALL")) || !load_others(rung, &options);
	if (good)
		printf("ok: %s: %d calls came back with arguments and results\n", rung->name,
		       CALLS);
	programs_free(programs);
	kernel_features_free(features);
	return good;
}

int main(int argc, char **argv)
{
	size_t first = 0, passed = 0;

	while (first < RUNGS && argc == 2 && strcmp(ladder[first].name, argv[1]) != 0)
		first++;
	if (argc != 2 || first == RUNGS) {
		fprintf(stderr, "usage: ladder session|multi|single|stub\n");
		return 2;
	}
	for (size_t i = first; i < RUNGS; i++)
		passed += climb(&ladder[i], i == first);
	printf("%zu passed, %zu failed\n", passed, RUNGS - first - passed);
	return passed == RUNGS - first ? 0 : 1;
}
