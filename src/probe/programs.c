// SPDX-License-Identifier: MIT
#include "probe/programs.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/xalloc.h"
#include "probe/bpf_call.h"
#include "probe/fold.h"
#include "probe/stub.h"

extern const char embedded_bpf[], embedded_bpf_end[];
extern const char embedded_fold_bpf[], embedded_fold_bpf_end[]; /* those that sum calls up */

struct programs {
	enum mechanism mechanism;
	struct bpf_object *object;
	struct wire_state *state;
	size_t n_rings, ring_bytes;
	struct ring *rings[WIRE_RINGS_MAX];
	int ring_map;
	pthread_t filler; /* fills ring_map while the programs are loaded */
	bool filling;
	int fill_error;
	struct bpf_link *process_links[4];
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
		return err_set(err, EPERM,
		               "the kernel refuses eBPF programs: cuscope needs root, or CAP_BPF, "
		               "CAP_PERFMON, CAP_SYS_PTRACE and CAP_SYS_ADMIN (try sudo)");
	return err_set(err, code,
	               "loading the eBPF programs (%s): %s%s%s; 'cuscope doctor' tells more",
	               mechanism_names[p->mechanism], strerror(-code), libbpf_words[0] ? ": " : "",
	               libbpf_words);
}

static void choose_programs(struct programs *p)
{
	static const struct {
		const char *name;
		bool session, pair;
	} calls[] = { { "call_session", true, false },
		      { "call_enter", false, true },
		      { "call_return", false, true } };
	static const unsigned attach_type[] = { [MECHANISM_SESSION] = ATTACH_UPROBE_SESSION,
		                                [MECHANISM_MULTI] = ATTACH_UPROBE_MULTI,
		                                [MECHANISM_SINGLE] = 0,
		                                [MECHANISM_STUB] = 0 };

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		struct bpf_program *prog =
			bpf_object__find_program_by_name(p->object, calls[i].name);

		bpf_program__set_autoload(prog, p->mechanism == MECHANISM_SESSION ? calls[i].session
		                                                                  : calls[i].pair);
		bpf_program__set_expected_attach_type(prog, attach_type[p->mechanism]);
	}
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

static struct bpf_map *section_map(struct bpf_object *object, const char *ending)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		const char *name = bpf_map__name(map);
		size_t len = strlen(name), end = strlen(ending);

		if (len >= end && !strcmp(name + len - end, ending))
			return map;
	}
	return NULL;
}

static int write_settings(struct programs *p, const struct wire_settings *settings)
{
	struct bpf_map *map = section_map(p->object, ".rodata");
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
	struct bpf_map *map = section_map(p->object, ".bss");
	long at = variable_offset(p->object, ".bss", "state");
	size_t page = getpagesize(),
	       bytes = (at + sizeof(struct wire_state) + page - 1) & ~(page - 1);
	char *memory;

	if (!map || at < 0)
		return -EINVAL;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (memory == MAP_FAILED)
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
		p->rings[i] = ring_open(fd, bytes);
		if (!p->rings[i])
			return -errno;
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
		fds[i] = ring_fd(p->rings[i]);
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
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = ring_fd(p->rings[0]));
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

static int fill_stub_exit(struct programs *p)
{
	int map = bpf_object__find_map_fd_by_name(p->object, "stub_exit"), enter;
	uint32_t zero = 0;

	if (p->mechanism != MECHANISM_STUB)
		return 0;
	enter = programs_enter_fd(p);
	return bpf_map_update_elem(map, &zero, &enter, BPF_ANY) ? -errno : 0;
}

static int open_object(struct programs *p, const struct programs_options *options)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "cuscope");
	struct wire_settings settings = options->settings;
	const char *from = settings.fold ? embedded_fold_bpf : embedded_bpf;
	const char *end = settings.fold ? embedded_fold_bpf_end : embedded_bpf_end;
	int r;

	p->object = bpf_object__open_mem(from, end - from, &opts);
	if (!p->object)
		return -errno;
	choose_programs(p);
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
	r = write_settings(p, &settings);
	if (!r)
		r = fold_size_maps(p->object, settings.fold);
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
		r = fill_stub_exit(p);
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
	for (size_t i = 0; i < sizeof(p->process_links) / sizeof(*p->process_links); i++)
		bpf_link__destroy(p->process_links[i]);
	end_ring_map(p);
	if (p->ring_map > 0)
		close(p->ring_map);
	for (size_t i = 0; i < p->n_rings; i++)
		ring_free(p->rings[i]);
	bpf_object__close(p->object);
	free(p);
}

/* ---- attaching to processes ---------------------------------------------------------------- */

/* By the tracepoint's number: libbpf would look for it under a mounted tracefs only. */
static struct bpf_link *attach_mmap(struct bpf_program *program)
{
	int fd = tracefs_open("events/syscalls/sys_enter_mmap/id"), event;
	struct bpf_link *link;
	char text[32] = "";

	if (fd < 0)
		return NULL;
	if (read(fd, text, sizeof(text) - 1) <= 0)
		text[0] = '\0';
	close(fd);
	event = perf_tracepoint_open(atoi(text));
	if (event < 0)
		return NULL;
	link = bpf_program__attach_perf_event(program, event);
	if (!link)
		close(event);
	return link;
}

int programs_watch_processes(struct programs *p, bool *mmap_seen, struct err *err)
{
	static const char *const names[] = { "on_fork", "on_exec", "on_exit" };

	for (size_t i = 0; i < 3; i++) {
		struct bpf_program *prog = bpf_object__find_program_by_name(p->object, names[i]);

		p->process_links[i] = bpf_program__attach(prog);
		if (!p->process_links[i])
			return err_set(err, errno,
			               "attaching to the kernel's process tracepoints: %s",
			               strerror(errno));
	}
	p->process_links[3] = attach_mmap(bpf_object__find_program_by_name(p->object, "on_mmap"));
	*mmap_seen = p->process_links[3] != NULL;
	return 0;
}

/* Closing a tracepoint's event waits until the program runs nowhere any more. */
void programs_stop_holding(struct programs *p)
{
	bpf_link__destroy(p->process_links[3]);
	p->process_links[3] = NULL;
}

enum mechanism programs_mechanism(const struct programs *p)
{
	return p->mechanism;
}

static int program_fd(const struct programs *p, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(p->object, name));
}

int programs_enter_fd(const struct programs *p)
{
	return program_fd(p, p->mechanism == MECHANISM_SESSION ? "call_session" : "call_enter");
}

int programs_return_fd(const struct programs *p)
{
	return p->mechanism == MECHANISM_SESSION ? -1 : program_fd(p, "call_return");
}

int programs_stub(struct programs *p, uint64_t cookie, struct err *err)
{
	int fd = stub_load(bpf_object__find_map_fd_by_name(p->object, "scratch"),
	                   bpf_object__find_map_fd_by_name(p->object, "stub_exit"), cookie);

	return fd < 0 ? err_set(err, fd, "loading a stub: %s", strerror(-fd)) : fd;
}

struct wire_state *programs_state(struct programs *p)
{
	return p->state;
}

int programs_map(const struct programs *p, const char *name)
{
	return bpf_object__find_map_fd_by_name(p->object, name);
}

/* ---- targets ------------------------------------------------------------------------------- */

int programs_target_add(struct programs *p, pid_t tgid, uint32_t flags)
{
	uint32_t key = tgid;

	return bpf_map_update_elem(programs_map(p, "targets"), &key, &flags, BPF_ANY) ? -errno : 0;
}

bool programs_target_has(struct programs *p, pid_t tgid)
{
	uint32_t key = tgid, flags;

	return bpf_map_lookup_elem(programs_map(p, "targets"), &key, &flags) == 0;
}

void programs_target_remove(struct programs *p, pid_t tgid)
{
	uint32_t key = tgid;

	bpf_map_delete_elem(programs_map(p, "targets"), &key);
}

void programs_thread_forget(struct programs *p, pid_t tid)
{
	uint32_t key = tid;

	bpf_map_delete_elem(programs_map(p, "threads"), &key);
}

bool programs_thread_in_call(const struct programs *p, pid_t tid, uint64_t *begin_ns)
{
	struct wire_thread *thread = xmalloc(sizeof(*thread));
	uint32_t key = (uint32_t)tid;
	bool in_call =
		bpf_map_lookup_elem(programs_map(p, "threads"), &key, thread) == 0 && thread->depth;

	if (in_call)
		*begin_ns = thread->frame[0].call.begin_ns;
	free(thread);
	return in_call;
}

int programs_cgroup_set(struct programs *p, int cgroup_fd)
{
	uint32_t zero = 0;

	return bpf_map_update_elem(programs_map(p, "cgroups"), &zero, &cgroup_fd, BPF_ANY) ? -errno
	                                                                                   : 0;
}

void programs_file_known(struct programs *p, uint32_t dev, uint64_t inode)
{
	const uint64_t key[2] = { inode, dev };
	const uint8_t yes = 1;

	bpf_map_update_elem(programs_map(p, "known_files"), key, &yes, BPF_ANY);
}

/* ---- records ------------------------------------------------------------------------------- */

size_t programs_rings(const struct programs *p)
{
	return p->n_rings;
}

size_t programs_ring_bytes(const struct programs *p)
{
	return p->ring_bytes;
}

struct ring *programs_ring(struct programs *p, size_t index)
{
	return p->rings[index];
}

void programs_awake(struct programs *p)
{
	memset(p->state->woken, 0, sizeof(p->state->woken));
}

void programs_open_calls(struct programs *p, programs_record_fn each, void *data)
{
	struct wire_thread *thread = xmalloc(sizeof(*thread));
	uint32_t tid, next;
	int map = programs_map(p, "threads"), r = bpf_map_get_next_key(map, NULL, &next);
	struct timespec now;
	uint64_t now_ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = now.tv_sec * 1000000000ull + now.tv_nsec;
	for (; r == 0; r = bpf_map_get_next_key(map, &tid, &next)) {
		tid = next;
		if (bpf_map_lookup_elem(map, &tid, thread))
			continue;
		for (uint32_t i = 0; i < thread->depth && i < WIRE_DEPTH_MAX; i++) {
			struct wire_call *call = &thread->frame[i].call;

			if (call->begin_ns > now_ns) /* began while this was read */
				break;
			call->head.flags |= WIRE_UNFINISHED;
			call->head.time_ns = now_ns;
			each(data, &call->head, WIRE_CALL_BYTES(call->head.words));
		}
	}
	free(thread);
}
