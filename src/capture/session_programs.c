// SPDX-License-Identifier: MIT
/* Of a session: the eBPF programs as its options want them, where this kernel lets them be. */
#include "capture/session.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"

/*
 * Only a session declines the return of a single hit. With the other mechanisms a return probe is
 * there for every process that maps the file, also for those under seccomp, which it would kill.
 */
static void check_returns(struct capture *c, enum mechanism mechanism)
{
	c->seccomp_safe = !c->options.returns || kernel_has(c->features, FEATURE_SECCOMP_SAFE);
	if (c->seccomp_safe || mechanism == MECHANISM_SESSION)
		return;
	c->options.returns = c->run.returns = false;
	c->seccomp_safe = true;
	capture_notice(
		c, "only entries are hooked, so there are no durations and results: this kernel's "
		   "return probes kill processes under seccomp, and cannot be left out for those "
		   "alone; newer stable releases of this kernel are free of that");
}

static int set_name(struct capture *c, struct err *err)
{
	struct wire_glob glob;
	int r = target_glob(&c->options.target, &glob, err);

	if (r)
		return r;
	r = programs_name_set(c->programs, &glob);
	return r ? err_set(err, r, "--name: telling the eBPF programs: %s", strerror(-r)) : 0;
}

/* The number of the cgroup that is asked for, by which the programs know it. */
static int find_cgroup(struct capture *c, __u64 *id, struct err *err)
{
	int folder = target_cgroup_open(&c->options.target, err), r = 0;
	struct stat st;

	if (folder < 0)
		return folder;
	if (fstat(folder, &st))
		r = err_set(err, errno, "--cgroup: %s", strerror(errno));
	*id = r ? 0 : st.st_ino;
	close(folder);
	return r;
}

/* Where there is none, numbers of stacks can be foretold, and nothing else is lost. */
static uint64_t chance(void)
{
	uint64_t number = 0;

	return getrandom(&number, sizeof(number), GRND_NONBLOCK) == sizeof(number)
	               ? number
	               : 0x9e3779b97f4a7c15ull;
}

/* The programs' kinds of calls: those who wait in a copy ask for it under both names. */
uint8_t capture_stack_kinds(uint32_t calls)
{
	uint8_t kinds = 0;

	if (calls & STACK_CALLS_LAUNCHES)
		kinds |= 1 << STACK_OF_LAUNCH;
	if (calls & STACK_CALLS_COPIES)
		kinds |= 1 << STACK_OF_COPY | 1 << STACK_OF_WAITING_COPY;
	if (calls & STACK_CALLS_WAITS)
		kinds |= 1 << STACK_OF_WAIT | 1 << STACK_OF_WAITING_COPY;
	if (calls & STACK_CALLS_ALLOCATIONS)
		kinds |= 1 << STACK_OF_ALLOCATION | 1 << STACK_OF_FREE;
	if (calls & STACK_CALLS_HOOKS)
		kinds |= 1 << STACK_OF_HOOK;
	return kinds;
}

/* Without rights every feature would seem to be missing: that comes first. */
static int check_kernel(const struct capture *c, enum mechanism mechanism, struct err *err)
{
	int64_t offset_ns;

	if (kernel_refuses(c->features))
		return err_set(err, EPERM, PROGRAMS_REFUSED);
	if (!kernel_has(c->features, FEATURE_PIDS))
		return err_set(
			err, ENOTSUP,
			"cuscope runs in a pid namespace of its own (a container?), while the "
			"kernel reports the host's process ids: run it on the host, or start "
			"the container with --pid=host");
	if (!process_clock_offset(getpid(), &offset_ns) || offset_ns)
		return err_set(err, ENOTSUP,
		               "cuscope runs in a time namespace, whose clock is not the one that "
		               "the kernel reports times by: run it outside of that");
	if (!kernel_has(c->features, FEATURE_BTF))
		return err_set(
			err, ENOTSUP,
			"this kernel has no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF), "
			"which the eBPF programs need; 'cuscope doctor' tells more");
	if ((mechanism == MECHANISM_SINGLE || mechanism == MECHANISM_STUB) &&
	    kernel_lacks_because(c->features, FEATURE_UPROBE) == -EACCES)
		return err_set(
			err, EPERM,
			"no function can be hooked: without links for a file's functions (Linux "
			"6.6) this kernel wants CAP_SYS_ADMIN for that, which cuscope has not "
			"('cuscope doctor' tells more; docs/install.md has the agent's unit)");
	return 0;
}

static void set_stacks(struct programs_options *options, const struct capture_stacks *stacks)
{
	options->stacks = true;
	options->settings.sample_ns = stacks->sample_ns;
	options->settings.stack_seed = chance();
	options->settings.call_stacks = capture_stack_kinds(stacks->calls);
	options->settings.call_stack_one_in = stacks->one_in;
	options->settings.call_stack_ns = stacks->call_ns;
	options->settings.blocked = stacks->blocked || stacks->host_waits;
	options->settings.walk_blocked = stacks->blocked;
	options->settings.host_waits = stacks->host_waits;
	options->settings.bare_waits = stacks->bare_waits;
	options->settings.blocked_ns = stacks->blocked_ns;
}

static void set_watch(struct capture *c, struct programs_options *options,
                      const struct watch_options *watch)
{
	c->cuda_only = options->settings.all && !c->inside && !c->options.selection.hooks;
	options->settings.fold = c->options.selection.fold = watch->tools;
	options->settings.stacks = watch->stacks;
	options->settings.cuda_only = c->cuda_only;
}

/* What the programs are told once they are there. */
static int tell_programs(struct capture *c, struct err *err)
{
	int r = 0;

	programs_state(c->programs)->name_offset = KERNEL_HANDLE_NAME_OFFSET;
	programs_state(c->programs)->kernels_mix = (uint32_t)chance() | 1;
	if (c->options.target.kind == TARGET_NAME)
		r = set_name(c, err);
	if (!r)
		r = programs_follow_processes(c->programs, &c->mmap_seen, err);
	if (!r && c->mmap_seen && !kernel_has(c->features, FEATURE_TRACEFS)) { /* --without */
		programs_stop_holding(c->programs);
		c->mmap_seen = false;
	}
	return r;
}

int session_load_programs(struct capture *c, struct err *err)
{
	const struct capture_options *o = &c->options;
	struct programs_options options = {
		.mechanism = mechanism_best(c->features),
		.ring_bytes = o->ring_bytes,
		.own_hooks = own_hooks_kinds(o->selection.hooks),
		.settings = {
			.all = o->target.kind == TARGET_ALL,
			.cgroup = o->target.kind == TARGET_CGROUP,
			.nested_returns = o->nested_returns,
			.begin_records = o->begin_records,
			.name = o->target.kind == TARGET_NAME,
			.follow = o->target.follow,
			.inside = c->inside != NULL,
			.driver_calls = o->kernel && !o->watch,
		},
	};
	int r = check_kernel(c, options.mechanism, err);

	if (r)
		return r;
	check_returns(c, options.mechanism);
	options.settings.returns = c->options.returns;
	options.settings.seccomp_entry_only = !c->seccomp_safe;
	if (o->stacks)
		set_stacks(&options, o->stacks);
	if (o->watch)
		set_watch(c, &options, o->watch);
	if (o->target.kind == TARGET_CGROUP)
		r = find_cgroup(c, &options.settings.cgroup_id, err);
	if (!r)
		r = programs_load(&options, &c->programs, err);
	return r ? r : tell_programs(c, err);
}
