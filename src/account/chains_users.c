// SPDX-License-Identifier: MIT
/* Which frames of a stack are the user's: see chains.h. */
#include <string.h>

#include "account/chains_inside.h"
#include "analysis/by_id.h"

/* ---- frames ---------------------------------------------------------------------------------- */

static enum place_compiler users_compiler(struct chains *chains, const struct stack_frame *frame)
{
	struct known_frame *known = chains_known(chains, frame);

	if (!known->compiler)
		known->compiler = (uint8_t)place_compiler(frame);
	return (enum place_compiler)known->compiler;
}

/* As place_package(); one that is longer than any is none. */
static size_t users_package(struct chains *chains, const struct stack_frame *frame,
                            const char **name)
{
	struct known_frame *known = chains_known(chains, frame);
	size_t length;

	if (!frame->file)
		return 0;
	if (known->package_file != frame->file) {
		length = place_package(frame, name);
		known->package_file = frame->file;
		known->package_letters = length > UINT8_MAX ? 0 : (uint8_t)length;
		known->package = length ? (uint32_t)(*name - frame->file) : 0;
	}
	*name = known->package_letters ? frame->file + known->package : NULL;
	return known->package_letters;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static bool users_begin(const struct stack_frame *frame)
{
	return chains_begins(frame) || (frame->function && !strcmp(frame->function, "main"));
}

/* What the user's innermost line calls, where that is known to be no loop of the user's. */
static void users_find_package(struct chains *chains, const struct stack_frame *const *frames,
                               size_t n, struct chains_users *users)
{
	bool any = users->innermost == n || users_begin(frames[users->innermost]);
	const char *name;
	size_t length = 0;

	for (size_t i = users->innermost; i-- > 0 && !length;)
		if (chains_rank(chains, frames[i]) == PLACE_PYTHON_LIBRARY)
			length = users_package(chains, frames[i], &name);
	if (!length || !(any || place_package_loops(name, length)))
		return;
	users->package = name;
	users->package_length = length;
}

static bool users_have_package(struct chains *chains, const struct chains_users *users,
                               const struct stack_frame *frame)
{
	const char *name;

	return users->package && users_package(chains, frame, &name) == users->package_length &&
	       !strncmp(name, users->package, users->package_length);
}

struct chains_users chains_users_find(struct chains *chains,
                                      const struct stack_frame *const *frames, size_t n)
{
	struct chains_users users = { .innermost = n };

	for (size_t i = 0; i < n && users.innermost == n; i++) {
		enum place_rank rank = chains_rank(chains, frames[i]);

		users.python |= rank <= PLACE_PYTHON_LIBRARY;
		if (rank == PLACE_PYTHON)
			users.innermost = i;
		else if (rank == PLACE_PYTHON_LIBRARY)
			users.called = i + 1;
	}
	if (users.python)
		users_find_package(chains, frames, n, &users);
	return users;
}

/*
 * Native code that Python calls is mostly a library's: those of wheels have no lines, and Python's
 * own modules are called like all that are compiled for one of its versions.
 */
bool chains_users_has(struct chains *chains, const struct chains_users *users,
                      const struct stack_frame *frame, size_t i)
{
	enum place_rank rank = chains_rank(chains, frame);

	if (rank == PLACE_PYTHON_LIBRARY)
		return users_have_package(chains, users, frame);
	if (rank != PLACE_NATIVE || !users->python)
		return rank == PLACE_PYTHON || rank == PLACE_NATIVE;
	return i >= users->called && i < users->innermost && frame->file && frame->line &&
	       !(frame->module && strstr(frame->module, ".cpython-"));
}

const struct stack_frame *chains_users_compiled(struct chains *chains,
                                                const struct chains_users *users,
                                                const struct stack_frame *const *frames,
                                                bool *compiles)
{
	size_t i = users->innermost, caller = i;

	*compiles = false;
	while (i-- > 0 && !*compiles) {
		enum place_compiler compiler = users_compiler(chains, frames[i]);

		*compiles = compiler == PLACE_COMPILER;
		if (compiler == PLACE_NO_COMPILER &&
		    chains_rank(chains, frames[i]) == PLACE_PYTHON_LIBRARY)
			caller = i;
	}
	return *compiles && users->python && caller < users->innermost ? frames[caller] : NULL;
}
