/* SPDX-License-Identifier: MIT */
/* What the programs record of a hook that a user asked for, and what it is called in the trace. */
#pragma once

#include "bpf/wire_hooks.h"
#include "cuda/api.h"
#include "hooks/spec.h"

/* Where an argument that a marker (usdt) describes is found; a field of a tracepoint. */
struct own_place {
	char name[64];       /* of a field */
	uint16_t at;         /* in the registers, in the record */
	uint8_t first_bytes; /* there */
	uint8_t bytes;       /* of the value */
	bool is_signed, is_constant, in_memory, is_text, is_data_loc, is_pointer;
	bool is_relative; /* the text is found from behind this field on */
	int32_t offset;   /* is_constant: the value; in_memory: from the register on */
	uint16_t chars;   /* of a text in the record, 255 at most; 0: it has an end */
};

/*
 * Fills the plan. `places` are those of a marker's arguments, by their number, or of a tracepoint's
 * fields, by their name; NULL for functions. False with *mistake where there is no such place.
 */
bool own_plan_make(const struct hook_spec *spec, const struct own_place *places, size_t n,
                   struct wire_hook_plan *plan, struct hook_mistake *mistake);

/*
 * Makes it one of calls that are summed up: what no filter asks for, and is not the first argument
 * of type bytes that is shown, is not read. True: its bytes are products, by this table.
 */
bool own_plan_sum(const struct hook_spec *spec, struct wire_hook_plan *plan,
                  struct wire_hook_table *table);

/* A step of a filter, as the programs have it. */
void own_plan_step(const struct filter_step *from, bool is_signed, struct wire_hook_step *step);

/* Gives fields of a tracepoint whose type the user did not say their own. */
void own_plan_take_types(struct hook_spec *spec, const struct own_place *places, size_t n);

/*
 * A tracepoint without brackets: a spec that has all of its fields, as far as they fit, and one
 * text. To be freed as others.
 */
void own_plan_all_fields(const struct hook_spec *spec, const struct own_place *places, size_t n,
                         struct hook_spec *all);

/* The arguments that are shown, as a row of the function tables; see cuda/api.h. */
const struct api *own_plan_row(const struct hook_spec *spec, const char *name, struct api **made);

/* Reads the argument string of a marker, "-4@%edi 8@-16(%rbp)". False where it is none. */
bool own_places_of_marker(const char *text, struct own_place *places, size_t *n);
