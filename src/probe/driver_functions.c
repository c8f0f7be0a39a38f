// SPDX-License-Identifier: MIT
#include "probe/driver_functions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/array.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "nvidia/devices.h"
#include "probe/bpf_call.h"
#include "probe/driver_layout.h"
#include "probe/rings.h"

#define RING_BYTES (1 << 20) /* as in driver_maps.h */
#define HOOKS_MAX  16
#define ROWS_RM    64 /* sums of nvidia.ko are a few a process */

extern const char embedded_driver_bpf[], embedded_driver_bpf_end[];

/* One function, and the programs on it. Where it has another name in older drivers, that. */
static const struct function_row {
	enum driver_module module;
	const char *names[2];
	const char *entry, *leave; /* programs; NULL: none */
	const char *gives;
} rows[] = {
	{ DRIVER_UVM, { "uvm_perf_event_notify" }, "notify", NULL, "GPU faults, migrations" },
	{ DRIVER_UVM,
	  { "uvm_vm_fault_entry" },
	  "fault",
	  "fault_left",
	  "CPU faults with their time" },
	{ DRIVER_UVM, { "uvm_unlocked_ioctl_entry" }, "opened", NULL, "whose faults of a GPU are" },
	{ DRIVER_UVM,
	  { "uvm_release_entry" },
	  "released",
	  NULL,
	  "when memory is nobody's any more" },
	{ DRIVER_UVM,
	  { "uvm_parent_gpu_service_replayable_faults", "uvm_gpu_service_replayable_faults" },
	  "batch",
	  "batch_left",
	  "how long faults of a GPU take" },
	{ DRIVER_UVM, { "uvm_tools_record_thrashing" }, "thrashing", NULL, "thrashing" },
	{ DRIVER_UVM, { "uvm_tools_record_throttling_start" }, "throttling", NULL, "throttling" },
	{ DRIVER_UVM, { "uvm_tools_record_gpu_fatal_fault" }, "fatal", NULL, "fatal faults" },
	{ DRIVER_RM, { "nvidia_isr_msix" }, "interrupt", NULL, "interrupts" },
	{ DRIVER_RM, { "nv_post_event" }, "post", "post_left", "what wakes a waiting thread" },
	{ DRIVER_RM, { "nvidia_poll" }, NULL, "poll_left", "waits" },
	{ DRIVER_RM, { "nv_report_error" }, "xid", NULL, "Xids" },
};

struct driver_functions {
	enum driver_module module;
	struct bpf_object *object;
	struct btf *kernel_types, *types; /* of the module; NULL: it has none */
	struct driver_state *state;
	struct ring *ring;
	struct driver_hook told[HOOKS_MAX];
	size_t n_told;
	struct bpf_link *links[2 * HOOKS_MAX];
	size_t n_links;
};

const char *driver_module_name(enum driver_module module)
{
	return module == DRIVER_UVM ? "nvidia_uvm" : "nvidia";
}

/* Not while it is still being put together, when its functions are not there. */
bool driver_module_loaded(enum driver_module module)
{
	char path[64], state[16];

	snprintf(path, sizeof(path), "/sys/module/%s/initstate", driver_module_name(module));
	return file_line(path, state, sizeof(state)) && !strcmp(state, "live");
}

/* ---- which programs ------------------------------------------------------------------------ */

static struct bpf_program *program_of(const struct driver_functions *hooks, const char *name,
                                      bool types)
{
	char whole[64];

	snprintf(whole, sizeof(whole), "%s%s", name, types ? "_types" : "");
	return bpf_object__find_program_by_name(hooks->object, whole);
}

static bool has_type(const struct driver_functions *hooks, const char *function)
{
	return hooks->types && btf__find_by_name_kind(hooks->types, function, BTF_KIND_FUNC) > 0;
}

/* The name that this driver has for it, as far as its types tell; else the newer one. */
static const char *name_with_types(const struct driver_functions *hooks,
                                   const struct function_row *function)
{
	for (int i = 0; i < 2; i++) {
		if (function->names[i] && has_type(hooks, function->names[i]))
			return function->names[i];
	}
	return NULL;
}

static void want(const struct driver_functions *hooks, const char *program, const char *function)
{
	struct bpf_program *chosen;

	if (!program)
		return;
	chosen = program_of(hooks, program, function != NULL);
	if (function)
		bpf_program__set_attach_target(chosen, 0, function);
	bpf_program__set_autoload(chosen, true);
}

static bool has_xid_event(void)
{
	int fd = tracefs_open("events/nvidia/nvidia_dev_xid/id");

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool is_of(const struct driver_functions *hooks, const struct function_row *function)
{
	return function->module == hooks->module &&
	       (strcmp(function->entry ? function->entry : "", "xid") || !has_xid_event());
}

/* Tracepoints of the kernel; "waking" is of interest where threads wait for the driver. */
static const char *const of_threads[] = { "thread_over", "thread_execed", "waking" };

static size_t n_of_threads(const struct driver_functions *hooks)
{
	return ARRAY_SIZE(of_threads) - (hooks->module != DRIVER_RM);
}

static void choose_programs(struct driver_functions *hooks)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, hooks->object)
		bpf_program__set_autoload(program, false);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *name = name_with_types(hooks, &rows[i]);

		if (!is_of(hooks, &rows[i]))
			continue;
		want(hooks, rows[i].entry, name);
		want(hooks, rows[i].leave, name);
	}
	for (size_t i = 0; i < n_of_threads(hooks); i++)
		bpf_program__set_autoload(
			bpf_object__find_program_by_name(hooks->object, of_threads[i]), true);
	if (hooks->module != DRIVER_RM)
		return;
	bpf_program__set_autoload(bpf_object__find_program_by_name(hooks->object, "xid_event"),
	                          has_xid_event());
}

/* ---- loading ------------------------------------------------------------------------------- */

/* Each section has one variable. */
static int set_settings(struct driver_functions *hooks,
                        const struct driver_functions_options *options, struct err *err)
{
	struct bpf_map *map = bpf_section(hooks->object, ".rodata");
	size_t size = 0;
	struct driver_settings *settings =
		map ? (struct driver_settings *)bpf_map__initial_value(map, &size) : NULL;
	unsigned version = nvidia_driver_version();

	if (!settings || size < sizeof(*settings))
		return err_set(err, EINVAL, "the programs have no settings");
	settings->all = options->all;
	settings->cgroup = options->cgroup;
	settings->self_tgid = (__u32)getpid();
	if (!driver_layout_by_version(version, &settings->layout))
		return err_set(err, ENOTSUP,
		               "driver %u is too old: what it tells of faults is known since 515",
		               version);
	if (hooks->module == DRIVER_UVM && hooks->types)
		driver_layout_by_types(hooks->types, &settings->layout);
	return 0;
}

static int set_maps(struct driver_functions *hooks, const struct driver_functions_options *options)
{
	static const char *const sums[] = { "sums_even", "sums_odd", "few_even", "few_odd" };
	int r = 0;

	if (options->targets >= 0)
		r = bpf_map__reuse_fd(bpf_object__find_map_by_name(hooks->object, "targets"),
		                      options->targets);
	if (!r && options->cgroups >= 0)
		r = bpf_map__reuse_fd(bpf_object__find_map_by_name(hooks->object, "cgroups"),
		                      options->cgroups);
	for (size_t i = 0; !r && hooks->module == DRIVER_RM && i < ARRAY_SIZE(sums); i++)
		r = bpf_map__set_max_entries(bpf_object__find_map_by_name(hooks->object, sums[i]),
		                             ROWS_RM);
	return r;
}

static void read_types(struct driver_functions *hooks,
                       const struct driver_functions_options *options)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/kernel/btf/%s", driver_module_name(hooks->module));
	if (options->no_types || access(path, R_OK))
		return;
	hooks->kernel_types = btf__load_vmlinux_btf();
	if (hooks->kernel_types)
		hooks->types = btf__load_module_btf(driver_module_name(hooks->module),
		                                    hooks->kernel_types);
}

static int load(struct driver_functions *hooks, const struct driver_functions_options *options,
                struct err *err)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "cuscope_driver");
	int r;

	hooks->object = bpf_object__open_mem(embedded_driver_bpf,
	                                     embedded_driver_bpf_end - embedded_driver_bpf, &opts);
	if (!hooks->object)
		return err_set(err, errno, "opening the programs: %s", strerror(errno));
	read_types(hooks, options);
	choose_programs(hooks);
	r = set_settings(hooks, options, err);
	if (r)
		return r;
	r = set_maps(hooks, options);
	if (!r)
		r = bpf_object__load(hooks->object);
	if (r)
		return err_set(err, r, "loading the programs: %s", strerror(-r));
	hooks->ring =
		ring_open(dup(bpf_object__find_map_fd_by_name(hooks->object, "ring")), RING_BYTES);
	hooks->state = bpf_section_shared(hooks->object, sizeof(*hooks->state));
	return hooks->ring && hooks->state ? 0 : err_set(err, ENOMEM, "reading the programs' maps");
}

/* ---- attaching ----------------------------------------------------------------------------- */

/* What the kernel's number means here. */
static const char *refusal(int error, const char **advice)
{
	*advice = "";
	switch (error) {
	case ENOENT:
		return "this driver has no such function";
	case EINVAL:
		return "the kernel cannot trace this function";
	case EPERM:
	case EACCES:
		return "the kernel refuses it (lockdown=confidentiality?)";
	case EADDRNOTAVAIL:
		return "the kernel knows several functions of this name";
	case EOPNOTSUPP:
		return "this kernel has no kprobes";
	default:
		return strerror(error);
	}
}

static int keep(struct driver_functions *hooks, struct bpf_link *link)
{
	int error = errno;

	if (!link)
		return -(error ? error : EINVAL);
	hooks->links[hooks->n_links++] = link;
	return 0;
}

static int attach_one(struct driver_functions *hooks, const char *program, const char *function,
                      bool types, bool leave)
{
	struct bpf_program *chosen = program ? program_of(hooks, program, types) : NULL;

	if (!program)
		return 0;
	errno = 0;
	return keep(hooks, types ? bpf_program__attach(chosen)
	                         : bpf_program__attach_kprobe(chosen, leave, function));
}

/* The return first: an entry whose return is not seen would be taken for one under way. */
static int attach_both(struct driver_functions *hooks, const struct function_row *function,
                       const char *name, bool types)
{
	size_t before = hooks->n_links;
	int r = attach_one(hooks, function->leave, name, types, true);

	if (!r)
		r = attach_one(hooks, function->entry, name, types, false);
	while (r && hooks->n_links > before)
		bpf_link__destroy(hooks->links[--hooks->n_links]);
	return r;
}

static void tell(struct driver_functions *hooks, const char *function, const char *gives,
                 enum driver_way way, int error)
{
	struct driver_hook *hook = &hooks->told[hooks->n_told++];
	const char *advice;

	*hook = (struct driver_hook){ .function = function, .gives = gives, .way = way };
	if (way != WAY_NONE && !strcmp(function, "uvm_vm_fault_entry"))
		hooks->state->faults = 1;
	if (way == WAY_NONE)
		snprintf(hook->why, sizeof(hook->why), "%s", refusal(error, &advice));
}

static void attach_function(struct driver_functions *hooks, const struct function_row *function)
{
	const char *name = name_with_types(hooks, function);
	int r = -ENOENT;

	if (name) {
		r = attach_both(hooks, function, name, true);
		tell(hooks, name, function->gives, r ? WAY_NONE : WAY_TYPES, -r);
		return;
	}
	for (int i = 0; i < 2 && r == -ENOENT && function->names[i]; i++) {
		name = function->names[i];
		r = attach_both(hooks, function, name, false);
	}
	tell(hooks, r == -ENOENT ? function->names[0] : name, function->gives,
	     r ? WAY_NONE : WAY_KPROBE, -r);
}

static int attach_xid_event(struct driver_functions *hooks)
{
	int event = perf_tracepoint_open("nvidia/nvidia_dev_xid"), r;

	if (event < 0)
		return event;
	r = keep(hooks,
	         bpf_program__attach_perf_event(
			 bpf_object__find_program_by_name(hooks->object, "xid_event"), event));
	if (r)
		close(event);
	return r;
}

static void attach_all(struct driver_functions *hooks)
{
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (is_of(hooks, &rows[i]))
			attach_function(hooks, &rows[i]);
	}
	for (size_t i = 0; i < n_of_threads(hooks); i++)
		keep(hooks, bpf_program__attach(bpf_object__find_program_by_name(hooks->object,
		                                                                 of_threads[i])));
	if (hooks->module != DRIVER_RM)
		return;
	if (has_xid_event()) {
		r = attach_xid_event(hooks);
		tell(hooks, "nvidia:nvidia_dev_xid", "Xids", r ? WAY_NONE : WAY_TRACEPOINT, -r);
	}
}

int driver_functions_open(enum driver_module module, const struct driver_functions_options *options,
                          struct driver_functions **hooks, struct err *err)
{
	struct driver_functions *made = xcalloc(1, sizeof(*made));
	int r;

	made->module = module;
	r = load(made, options, err);
	if (r) {
		driver_functions_free(made);
		return r;
	}
	attach_all(made);
	*hooks = made;
	return 0;
}

void driver_functions_detach(struct driver_functions *hooks)
{
	while (hooks->n_links)
		bpf_link__destroy(hooks->links[--hooks->n_links]);
}

void driver_functions_free(struct driver_functions *hooks)
{
	if (!hooks)
		return;
	driver_functions_detach(hooks);
	ring_free(hooks->ring);
	if (hooks->state)
		munmap(hooks->state, sizeof(*hooks->state));
	bpf_object__close(hooks->object);
	btf__free(hooks->types);
	btf__free(hooks->kernel_types);
	free(hooks);
}

void driver_functions_each(const struct driver_functions *hooks,
                           void (*each)(void *data, const struct driver_hook *hook), void *data)
{
	for (size_t i = 0; i < hooks->n_told; i++)
		each(data, &hooks->told[i]);
}

/* ---- reading ------------------------------------------------------------------------------- */

void driver_functions_read(struct driver_functions *hooks,
                           void (*each)(void *data, const struct wire_driver_event *event),
                           void *data)
{
	const struct wire_head *head;
	size_t bytes;

	while ((head = ring_peek(hooks->ring, &bytes))) {
		if (bytes >= sizeof(struct wire_driver_event))
			each(data, (const struct wire_driver_event *)head);
		ring_advance(hooks->ring);
	}
}

static void drain(struct driver_functions *hooks, const char *name,
                  void (*each)(void *data, const struct driver_key *key,
                               const struct driver_sum *sum),
                  void *data)
{
	int map = bpf_object__find_map_fd_by_name(hooks->object, name);
	struct driver_key key;
	struct driver_sum sum;

	for (int i = 0; i < DRIVER_ROWS && !bpf_map_get_next_key(map, NULL, &key); i++) {
		if (!bpf_map_lookup_elem(map, &key, &sum) && sum.count)
			each(data, &key, &sum);
		if (bpf_map_delete_elem(map, &key))
			break;
	}
}

void driver_functions_sums(struct driver_functions *hooks, bool last,
                           void (*each)(void *data, const struct driver_key *key,
                                        const struct driver_sum *sum),
                           void *data)
{
	static const char *const names[2][2] = { { "sums_even", "few_even" },
		                                 { "sums_odd", "few_odd" } };
	uint32_t side = hooks->state->side & 1, other = side ^ 1;

	for (int i = 0; i < 2; i++) {
		drain(hooks, names[other][i], each, data);
		if (last)
			drain(hooks, names[side][i], each, data);
	}
	__atomic_store_n(&hooks->state->side, other, __ATOMIC_RELEASE);
}

bool driver_functions_xids(const struct driver_functions *hooks)
{
	for (size_t i = 0; i < hooks->n_told; i++) {
		if (!strcmp(hooks->told[i].gives, "Xids") && hooks->told[i].way != WAY_NONE)
			return true;
	}
	return false;
}

const struct driver_state *driver_functions_state(const struct driver_functions *hooks)
{
	return hooks->state;
}
