// SPDX-License-Identifier: MIT
/* Of a session: hooks of the kernel that users asked for. */
#include "capture/session.h"

#define LOOK_NS 1000000000ull /* for modules that are not loaded yet */

static void miss(void *data, enum miss_kind kind, const char *name, const char *why)
{
	struct capture *c = data;

	modules_lock(c->modules);
	modules_miss(c->modules, kind, name, "the kernel", 0, "%s", why);
	modules_unlock(c->modules);
}

void session_hook_kernel(struct capture *c)
{
	const unsigned kinds = OWN_HOOKS_KERNEL | OWN_HOOKS_TRACE;

	if (c->own && (own_hooks_kinds(c->options.selection.hooks) & kinds))
		c->own_kernel = own_kernel_new(c->own, miss, c);
}

void session_hook_kernel_again(struct capture *c, uint64_t now_ns)
{
	if (!c->own_kernel || now_ns - c->own_looked_ns < LOOK_NS)
		return;
	c->own_looked_ns = now_ns;
	own_kernel_look_again(c->own_kernel, miss, c);
}
