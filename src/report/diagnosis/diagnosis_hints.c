// SPDX-License-Identifier: MIT
/* What to try, by what the host was in: the innermost frame that a row knows decides. */
#include "report/diagnosis/diagnosis_evidence.h"

#include <string.h>

#include "base/array.h"

enum hint_state { ANY_STATE, BLOCKED, ON_CPU };

static const struct {
	const char *function, *file; /* a part of it; NULL: any */
	enum hint_state state;
	const char *hint;
} hints[] = {
	{ "_local_scalar_dense", NULL, ANY_STATE,
	  "keep values such as the loss on the GPU, and read them back (.item(), float(), print) "
	  "once in many steps" },
	{ NULL, "multiprocessing/", BLOCKED,
	  "more workers for the data loader (num_workers), a larger prefetch_factor, or less work "
	  "for each sample" },
	{ NULL, "utils/data/dataloader.py", BLOCKED,
	  "more workers for the data loader (num_workers), a larger prefetch_factor, or less work "
	  "for each sample" },
	{ NULL, "utils/data/dataloader.py", ON_CPU,
	  "workers for the data loader (num_workers above 0), which prepare batches beside the "
	  "training" },
	{ "DataLoader", NULL, ANY_STATE,
	  "more workers for the data loader (num_workers), a larger prefetch_factor, or less work "
	  "for each sample" },
	{ "gc_collect", NULL, ANY_STATE,
	  "gc.freeze() after the start, or gc.disable() and gc.collect() between epochs" },
	{ NULL, "torch/serialization.py", ANY_STATE,
	  "checkpoints that are written in another thread, or less often" },
	{ NULL, "torch/_dynamo/", ANY_STATE,
	  "shapes that stay the same, or dynamic=True: torch.compile compiles anew for each" },
	{ "cuMemAlloc", NULL, ANY_STATE, "memory that is kept from step to step" },
	{ "cuMemFree", NULL, ANY_STATE, "memory that is kept from step to step" },
};

static bool matches(size_t i, const struct stack_frame *frame, bool blocked)
{
	if (hints[i].state != ANY_STATE && (hints[i].state == BLOCKED) != blocked)
		return false;
	if (hints[i].function && !(frame->function && strstr(frame->function, hints[i].function)))
		return false;
	return !hints[i].file || (frame->file && strstr(frame->file, hints[i].file));
}

const char *diagnosis_hint(const struct stack *stack, bool blocked)
{
	for (size_t k = 0; stack && k < stack->n_frames; k++) {
		for (size_t i = 0; i < ARRAY_SIZE(hints); i++) {
			if (matches(i, stack->frames[k], blocked))
				return hints[i].hint;
		}
	}
	return NULL;
}
