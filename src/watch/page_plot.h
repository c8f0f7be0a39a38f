/* SPDX-License-Identifier: MIT */
/* Pages of memleak as a picture. */
#ifndef CUSCOPE_WATCH_PAGE_PLOT_H
#define CUSCOPE_WATCH_PAGE_PLOT_H

#include "watch/places.h"
#include "output/svg/memory_plot.h"

/* Adds what a page says of memory, after places_take() of the same page. */
void page_plot(struct memory_plot *plot, const struct watch_page *page,
               const struct places *places);

#endif
