// SPDX-License-Identifier: MIT
#include "output/fragments.h"

#include <stdlib.h>

#include "analysis/by_id.h"

struct buf *fragment(struct fragments *fragments, uint32_t id)
{
	fragments->text = by_id_room(fragments->text, &fragments->n, sizeof(*fragments->text), id);
	return &fragments->text[id];
}

void fragments_free(struct fragments *fragments)
{
	for (size_t i = 0; i < fragments->n; i++)
		buf_free(&fragments->text[i]);
	free(fragments->text);
}
