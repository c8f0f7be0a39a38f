// SPDX-License-Identifier: MIT
/* What functions of hooks mean, by their names and those of their arguments. */
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/collectives_inside.h"
#include "base/array.h"
#include "cuda/api.h"

#define ARGS_UNKNOWN UINT8_MAX

const char *collective_kind_name(enum collective_kind kind)
{
	static const char *const names[COLLECTIVE_KINDS] = {
		"AllReduce", "ReduceScatter", "AllGather", "Broadcast", "Reduce",
		"AlltoAll",  "Gather",        "Scatter",   "Send",      "Recv"
	};

	return names[kind];
}

bool collective_ends_together(enum collective_kind kind)
{
	return kind == COLLECTIVE_ALL_REDUCE || kind == COLLECTIVE_REDUCE_SCATTER ||
	       kind == COLLECTIVE_ALL_GATHER || kind == COLLECTIVE_ALL_TO_ALL;
}

/* "nccl.ncclAllReduce": what stands behind the last dot is the function's name. */
static const char *nccl_name(const char *name)
{
	const char *dot = strrchr(name, '.');
	const char *bare = dot ? dot + 1 : name;

	if (!strncmp(name, "ras.", 4) || !strncmp(name, "recorder.", 9))
		return name;
	return strncmp(bare, "nccl", 4) ? NULL : bare + 4;
}

static void means_of_name(struct function_means *means, const char *name)
{
	static const struct {
		const char *name;
		uint8_t meaning;
	} others[] = {
		{ "GroupStart", MEANS_GROUP_BEGIN },    { "GroupEnd", MEANS_GROUP_END },
		{ "CommInitRank", MEANS_MADE },         { "CommInitRankConfig", MEANS_MADE },
		{ "CommInitRankScalable", MEANS_MADE }, { "CommSplit", MEANS_SPLIT },
		{ "CommDestroy", MEANS_DESTROYED },     { "CommAbort", MEANS_DESTROYED },
		{ "recorder.rank", MEANS_BOTH },        { "CommInitAll", MEANS_MADE_ALL },
		{ "ras.communicator", MEANS_KNOWN },    { "ras.rank", MEANS_RANK },
	};

	means->meaning = MEANS_NOTHING;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(name, others[i].name))
			means->meaning = others[i].meaning;
	for (uint8_t kind = 0; kind < COLLECTIVE_KINDS; kind++) {
		if (strcmp(name, collective_kind_name(kind)) != 0)
			continue;
		means->meaning = MEANS_COLLECTIVE;
		means->kind = kind;
	}
}

static const char *counted_name(size_t word)
{
	return collective_kind_name((enum collective_kind)(word - WORD_COUNTS));
}

const struct function_means *function_means(struct collectives_own *own,
                                            const struct function *function)
{
	static const char *const words[WORD_COUNTS] = { "comm",  "bytes", "rank",  "ranks",
		                                        "id",    "color", "key",   "made",
		                                        "id2",   "pid",   "state", "devices",
		                                        "comm0", "comm1", "comm2", "comm3",
		                                        "comm4", "comm5", "comm6", "comm7" };
	const char *name = nccl_name(function->name);
	const struct api_arg *args;
	size_t n;
	struct function_means *means = BY_ID(own->functions, own->n_functions, function->id);

	if (means->meaning != MEANS_UNKNOWN)
		return means;
	means->meaning = MEANS_NOTHING;
	memset(means->arg, ARGS_UNKNOWN, sizeof(means->arg));
	if (!name)
		return means;
	means_of_name(means, name);
	n = function->api ? api_args(function->api, &args) : 0;
	for (size_t i = 0; i < n && i < API_ARGS_MAX; i++)
		for (size_t word = 0; word < WORDS; word++)
			if (!strcmp(args[i].name,
			            word < WORD_COUNTS ? words[word] : counted_name(word)))
				means->arg[word] = (uint8_t)i;
	return means;
}

uint64_t call_word(const struct function_means *means, const struct call *call, enum word word)
{
	return means->arg[word] < call->args.n_args ? call->args.arg[means->arg[word]] : 0;
}
