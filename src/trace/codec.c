// SPDX-License-Identifier: MIT
#include "trace/codec.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

void codec_init(struct codec *codec)
{
	memset(codec, 0, sizeof(*codec));
	codec->slots = xcalloc(SLOTS, sizeof(*codec->slots));
}

void codec_free(struct codec *codec)
{
	free(codec->slots);
	free(codec->kernels);
	free(codec->correlations);
}

void codec_begin(struct codec *codec, uint64_t time_ns)
{
	codec->chunk++;
	codec->time_ns = time_ns;
}

struct slot *codec_slot_anew(struct codec *codec, struct slot *slot, uint32_t function,
                             uint32_t kernel)
{
	memset(slot, 0, sizeof(*slot));
	memset(slot->follows, FOLLOWS_NONE, sizeof(slot->follows));
	slot->chunk = codec->chunk;
	slot->function = function;
	slot->kernel = kernel;
	return slot;
}

struct last_kernel *codec_kernel_grown(struct codec *codec, uint32_t index)
{
	while (index >= codec->n_kernels) {
		size_t n = codec->n_kernels ? 2 * codec->n_kernels : 256;

		codec->kernels = xrealloc(codec->kernels, n * sizeof(*codec->kernels));
		memset(codec->kernels + codec->n_kernels, 0,
		       (n - codec->n_kernels) * sizeof(*codec->kernels));
		codec->n_kernels = n;
	}
	codec->kernels[index] = (struct last_kernel){ .chunk = codec->chunk };
	return &codec->kernels[index];
}

struct last_correlation *codec_correlation_grown(struct codec *codec, uint32_t process)
{
	while (process >= codec->n_correlations) {
		size_t n = codec->n_correlations ? 2 * codec->n_correlations : 16;

		codec->correlations =
			xrealloc(codec->correlations, n * sizeof(*codec->correlations));
		memset(codec->correlations + codec->n_correlations, 0,
		       (n - codec->n_correlations) * sizeof(*codec->correlations));
		codec->n_correlations = n;
	}
	codec->correlations[process] = (struct last_correlation){ .chunk = codec->chunk };
	return &codec->correlations[process];
}
