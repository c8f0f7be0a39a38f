/* SPDX-License-Identifier: MIT */
/* Text in XML: what the SVG pictures are written with. */
#ifndef CUSCOPE_BASE_XML_H
#define CUSCOPE_BASE_XML_H

#include "base/buf.h"

/*
 * Appends `text` so that it can stand between tags and in attributes. XML has no way to write most
 * control characters, and a picture with one in it is not shown at all: they become \xNN, as does
 * what is not UTF-8.
 */
void xml_add_text(struct buf *out, const char *text);

#endif
