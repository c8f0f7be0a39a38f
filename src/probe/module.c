// SPDX-License-Identifier: MIT
#include "probe/module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/order.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/person.h"

/* Bytes of a function that are looked through for jumps to the chosen place. */
#define CODE_WINDOW 4096

enum wire_stack_kind hook_stack_kind(const struct hook *hook)
{
	switch (hook->api ? api_op(hook->api) : OP_NONE) {
	case OP_LAUNCH:
	case OP_GRAPH_LAUNCH:
		return STACK_OF_LAUNCH;
	case OP_COPY:
		return api_is_async(hook->api) ? STACK_OF_COPY : STACK_OF_WAITING_COPY;
	case OP_SET:
		return STACK_OF_COPY;
	case OP_SYNC:
		return STACK_OF_WAIT;
	case OP_ALLOC:
		return STACK_OF_ALLOCATION;
	case OP_FREE:
		return STACK_OF_FREE;
	default:
		return STACK_OF_NOTHING;
	}
}

uint64_t hook_cookie(const struct hook *hook)
{
	const struct capture_plan *plan = &hook->plan;
	unsigned words = plan->blob != PLAN_NO_ARG ? WIRE_AT_BLOB + plan->blob_words
	                 : plan->stack             ? WIRE_AT_STACK + plan->stack
	                                           : WIRE_AT_REG + plan->regs;

	return cookie_with_hook(hook->id) | cookie_with_words(words) |
	       cookie_with_stack(plan->stack) | cookie_with_out0(plan->out[0]) |
	       cookie_with_out1(plan->out[1]) | cookie_with_out0_wide(plan->out_bytes[0] == 8) |
	       cookie_with_out1_wide(plan->out_bytes[1] == 8) | cookie_with_blob(plan->blob) |
	       cookie_with_blob_words(plan->blob_words) |
	       cookie_with_blob_on_return(plan->blob_on_return) | cookie_with_string(plan->string) |
	       cookie_with_kernel(plan->kernel) | cookie_with_name_key(plan->name_key) |
	       cookie_with_forgets_kernels(plan->forgets_kernels) |
	       cookie_with_runtime(hook->layer == LAYER_RUNTIME) |
	       cookie_with_runtime_launch(hook->group == HOOK_RUNTIME_LAUNCH) |
	       cookie_with_proves_driver(hook_proves_driver(hook)) |
	       cookie_with_stack_kind(hook_stack_kind(hook));
}

bool hook_proves_driver(const struct hook *hook)
{
	/* cost.c measures with one that has no name */
	return hook->layer == LAYER_DRIVER && hook->name && !strcmp(hook->name, "cuInit");
}

static void plan_nothing(struct capture_plan *plan)
{
	*plan = (struct capture_plan){
		.out = { PLAN_NO_ARG, PLAN_NO_ARG },
		.blob = PLAN_NO_ARG,
		.string = PLAN_NO_ARG,
		.kernel = PLAN_NO_ARG,
		.name_key = PLAN_NO_ARG,
	};
}

struct function_name {
	const char *text;
};

ORDER_BY(compare_names, struct function_name, BY_TEXT(text));

#define LAUNCH "__cudaLaunch"

static bool is_inner_launch(const char *name)
{
	return !strncmp(name, LAUNCH, strlen(LAUNCH));
}

/* All names in order, where some are to be looked for: a file can have 16,384 of each kind. */
static struct function_name *sort_names(const struct elf_function *functions, size_t count)
{
	struct function_name *names;
	size_t inner = 0;

	for (size_t i = 0; i < count; i++)
		inner += is_inner_launch(functions[i].name);
	if (!inner)
		return NULL;
	names = xcalloc(count, sizeof(*names));
	for (size_t i = 0; i < count; i++)
		names[i].text = functions[i].name;
	qsort(names, count, sizeof(*names), compare_names);
	return names;
}

/* CUDA 13's __cudaLaunchKernel is `push; mov; pop; jmp cudaLaunchKernel`: one call, one event. */
static bool only_jumps(const struct function_name *names, size_t count, const char *name)
{
	return is_inner_launch(name) && bsearch(&(struct function_name){ name + 2 }, names, count,
	                                        sizeof(*names), compare_names);
}

static void choose_placement(struct hook *hook, const struct elf_file *file,
                             const struct elf_function *function)
{
	/* multi-byte nops are left out: 6.1 single-steps them, and no CUDA library begins so */
	const struct emulation emulation = { .nop5 = false };
	size_t len = CODE_WINDOW;
	const uint8_t *code = elf_file_bytes(file, function->offset, &len);

	placement_choose(code, len, function->size, ABI_NATIVE, &emulation, &hook->placement);
}

static void make_hooks(struct module *module, const struct elf_file *file,
                       const struct selection *selection)
{
	const struct elf_function *functions;
	size_t count = elf_file_functions(file, &functions);
	AT_END(at_end_free) struct function_name *names = sort_names(functions, count);

	module->hooks = xcalloc(count, sizeof(*module->hooks));
	module->n_hooks = count;
	for (size_t i = 0; i < count; i++) {
		struct hook *hook = &module->hooks[i];

		hook->name = xstrdup(functions[i].name);
		hook->also = functions[i].also ? xstrdup(functions[i].also) : NULL;
		hook->layer = functions[i].layer;
		hook->api = api_find(hook->name);
		hook->entry = functions[i].offset;
		hook->address = functions[i].address;
		hook->size = functions[i].size;
		if (hook->api)
			api_plan(hook->api, ABI_NATIVE, &hook->plan);
		else
			plan_nothing(&hook->plan);
		hook->group = selection_group(selection, hook->name, hook->layer, &hook->why);
		if (only_jumps(names, count, hook->name)) {
			hook->group = HOOK_OFF;
			hook->why = "only jumps to the function without __, which is hooked";
		}
		choose_placement(hook, file, &functions[i]);
	}
}

int module_open(int fd, const char *path, enum elf_depth depth, const struct selection *selection,
                struct module **module, struct err *err)
{
	struct elf_file *file = NULL;
	struct stat st = { 0 };
	const char *slash = strrchr(path, '/');
	/* before it is read: what changes meanwhile is noticed */
	uint64_t stamp = module_file_stamp(fd), written = module_file_written(fd);
	struct own_module *own;
	struct module *m;
	int r = 2; /* undecided */

	if (own_module_open(fd, path, depth, selection->hooks, &own))
		r = elf_file_open(fd, path, own ? ELF_WHOLE : depth, &file, err);
	if (r == 1 && own)
		r = 0; /* no CUDA library, and hooked all the same */

	if (!r && helper_is_users(fd)) {
		elf_file_free(file);
		r = err_set(err, EREMOTE,
		            "%s is of a file system that a user has mounted (FUSE, or an overlay, "
		            "which may lie on one): its server could stop the machine when probes "
		            "are put there: use a copy elsewhere",
		            path);
	}
	if (r < 0 && helper_was_unanswered(fd))
		r = err_set(err, ETIMEDOUT, "cannot read %s: no answer came in time", path);
	if (r) {
		own_module_free(own);
		helper_close(fd);
		return r;
	}
	m = xcalloc(1, sizeof(*m));
	file_stat(fd, &st);
	m->owner = person_of_file(st.st_uid, helper_mapped_by(fd));
	m->stamp = stamp;
	m->written = written;
	m->dev = st.st_dev;
	m->inode = st.st_ino;
	m->path = xstrdup(path);
	m->name = m->path + (slash ? slash - path + 1 : 0);
	m->fd = fd;
	m->own = own;
	if (file) {
		m->has[LAYER_DRIVER] = elf_file_has_layer(file, LAYER_DRIVER);
		m->has[LAYER_RUNTIME] = elf_file_has_layer(file, LAYER_RUNTIME);
		make_hooks(m, file, selection);
	}
	elf_file_free(file);
	*module = m;
	return 0;
}

void module_free(struct module *module)
{
	if (!module)
		return;
	module_detach(module);
	own_module_free(module->own);
	MAP_FREE(module->late, free);
	for (size_t i = 0; i < module->n_hooks; i++) {
		free((char *)module->hooks[i].name);
		free((char *)module->hooks[i].also);
	}
	free(module->hooks);
	free(module->path);
	helper_close(module->fd);
	free(module);
}

size_t module_wants(const struct module *module)
{
	size_t n = 0;

	for (size_t i = 0; i < module->n_hooks; i++)
		n += module->hooks[i].group != HOOK_OFF;
	return n;
}

/* Of a file with more functions than any CUDA library, those that are some tell most. */
void module_limit(struct module *module, size_t count, const char *why)
{
	for (int known = 1; known >= 0; known--) {
		for (size_t i = 0; i < module->n_hooks; i++) {
			struct hook *hook = &module->hooks[i];

			if (hook->group == HOOK_OFF || (hook->api != NULL) != known)
				continue;
			if (count) {
				count--;
				continue;
			}
			hook->group = HOOK_OFF;
			hook->why = why;
		}
	}
}

bool module_is_alike(const struct module *module, const struct module *other)
{
	if (module->n_hooks != other->n_hooks)
		return false;
	for (size_t i = 0; i < module->n_hooks; i++) {
		const struct hook *a = &module->hooks[i], *b = &other->hooks[i];

		if (strcmp(a->name, b->name) || a->entry != b->entry ||
		    a->placement.skip != b->placement.skip)
			return false;
	}
	return true;
}

static uint64_t stamp_of(const struct stat *st, const struct timespec *time)
{
	return wire_file_stamp((uint64_t)st->st_size, (uint64_t)time->tv_sec,
	                       (uint64_t)time->tv_nsec);
}

uint64_t module_file_stamp(int fd)
{
	struct stat st;

	return file_stat(fd, &st) ? 0 : stamp_of(&st, &st.st_ctim);
}

uint64_t module_file_written(int fd)
{
	struct stat st;

	return file_stat(fd, &st) ? 0 : stamp_of(&st, &st.st_mtim);
}
