// SPDX-License-Identifier: MIT
#include "report/who_columns.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"

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
