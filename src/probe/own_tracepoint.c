// SPDX-License-Identifier: MIT
/* Tracepoints: which there are, and what their records have, as tracefs says it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "probe/kernel_features.h"
#include "probe/own_kernel.h"

#define FORMAT_BYTES 65536

/* What comes behind `key` in a line of a format, up to ';'. */
static bool field_number(const char *line, const char *key, unsigned *number)
{
	const char *at = strstr(line, key);
	char *end;

	if (!at)
		return false;
	*number = (unsigned)strtoul(at + strlen(key), &end, 10);
	return *end == ';' && end != at + strlen(key);
}

/* The name in a declaration: "char comm[16]", "__data_loc char[] name", "unsigned int a". */
static bool declared_name(const char *declaration, size_t len, char *name, size_t room)
{
	size_t end = len, begin;

	if (end && declaration[end - 1] == ']') {
		while (end && declaration[end - 1] != '[')
			end--;
		end -= end > 0;
	}
	begin = end;
	while (begin && declaration[begin - 1] != ' ' && declaration[begin - 1] != '*' &&
	       declaration[begin - 1] != '\t')
		begin--;
	if (end == begin || end - begin >= room)
		return false;
	memcpy(name, declaration + begin, end - begin);
	name[end - begin] = '\0';
	return true;
}

/* "	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;" */
static bool field_read(const char *line, struct own_place *field)
{
	const char *begin = strstr(line, "field:"), *end;
	unsigned offset, size, is_signed = 0;
	bool chars, array;

	if (!begin)
		return false;
	begin += strlen("field:");
	end = strchr(begin, ';');
	*field = (struct own_place){ 0 };
	if (!end || !field_number(end, "offset:", &offset) || !field_number(end, "size:", &size) ||
	    offset > UINT16_MAX - size || size > UINT16_MAX ||
	    !declared_name(begin, (size_t)(end - begin), field->name, sizeof(field->name)) ||
	    !strncmp(field->name, "common_", 7))
		return false;
	field_number(end, "signed:", &is_signed);
	chars = memmem(begin, (size_t)(end - begin), "char", 4) != NULL;
	array = memchr(begin, '[', (size_t)(end - begin)) != NULL;
	field->at = (uint16_t)offset;
	field->is_data_loc = !strncmp(begin, "__data_loc ", 11);
	field->is_relative = !strncmp(begin, "__rel_loc ", 10);
	field->is_text = chars && array;
	field->is_data_loc |= field->is_relative && field->is_text;
	field->is_pointer = memchr(begin, '*', (size_t)(end - begin)) && !array;
	field->is_signed = is_signed != 0;
	field->first_bytes = field->is_data_loc ? 4 : (uint8_t)size;
	if (field->is_text) {
		field->bytes = 8;
		field->first_bytes = field->is_data_loc ? 4 : 8;
		field->chars = field->is_data_loc ? 0 : (uint16_t)(size < 256 ? size : 255);
		return true;
	}
	field->bytes = (uint8_t)size;
	return !array && (size == 1 || size == 2 || size == 4 || size == 8);
}

int own_tracepoint_parse(const char *format, struct own_place *fields)
{
	int n = 0;

	while (*format && n < OWN_FIELDS_MAX) {
		size_t len = strcspn(format, "\n");
		char *line = xstrndup(format, len);

		if (!strncmp(line, "print fmt:", 10)) {
			free(line);
			break;
		}
		n += field_read(line, &fields[n]);
		free(line);
		format += len + (format[len] == '\n');
	}
	return n;
}

static int read_file(const char *path, char *text, size_t room)
{
	int fd = tracefs_open(path), r = 0;
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return fd;
	while ((n = read(fd, text + len, room - 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		r = -errno;
	text[len] = '\0';
	close(fd);
	return r;
}

int own_tracepoint_fields(const char *group, const char *name, struct own_place *fields)
{
	char path[2 * SPEC_PLACE_MAX + 32], *text = xmalloc(FORMAT_BYTES);
	int r;

	snprintf(path, sizeof(path), "events/%s/%s/format", group, name);
	r = strchr(group, '/') || strchr(name, '/') ? -ENOENT : read_file(path, text, FORMAT_BYTES);
	if (!r)
		r = own_tracepoint_parse(text, fields);
	free(text);
	return r;
}

/* ---- which there are ----------------------------------------------------------------------- */

int own_tracepoints_each(const char *group, void (*each)(void *data, const char *name), void *data)
{
	char path[SPEC_PLACE_MAX + 16];
	struct dirent *entry;
	DIR *folder;
	int fd;

	if (strchr(group, '/') || !strcmp(group, "..") || !strcmp(group, "."))
		return -ENOENT;
	snprintf(path, sizeof(path), "events%s%s", *group ? "/" : "", group);
	fd = tracefs_open(path);
	if (fd < 0)
		return fd;
	folder = fdopendir(fd);
	if (!folder) {
		close(fd);
		return -errno;
	}
	while ((entry = readdir(folder))) {
		if (entry->d_name[0] != '.' && entry->d_type == DT_DIR)
			each(data, entry->d_name);
	}
	closedir(folder);
	return 0;
}

int own_tracepoint_number(const char *group, const char *name)
{
	char path[2 * SPEC_PLACE_MAX + 32], text[32];
	int r;

	snprintf(path, sizeof(path), "events/%s/%s/id", group, name);
	r = read_file(path, text, sizeof(text));
	return r ? r : atoi(text);
}
