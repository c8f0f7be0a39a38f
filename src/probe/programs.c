// SPDX-License-Identifier: MIT
#include "probe/programs.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "bpf/wire_hooks.h"
#include "probe/bpf_call.h"
#include "probe/driver_hooks.h"
#include "probe/fold.h"
#include "trace/event.h"

#define SHARES 4096 /* processes whose calls that wait are counted */

extern const char embedded_bpf[], embedded_bpf_end[];
extern const char embedded_fold_bpf[], embedded_fold_bpf_end[];     /* those that sum calls up */
extern const char embedded_stacks_bpf[], embedded_stacks_bpf_end[]; /* those that walk stacks */
extern const char embedded_memory_bpf[], embedded_memory_bpf_end[]; /* both */

struct programs {
	enum mechanism mechanism;
	struct bpf_object *object;
	struct wire_state *state;
	size_t n_rings, ring_bytes;
	struct ring *ring[WIRE_RINGS_MAX];
	struct rings *rings; /* all of them */
	int ring_map;
	pthread_t filler; /* fills ring_map while the programs are loaded */
	bool filling;
	int fill_error;
	struct bpf_link *process_links[10];
};

static const char *const mechanism_names[] = {
	[MECHANISM_SESSION] = "uprobe session",
	[MECHANISM_MULTI] = "uprobe_multi",
	[MECHANISM_SINGLE] = "single uprobes with cookies",
	[MECHANISM_STUB] = "single uprobes with stubs",
};

const char *mechanism_name(enum mechanism mechanism)
{
	return mechanism_names[mechanism];
}

enum mechanism mechanism_best(struct kernel_features *features)
{
	if (kernel_has(features, FEATURE_SESSION))
		return MECHANISM_SESSION;
	if (kernel_has(features, FEATURE_MULTI))
		return MECHANISM_MULTI;
	return kernel_has(features, FEATURE_COOKIE) ? MECHANISM_SINGLE : MECHANISM_STUB;
}

/* ---- loading ------------------------------------------------------------------------------- */

/* libbpf explains failures on stderr; what it said last is kept for the error's sentence. */
static char libbpf_words[512];

/* The verifier's log is long: its complaint is the line before the statistics. */
static void keep_verdict(char *log)
{
	char *end = strstr(log, "\nprocessed "), *line;

	if (!end)
		return;
	*end = '\0';
	line = strrchr(log, '\n');
	snprintf(libbpf_words, sizeof(libbpf_words), "the verifier says: %s",
	         line ? line + 1 : log);
}

static int keep_libbpf_words(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char *text = NULL;

	if (level != LIBBPF_WARN || vasprintf(&text, fmt, ap) < 0)
		return 0;
	if (strstr(text, "BEGIN PROG LOAD LOG")) {
		keep_verdict(text);
	} else if (!libbpf_words[0]) {
		text[strcspn(text, "\n")] = '\0';
		snprintf(libbpf_words, sizeof(libbpf_words), "%s", text);
	}
	free(text);
	return 0;
}

static int load_failed(struct programs *p, int code, struct err *err)
{
	if (code == -EPERM)
		return err_set(err, EPERM, PROGRAMS_REFUSED);
	return err_set(err, code,
	               "loading the eBPF programs (%s): %s%s%s; 'cuscope doctor' tells more",
	               mechanism_names[p->mechanism], strerror(-code), libbpf_words[0] ? ": " : "",
	               libbpf_words);
}

/* Programs at probes: of the functions of CUDA, and of hooks that users ask for. */
static const struct probe_program {
	const char *name;
	unsigned kind;            /* enum own_hooks_kind; 0: always wanted */
	bool session, pair, user; /* for which mechanisms; by uprobes */
	const char *exit;         /* the array that stubs of old kernels find it by */
} probe_programs[] = {
	{ "call_session", 0, true, false, true, NULL },
	{ "call_enter", 0, false, true, true, "stub_exit" },
	{ "call_return", 0, false, true, true, NULL },
	{ "hook_session", OWN_HOOKS_USER, true, false, true, NULL },
	{ "hook_enter", OWN_HOOKS_USER, false, true, true, "hook_exit" },
	{ "hook_return", OWN_HOOKS_USER, false, true, true, NULL },
	{ "khook_enter", OWN_HOOKS_KERNEL, true, true, false, "khook_exit" },
	{ "khook_return", OWN_HOOKS_KERNEL, true, true, false, "khook_return_exit" },
	{ "hook_tracepoint", OWN_HOOKS_TRACE, true, true, false, "trace_exit" },
};

static bool is_wanted(const struct probe_program *program, enum mechanism mechanism, unsigned kinds)
{
	return (!program->kind || (kinds & program->kind)) &&
	       (mechanism == MECHANISM_SESSION ? program->session : program->pair);
}

static void choose_programs(struct programs *p, unsigned kinds)
{
	static const unsigned attach_type[] = { [MECHANISM_SESSION] = ATTACH_UPROBE_SESSION,
		                                [MECHANISM_MULTI] = ATTACH_UPROBE_MULTI,
		                                [MECHANISM_SINGLE] = 0,
		                                [MECHANISM_STUB] = 0 };

	for (size_t i = 0; i < ARRAY_SIZE(probe_programs); i++) {
		const struct probe_program *one = &probe_programs[i];
		struct bpf_program *program =
			bpf_object__find_program_by_name(p->object, one->name);

		bpf_program__set_autoload(program, is_wanted(one, p->mechanism, kinds));
		if (one->user)
			bpf_program__set_expected_attach_type(program, attach_type[p->mechanism]);
	}
}

/* Their maps. Shares of calls that wait are those of calls to the driver, too. */
static int size_maps_of_hooks(struct programs *p, unsigned kinds, bool driver_calls)
{
	const struct {
		const char *name;
		uint32_t entries;
		bool wanted;
	} maps[] = { { "call_shares", SHARES, kinds || driver_calls },
		     { "hook_plans", WIRE_HOOK_PLANS, kinds != 0 },
		     { "hook_frames", WIRE_HOOK_FRAMES, kinds != 0 } };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(maps) && !r; i++)
		if (maps[i].wanted)
			r = bpf_map__set_max_entries(
				bpf_object__find_map_by_name(p->object, maps[i].name),
				maps[i].entries);
	return r;
}

static const char *const of_blocked[] = { "on_switch",        "on_waking",   "on_interrupt",
	                                  "on_interrupt_end", "on_softirq",  "on_softirq_end",
	                                  "on_timer",         "on_timer_end" };

static void leave_out(struct programs *p, const char *name, bool unwanted)
{
	struct bpf_program *program = bpf_object__find_program_by_name(p->object, name);

	if (program && unwanted)
		bpf_program__set_autoload(program, false);
}

/* Offset of a variable in a data section, from the object's own types. */
static long variable_offset(struct bpf_object *object, const char *section, const char *name)
{
	const struct btf *btf = bpf_object__btf(object);
	int id = btf__find_by_name_kind(btf, section, BTF_KIND_DATASEC);
	const struct btf_type *sec = id > 0 ? btf__type_by_id(btf, id) : NULL;

	for (int i = 0; sec && i < btf_vlen(sec); i++) {
		const struct btf_var_secinfo *var = btf_var_secinfos(sec) + i;
		const struct btf_type *type = btf__type_by_id(btf, var->type);

		if (!strcmp(btf__name_by_offset(btf, type->name_off), name))
			return var->offset;
	}
	return -1;
}

static int write_settings(struct programs *p, const struct wire_settings *settings)
{
	struct bpf_map *map = bpf_section(p->object, ".rodata");
	long at = variable_offset(p->object, ".rodata", "settings");
	size_t size = 0;
	char *data = map ? (char *)bpf_map__initial_value(map, &size) : NULL;

	if (!data || at < 0 || at + sizeof(*settings) > size)
		return -EINVAL;
	memcpy(data + at, settings, sizeof(*settings));
	return 0;
}

static int map_state(struct programs *p)
{
	long at = variable_offset(p->object, ".bss", "state");
	char *memory;

	if (at < 0)
		return -EINVAL;
	memory = bpf_section_shared(p->object, at + sizeof(struct wire_state));
	if (!memory)
		return -errno;
	p->state = (struct wire_state *)(memory + at);
	return 0;
}

static size_t power_of_two_below(size_t value)
{
	size_t power = 1;

	while (power * 2 <= value)
		power *= 2;
	return power;
}

/* A ring for each CPU up to 32: then CPUs share. Sizes are powers of two, as ring buffers want. */
static int make_rings(struct programs *p, size_t total)
{
	size_t cpus = libbpf_num_possible_cpus(), bytes;

	p->rings = rings_new();
	p->n_rings = power_of_two_below(cpus * 2 - 1);
	if (p->n_rings > 32)
		p->n_rings = 32;
	if (!total)
		total = p->n_rings * (8 << 20) > (256 << 20) ? 256 << 20 : p->n_rings * (8 << 20);
	bytes = power_of_two_below(total / p->n_rings);
	if (bytes < (size_t)getpagesize())
		bytes = getpagesize();
	if (bytes > 1u << 30) /* max_entries is 32 bits wide */
		bytes = 1u << 30;
	p->ring_bytes = bytes * p->n_rings;
	for (size_t i = 0; i < p->n_rings; i++) {
		int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "cuscope_ring", 0, 0, bytes, NULL);

		if (fd < 0)
			return fd;
		p->ring[i] = ring_open(fd, bytes);
		if (!p->ring[i])
			return -errno;
		rings_add(p->rings, p->ring[i]);
	}
	return 0;
}

/*
 * Filling a map of maps waits for a grace period, ten milliseconds and more, so it goes on while
 * the programs are loaded; all rings at once where the kernel can (5.13).
 */
static void *fill_ring_map(void *argument)
{
	struct programs *p = argument;
	uint32_t keys[WIRE_RINGS_MAX], count = p->n_rings;
	int fds[WIRE_RINGS_MAX];

	for (uint32_t i = 0; i < count; i++) {
		keys[i] = i;
		fds[i] = ring_fd(p->ring[i]);
	}
	if (bpf_map_update_batch(p->ring_map, keys, fds, &count, NULL) == 0 && count == p->n_rings)
		return NULL;
	for (uint32_t i = 0; i < p->n_rings; i++) {
		if (bpf_map_update_elem(p->ring_map, &keys[i], &fds[i], BPF_ANY))
			p->fill_error = -errno;
	}
	return NULL;
}

static int begin_ring_map(struct programs *p)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = ring_fd(p->ring[0]));
	int r;

	p->ring_map =
		bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "rings", 4, 4, WIRE_RINGS_MAX, &opts);
	if (p->ring_map < 0)
		return -errno;
	r = bpf_map__reuse_fd(bpf_object__find_map_by_name(p->object, "rings"), p->ring_map);
	if (r)
		return r;
	if (pthread_create(&p->filler, NULL, fill_ring_map, p))
		fill_ring_map(p);
	else
		p->filling = true;
	return 0;
}

static int end_ring_map(struct programs *p)
{
	if (p->filling)
		pthread_join(p->filler, NULL);
	p->filling = false;
	return p->fill_error;
}

/* Where stubs go on. */
static int fill_exits(const struct programs *p, unsigned kinds)
{
	uint32_t zero = 0;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(probe_programs) && !r; i++) {
		const struct probe_program *one = &probe_programs[i];
		int fd;

		if (p->mechanism != MECHANISM_STUB || !one->exit ||
		    !is_wanted(one, p->mechanism, kinds))
			continue;
		fd = programs_fd(p, one->name);
		if (bpf_map_update_elem(programs_map(p, one->exit), &zero, &fd, BPF_ANY))
			r = -errno;
	}
	return r;
}

static int open_object(struct programs *p, const struct programs_options *options)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "cuscope");
	struct wire_settings settings = options->settings;
	const char *from = embedded_bpf, *end = embedded_bpf_end;
	int r;

	if (settings.fold && options->stacks) {
		from = embedded_memory_bpf;
		end = embedded_memory_bpf_end;
	} else if (settings.fold) {
		from = embedded_fold_bpf;
		end = embedded_fold_bpf_end;
	} else if (options->stacks) {
		from = embedded_stacks_bpf;
		end = embedded_stacks_bpf_end;
	}
	p->object = bpf_object__open_mem(from, end - from, &opts);
	if (!p->object)
		return -errno;
	choose_programs(p, options->own_hooks);
	leave_out(p, "on_rename", !settings.name);
	leave_out(p, "on_rename_again", !settings.name);
	leave_out(p, "on_cgroup", !settings.cgroup);
	leave_out(p, "on_sample", settings.fold != 0); /* sums have no samples */
	for (size_t i = 0; i < ARRAY_SIZE(of_blocked); i++)
		leave_out(p, of_blocked[i], !settings.blocked);
	driver_hooks_choose(p->object, settings.driver_calls);
	settings.own_hooks = options->own_hooks != 0;
	r = size_maps_of_hooks(p, options->own_hooks, settings.driver_calls);
	if (!r)
		r = make_rings(p, options->ring_bytes);
	if (r)
		return r;
	settings.self_tgid = getpid();
	settings.ring_mask = p->n_rings - 1;
	settings.wake_bytes = p->ring_bytes / p->n_rings / 4;
	settings.cookies = p->mechanism != MECHANISM_STUB;
	if (p->mechanism != MECHANISM_SESSION) {
		settings.nested_returns = 1;     /* their traps cannot be declined, so use them */
		settings.seccomp_entry_only = 0; /* not decided at the hit: see attach.h */
	}
	fold_set_shares(&settings);
	r = write_settings(p, &settings);
	if (!r)
		r = fold_size_maps(p->object, settings.fold);
	if (!r && settings.cuda_only)
		fold_shrink_maps(p->object);
	return r ? r : begin_ring_map(p);
}

/* 5.10 accounts eBPF memory against RLIMIT_MEMLOCK; single links take a descriptor or two each. */
static void raise_limits(void)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit files = { 65536, 65536 };

	setrlimit(RLIMIT_MEMLOCK, &all);
	if (setrlimit(RLIMIT_NOFILE, &files) && !getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

int programs_load(const struct programs_options *options, struct programs **programs,
                  struct err *err)
{
	struct programs *p = xcalloc(1, sizeof(*p));
	int r;

	p->mechanism = options->mechanism;
	libbpf_words[0] = '\0';
	libbpf_set_print(keep_libbpf_words);
	raise_limits();
	r = open_object(p, options);
	if (!r)
		r = bpf_object__load(p->object);
	if (!r)
		r = map_state(p);
	if (!r)
		r = end_ring_map(p);
	if (!r)
		r = fill_exits(p, options->own_hooks);
	if (!r)
		fold_fill_users(p);
	if (!r && options->settings.fold)
		r = fold_fill_tables(p);
	if (r) {
		load_failed(p, r, err);
		programs_free(p);
		return r;
	}
	*programs = p;
	return 0;
}

void programs_free(struct programs *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(p->process_links); i++)
		bpf_link__destroy(p->process_links[i]);
	end_ring_map(p);
	if (p->ring_map > 0)
		close(p->ring_map);
	rings_free(p->rings);
	for (size_t i = 0; i < p->n_rings; i++)
		ring_free(p->ring[i]);
	bpf_object__close(p->object);
	free(p);
}

/* ---- attaching to processes ---------------------------------------------------------------- */

/* By the tracepoint's number: libbpf would look for it under a mounted tracefs only. */
static struct bpf_link *attach_by_perf(struct bpf_program *program, const char *tracepoint)
{
	int event = perf_tracepoint_open(tracepoint);
	struct bpf_link *link = event < 0 ? NULL : bpf_program__attach_perf_event(program, event);

	if (event >= 0 && !link)
		close(event);
	return link;
}

/* Raw tracepoints; the links after them are those by way of perf. */
static const char *const process_programs[] = { "on_fork",       "on_exec",        "on_exit",
	                                        "on_rename",     "on_cgroup",      "on_fork_again",
	                                        "on_exec_again", "on_rename_again" };
#define MMAP_LINK (ARRAY_SIZE(process_programs))
#define EXIT_LINK (MMAP_LINK + 1)

int programs_follow_processes(struct programs *p, bool *mmap_seen, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(process_programs); i++) {
		struct bpf_program *prog =
			bpf_object__find_program_by_name(p->object, process_programs[i]);

		if (!bpf_program__autoload(prog))
			continue;
		p->process_links[i] = bpf_program__attach(prog);
		if (!p->process_links[i])
			return err_set(err, errno,
			               "attaching to the kernel's process tracepoints: %s",
			               strerror(errno));
	}
	p->process_links[MMAP_LINK] = attach_by_perf(
		bpf_object__find_program_by_name(p->object, "on_mmap"), "syscalls/sys_enter_mmap");
	/* without it the other exit program is alone, and counted when it is left out */
	p->process_links[EXIT_LINK] =
		attach_by_perf(bpf_object__find_program_by_name(p->object, "on_exit_by_perf"),
	                       "sched/sched_process_exit");
	*mmap_seen = p->process_links[MMAP_LINK] != NULL;
	return 0;
}

/* Closing a tracepoint's event waits until the program runs nowhere any more. */
void programs_stop_holding(struct programs *p)
{
	bpf_link__destroy(p->process_links[MMAP_LINK]);
	p->process_links[MMAP_LINK] = NULL;
}

enum mechanism programs_mechanism(const struct programs *p)
{
	return p->mechanism;
}

int programs_fd(const struct programs *p, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(p->object, name));
}

int programs_probe_fd(const struct programs *p, bool own, bool returns)
{
	static const char *const enter[] = { "call_enter", "hook_enter" };
	static const char *const leave[] = { "call_return", "hook_return" };
	static const char *const session[] = { "call_session", "hook_session" };

	return programs_fd(p, p->mechanism == MECHANISM_SESSION ? session[own]
	                      : returns                         ? leave[own]
	                                                        : enter[own]);
}

struct wire_state *programs_state(struct programs *p)
{
	return p->state;
}

int programs_map(const struct programs *p, const char *name)
{
	return bpf_object__find_map_fd_by_name(p->object, name);
}

_Static_assert(LOST_COUNT <= WIRE_LOST, "every reason has its place in struct wire_state");

/* The kernel counts them since 5.12; before, nobody knows. */
static uint64_t left_out(const struct bpf_program *program)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);
	int fd = bpf_program__fd(program);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size))
		return 0;
	return info.recursion_misses;
}

static const char *const twins[][2] = { { "on_fork", "on_fork_again" },
	                                { "on_exec", "on_exec_again" },
	                                { "on_rename", "on_rename_again" },
	                                { "on_exit", "on_exit_by_perf" } };

/* An event is missed when both of its programs are left out: the lesser number at most. */
static uint64_t left_out_both(const struct programs *p, const char *const names[2])
{
	uint64_t one = left_out(bpf_object__find_program_by_name(p->object, names[0]));
	uint64_t other = left_out(bpf_object__find_program_by_name(p->object, names[1]));

	if (!strcmp(names[1], "on_exit_by_perf") && !p->process_links[EXIT_LINK])
		return one;
	return one < other ? one : other;
}

static bool is_twin(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(twins); i++) {
		if (!strcmp(name, twins[i][0]) || !strcmp(name, twins[i][1]))
			return true;
	}
	return false;
}

/* Its runs tell what threads and CPUs do, and none of any call. */
static bool is_of_moments(const char *name)
{
	static const char *const names[] = { "on_switch",    "on_waking",        "on_sample",
		                             "on_interrupt", "on_interrupt_end", "on_timer",
		                             "on_timer_end", "on_softirq",       "on_softirq_end" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(name, names[i]))
			return true;
	}
	return false;
}

static void add_left_out(const struct programs *p, uint64_t *lost)
{
	struct bpf_program *program;

	for (size_t i = 0; i < ARRAY_SIZE(twins); i++)
		lost[LOST_NOT_RUN] += left_out_both(p, twins[i]);
	bpf_object__for_each_program(program, p->object)
	{
		const char *name = bpf_program__name(program);

		if (!is_twin(name))
			lost[is_of_moments(name) ? LOST_MOMENTS : LOST_NOT_RUN] +=
				left_out(program);
	}
}

void programs_lost(const struct programs *p, uint64_t *lost)
{
	for (int i = 0; i < LOST_COUNT; i++)
		lost[i] += p->state->lost[i];
	add_left_out(p, lost);
}

/* ---- records ------------------------------------------------------------------------------- */

struct rings *programs_rings(struct programs *p)
{
	return p->rings;
}

void programs_awake(struct programs *p)
{
	memset(p->state->woken, 0, sizeof(p->state->woken));
}
