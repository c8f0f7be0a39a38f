// SPDX-License-Identifier: MIT
#include "cuda/row_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "cuda/row.h"

void api_to_text(const struct api *api, struct api_text *text)
{
	const struct api_row *row = api->row;

	*text = (struct api_text){
		.name = row->name,
		.spec = row->spec,
		.cls = row->cls,
		.op = row->op,
		.memory = row->memory,
		.direction = row->direction,
		.flags = row->flags,
	};
}

static bool is_same(const struct api_text *text, const struct api_row *row)
{
	return !strcmp(text->spec, row->spec) && text->cls == row->cls && text->op == row->op &&
	       text->memory == row->memory && text->direction == row->direction &&
	       text->flags == row->flags;
}

static uint8_t known(uint32_t value, uint32_t count, uint8_t otherwise)
{
	return value < count ? (uint8_t)value : otherwise;
}

const struct api *api_from_text(const struct api_text *text, struct api **made)
{
	const struct api *built_in = api_find(text->name);
	struct api_row *row;

	*made = NULL;
	if (built_in && !strcmp(built_in->row->name, text->name) && is_same(text, built_in->row))
		return built_in;
	row = xcalloc(1, sizeof(*row));
	*row = (struct api_row){
		.name = xstrdup(text->name),
		.spec = xstrdup(text->spec),
		.cls = known(text->cls, CLASS_COUNT, CLASS_OTHER),
		.op = known(text->op, OP_COUNT, OP_NONE),
		.memory = known(text->memory, MEMORY_COUNT, MEMORY_NONE),
		.direction = known(text->direction, DIRECTION_COUNT, DIRECTION_NONE),
		.flags = (uint8_t)text->flags,
	};
	*made = xcalloc(1, sizeof(**made));
	api_parse(*made, row); /* what came before a mistake is kept */
	return *made;
}

void api_free(struct api *made)
{
	if (!made)
		return;
	free((char *)made->row->name);
	free((char *)made->row->spec);
	free((struct api_row *)made->row);
	free(made);
}
