// SPDX-License-Identifier: MIT
#include "report/names.h"

#include <ctype.h>
#include <string.h>

#include "cuda/kernel_name.h"

void add_kernel_name(struct buf *out, const struct kernel *kernel, enum kernel_names names)
{
	size_t len;

	if (names == NAMES_BASE) {
		const char *base = kernel_name_base(kernel->name, &len);

		buf_add(out, base, len);
	} else {
		buf_puts(out, names == NAMES_MANGLED && kernel->mangled ? kernel->mangled
		                                                        : kernel->name);
	}
}

/* Versions of functions that are exported, _v2, are a part of the name. */
static size_t length_without_version(const char *name)
{
	size_t len = strlen(name), at = len;

	while (at && isdigit((unsigned char)name[at - 1]))
		at--;
	return len - at >= 4 && at > 2 && !memcmp(name + at - 2, "_v", 2) ? at - 2 : len;
}

void add_function_name(struct buf *out, const struct function *function)
{
	buf_add(out, function->name, length_without_version(function->name));
}

const char *operation_name(const struct activity *activity)
{
	static const char *const copy[DIRECTION_COUNT] = {
		[DIRECTION_NONE] = "[CUDA memcpy Unknown]",
		[DIRECTION_H2D] = "[CUDA memcpy Host-to-Device]",
		[DIRECTION_D2H] = "[CUDA memcpy Device-to-Host]",
		[DIRECTION_D2D] = "[CUDA memcpy Device-to-Device]",
		[DIRECTION_H2H] = "[CUDA memcpy Host-to-Host]",
		[DIRECTION_P2P] = "[CUDA memcpy Peer-to-Peer]",
		[DIRECTION_DEFAULT] = "[CUDA memcpy Unknown]",
	};

	switch (activity->kind) {
	case ACTIVITY_COPY:
		return copy[activity->direction];
	case ACTIVITY_SET:
		return "[CUDA memset]";
	case ACTIVITY_GRAPH_RUN:
		return "[CUDA graph]";
	default:
		return NULL;
	}
}
