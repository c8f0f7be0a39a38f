// SPDX-License-Identifier: MIT
#include "probe/own_programs.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/array.h"
#include "bpf/wire_hooks.h"
#include "probe/bpf_call.h"

#define SHARES 4096 /* processes whose calls that wait are counted */

static const struct {
	const char *name;
	unsigned kind;
	bool session, pair; /* for which mechanisms */
	const char *exit;   /* the array that stubs of old kernels find it by */
} programs[] = {
	{ "hook_session", OWN_HOOKS_USER, true, false, NULL },
	{ "hook_enter", OWN_HOOKS_USER, false, true, "hook_exit" },
	{ "hook_return", OWN_HOOKS_USER, false, true, NULL },
	{ "khook_enter", OWN_HOOKS_KERNEL, true, true, "khook_exit" },
	{ "khook_return", OWN_HOOKS_KERNEL, true, true, "khook_return_exit" },
	{ "hook_tracepoint", OWN_HOOKS_TRACE, true, true, "trace_exit" },
};

static bool is_wanted(size_t i, enum mechanism mechanism, unsigned kinds)
{
	return (kinds & programs[i].kind) &&
	       (mechanism == MECHANISM_SESSION ? programs[i].session : programs[i].pair);
}

static int size_map(struct bpf_object *object, const char *name, uint32_t entries)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	return map ? bpf_map__set_max_entries(map, entries) : -ENOENT;
}

int own_programs_choose(struct bpf_object *object, enum mechanism mechanism, unsigned kinds,
                        bool driver_calls)
{
	static const unsigned attach_type[] = { [MECHANISM_SESSION] = ATTACH_UPROBE_SESSION,
		                                [MECHANISM_MULTI] = ATTACH_UPROBE_MULTI,
		                                [MECHANISM_SINGLE] = 0,
		                                [MECHANISM_STUB] = 0 };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct bpf_program *program =
			bpf_object__find_program_by_name(object, programs[i].name);

		bpf_program__set_autoload(program, is_wanted(i, mechanism, kinds));
		if (programs[i].kind == OWN_HOOKS_USER)
			bpf_program__set_expected_attach_type(program, attach_type[mechanism]);
	}
	if (kinds || driver_calls)
		r = size_map(object, "call_shares", SHARES);
	if (!kinds || r)
		return r;
	r = size_map(object, "hook_plans", WIRE_HOOK_PLANS);
	return r ? r : size_map(object, "hook_frames", WIRE_HOOK_FRAMES);
}

int own_programs_fill(struct bpf_object *object, enum mechanism mechanism, unsigned kinds)
{
	uint32_t zero = 0;

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct bpf_program *program =
			bpf_object__find_program_by_name(object, programs[i].name);
		int fd = program ? bpf_program__fd(program) : -1;

		if (mechanism != MECHANISM_STUB || !programs[i].exit ||
		    !is_wanted(i, mechanism, kinds))
			continue;
		if (bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, programs[i].exit),
		                        &zero, &fd, BPF_ANY))
			return -errno;
	}
	return 0;
}

int programs_hook_enter_fd(const struct programs *p)
{
	return programs_fd(p, programs_mechanism(p) == MECHANISM_SESSION ? "hook_session"
	                                                                 : "hook_enter");
}

int programs_hook_return_fd(const struct programs *p)
{
	return programs_mechanism(p) == MECHANISM_SESSION ? -1 : programs_fd(p, "hook_return");
}
