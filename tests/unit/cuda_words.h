/* SPDX-License-Identifier: MIT */
/* Decoding of hand-made words, for the tests of src/cuda/decode.c. */
#ifndef CUSCOPE_TESTS_CUDA_WORDS_H
#define CUSCOPE_TESTS_CUDA_WORDS_H

#include "unit.h"

#include "cuda/row.h"

/* What upper halves of 4-byte arguments hold. */
#define GARBAGE 0xdeadbeef00000000ull
/* What words hold that must not be used. */
#define UNUSED 0x5555555555555555ull

static inline struct api_call decode(const char *symbol, enum api_abi abi,
                                     const struct api_raw *raw)
{
	const struct api *api = api_find(symbol);
	struct api_call call;

	if (!api)
		fail_msg("%s has no row", symbol);
	memset(&call, 0x77, sizeof(call));
	api_decode(api, abi, raw, &call);
	return call;
}

static inline struct api_call decode_x86(const char *symbol, struct api_raw raw)
{
	return decode(symbol, ABI_X86_64, &raw);
}

static inline struct api_call decode_arm(const char *symbol, struct api_raw raw)
{
	return decode(symbol, ABI_AARCH64, &raw);
}

/* Value of the argument of that name. */
static inline uint64_t arg(const char *symbol, const struct api_call *call, const char *name)
{
	const struct api_arg *args;
	size_t n = api_args(api_find(symbol), &args);

	assert_int_equal(n, call->n_args);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(args[i].name, name))
			return call->arg[i];
	fail_msg("%s has no argument %s", symbol, name);
	return 0;
}

#endif
