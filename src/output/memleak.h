/* SPDX-License-Identifier: MIT */
/*
 * A page of `cuscope memleak` in its three forms: for people, as one line of JSON, and as the text
 * of GPUprobe, for those who read that by script.
 */
#ifndef CUSCOPE_OUTPUT_MEMLEAK_H
#define CUSCOPE_OUTPUT_MEMLEAK_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/places.h"
#include "base/buf.h"
#include "output/memory_plot.h"

struct memleak_style {
	size_t top;   /* places that are shown; 0: all */
	bool stacks;  /* with all their frames */
	bool color;   /* escapes */
	size_t width; /* columns of the terminal; 0: as many as it takes */
};

/* All append to `out`, after places_take() of the same page. */
void memleak_text(struct buf *out, const struct watch_page *page, const struct places *places,
                  const struct memleak_style *style);
void memleak_json(struct buf *out, const struct watch_page *page, const struct places *places,
                  const struct memleak_style *style);
void memleak_classic(struct buf *out, const struct watch_page *page);

/* Adds a page to a picture. */
void memleak_plot(struct memory_plot *plot, const struct watch_page *page,
                  const struct places *places);

#endif
