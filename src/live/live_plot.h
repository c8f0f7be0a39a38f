/* SPDX-License-Identifier: MIT */
/* Pages of memleak as a picture. */
#ifndef CUSCOPE_LIVE_LIVE_PLOT_H
#define CUSCOPE_LIVE_LIVE_PLOT_H

#include "live/places.h"
#include "output/svg/memory_plot.h"

/* Adds what a page says of memory, after places_take() of the same page. */
void live_plot(struct memory_plot *plot, const struct watch_page *page,
               const struct places *places);

#endif
