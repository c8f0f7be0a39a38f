// SPDX-License-Identifier: MIT
/*
 * From C parameters to machine words.
 *
 * System V x86-64: six integer registers, then 8-byte stack words above the return address. A
 * struct of up to 16 bytes takes registers only when all of it fits, otherwise the stack, and later
 * parameters may still take the registers it left; a larger one lies on the stack by value.
 *
 * AAPCS64: eight registers, then 8-byte stack words. A struct of up to 16 bytes that does not fit
 * ends the use of registers; a larger one is passed as a pointer to the caller's copy.
 */
#include "cuda/row.h"

#include <string.h>

static const struct abi {
	uint8_t regs;
	bool large_by_pointer;     /* structs over 16 bytes */
	bool split_ends_registers; /* a struct that did not fit leaves none to later parameters */
} abis[ABI_COUNT] = {
	[ABI_X86_64] = { .regs = 6 },
	[ABI_AARCH64] = { .regs = 8, .large_by_pointer = true, .split_ends_registers = true },
};

/* Where a parameter is. */
struct spot {
	bool in_reg;
	bool hidden_pointer; /* the register or word points at the struct */
	uint8_t index;       /* register or stack word */
};

static void find_spots(const struct api *api, enum api_abi abi, struct spot *spot)
{
	const struct abi *rules = &abis[abi];
	unsigned reg = 0, word = 0;

	for (size_t i = 0; i < api->n_params; i++) {
		unsigned words = (api->param_bytes[i] + 7u) / 8;
		bool large = words > 2;

		memset(&spot[i], 0, sizeof(spot[i]));
		if (large && rules->large_by_pointer) {
			spot[i].hidden_pointer = true;
			words = 1;
			large = false;
		}
		if (!large && reg + words <= rules->regs) {
			spot[i].in_reg = true;
			spot[i].index = (uint8_t)reg;
			reg += words;
			continue;
		}
		if (!large && rules->split_ends_registers)
			reg = rules->regs;
		spot[i].index = (uint8_t)word;
		word += words;
	}
}

/* A struct behind the pointer in `reg`: there is room for one in a record. */
static struct row_where find_in_blob(struct capture_plan *plan, uint8_t reg,
                                     const struct piece *piece)
{
	unsigned words = (piece->offset + piece->width + 7u) / 8;
	bool other = plan->blob != PLAN_NO_ARG &&
	             (plan->blob != reg || plan->blob_on_return != piece->out);

	if (other || words > sizeof(((struct api_raw *)0)->blob) / 8)
		return (struct row_where){ NOWHERE, 0 };
	plan->blob = reg;
	plan->blob_on_return = piece->out;
	if (words > plan->blob_words)
		plan->blob_words = (uint8_t)words;
	return (struct row_where){ IN_BLOB, piece->offset };
}

static struct row_where find_in_out(struct capture_plan *plan, uint8_t reg,
                                    const struct piece *piece)
{
	for (uint8_t i = 0; i < 2; i++) {
		if (plan->out[i] != PLAN_NO_ARG)
			continue;
		plan->out[i] = reg;
		plan->out_bytes[i] = piece->width;
		return (struct row_where){ IN_OUT, 8 * i };
	}
	return (struct row_where){ NOWHERE, 0 };
}

static struct row_where find_value(struct capture_plan *plan, struct spot spot,
                                   const struct piece *piece)
{
	unsigned offset = 8u * spot.index + piece->offset;
	unsigned words = (offset + piece->width + 7u) / 8;

	if (spot.in_reg) {
		if (words > plan->regs)
			plan->regs = (uint8_t)words;
		return (struct row_where){ IN_REG, (uint8_t)offset };
	}
	if (words > sizeof(((struct api_raw *)0)->stack) / 8)
		return (struct row_where){ NOWHERE, 0 };
	if (words > plan->stack)
		plan->stack = (uint8_t)words;
	return (struct row_where){ IN_STACK, (uint8_t)offset };
}

/* What can be followed is what a register points at. */
static struct row_where find_piece(struct capture_plan *plan, struct spot spot,
                                   const struct piece *piece)
{
	if (!piece->deref && !spot.hidden_pointer)
		return find_value(plan, spot, piece);
	if (!spot.in_reg)
		return (struct row_where){ NOWHERE, 0 };
	if (piece->out && piece->offset == 0)
		return find_in_out(plan, spot.index, piece);
	return find_in_blob(plan, spot.index, piece);
}

/* Strings and kernels: by the register that a piece of that type is in. */
static uint8_t reg_of(const struct api *api, const struct layout *layout, enum api_type type)
{
	for (size_t i = 0; i < api->n_pieces; i++)
		if (api->piece[i].type == type && layout->at[i].where == IN_REG)
			return layout->at[i].offset / 8;
	return PLAN_NO_ARG;
}

static void plan_names(const struct api *api, struct layout *layout)
{
	struct capture_plan *plan = &layout->plan;
	enum api_op op = api->row->op;

	plan->string = reg_of(api, layout, T_STRING);
	plan->kernel = PLAN_NO_ARG;
	plan->name_key = PLAN_NO_ARG;
	if (op == OP_LAUNCH || op == OP_NAME_KERNEL)
		plan->kernel = reg_of(api, layout, T_KERNEL);
	if (op == OP_NAME_KERNEL && plan->string != PLAN_NO_ARG)
		plan->name_key = reg_of(api, layout, T_HOSTFUN);
	plan->forgets_kernels = op == OP_MODULE_UNLOAD || op == OP_CONTEXT_DESTROY;
}

void api_lay_out(struct api *api, enum api_abi abi)
{
	struct layout *layout = &api->layout[abi];
	struct spot spot[PARAMS_MAX];

	memset(layout, 0, sizeof(*layout));
	layout->plan.out[0] = layout->plan.out[1] = PLAN_NO_ARG;
	layout->plan.blob = PLAN_NO_ARG;
	find_spots(api, abi, spot);
	/*
	 * Inputs first: cudaMalloc3D on AArch64 has a struct before and one after the call, and the
	 * extents of the first tell more than the pitch in the second.
	 */
	for (int out = 0; out < 2; out++)
		for (size_t i = 0; i < api->n_pieces; i++)
			if (api->piece[i].out == out)
				layout->at[i] = find_piece(&layout->plan, spot[api->piece[i].param],
				                           &api->piece[i]);
	plan_names(api, layout);
}

void api_plan(const struct api *api, enum api_abi abi, struct capture_plan *plan)
{
	*plan = api->layout[abi].plan;
}
