// SPDX-License-Identifier: MIT
#include "report/who_columns.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "cuda/kernel_name.h"

/* ---- names --------------------------------------------------------------------------------- */

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

	if (activity->kind == ACTIVITY_COPY)
		return copy[activity->direction];
	return activity_words[activity->kind].operation;
}

/* ---- who columns --------------------------------------------------------------------------- */

struct heading {
	enum run_identity_word word;
	const char *report, *page; /* NULL: only a page's json has it */
};

static const struct heading headings[] = {
	{ RUN_IDENTITY_USER, "User", "USER" },
	{ RUN_IDENTITY_JOB, "Job", "JOB" },
	{ RUN_IDENTITY_RANK, "Rank", "RANK" },
	{ RUN_IDENTITY_NAMESPACE, "Namespace", "NAMESPACE" },
	{ RUN_IDENTITY_POD, "Pod", "POD" },
	{ RUN_IDENTITY_CONTAINER, "Container", "CONTAINER" },
	{ RUN_IDENTITY_STEP, NULL, NULL },
	{ RUN_IDENTITY_LOCAL_RANK, NULL, NULL },
	{ RUN_IDENTITY_WORLD_SIZE, NULL, NULL },
	{ RUN_IDENTITY_COMMAND, NULL, NULL },
	{ RUN_IDENTITY_UNIT, NULL, NULL },
};

void who_words_of(const struct run_info *run, uint32_t pid, uint64_t begin_ns,
                  struct who_words *who)
{
	const struct run_identity *identity = run_identity_of(run, pid, begin_ns);

	memset(who, 0, sizeof(*who));
	for (size_t i = 0; identity && i < RUN_IDENTITY_WORDS; i++)
		who->words[i] = identity->words[i];
}

static bool any_has(const struct run_info *run, enum run_identity_word word)
{
	for (size_t i = 0; i < run->n_identities; i++) {
		if (run->identities[i].words[word])
			return true;
	}
	return false;
}

size_t who_columns(const struct run_info *run, unsigned offset, bool page,
                   struct table_column *into)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(headings); i++) {
		const struct heading *heading = &headings[i];

		if (!any_has(run, heading->word) || (!page && !heading->report))
			continue;
		into[n++] = (struct table_column){
			.name = page ? heading->page : heading->report,
			.type = TABLE_WORDS,
			.field = FIELD_TEXT,
			.offset = offset + (unsigned)(heading->word * sizeof(char *)),
			.key = run_identity_name(heading->word),
			.flags = page ? TABLE_ABSENT : 0,
		};
	}
	return n;
}
