// SPDX-License-Identifier: MIT
#include "stack/lines/debug_file.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/folder.h"
#include "base/xalloc.h"
#include "probe/elf_image.h"
#include "probe/helper.h"
#include "probe/mounts.h"

#define ROOT         "/usr/lib/debug"
#define SECTIONS_MAX 4096
#define NAME_BYTES   24 /* of a section that is looked for, with what tells it from longer ones */

/* ---- what the sections say ----------------------------------------------------------------- */

bool debug_link_read(const char *section, size_t bytes, const char **name, uint32_t *crc)
{
	size_t len = strnlen(section, bytes), at = (len + 4) & ~(size_t)3;

	if (!len || len == bytes || at > bytes || bytes - at < sizeof(*crc))
		return false;
	if (memchr(section, '/', len) || !strcmp(section, ".") || !strcmp(section, ".."))
		return false;
	memcpy(crc, section + at, sizeof(*crc));
	*name = section;
	return true;
}

bool debug_alt_link_read(const char *section, size_t bytes, const char **path, const uint8_t **id,
                         size_t *id_bytes)
{
	size_t len = strnlen(section, bytes);

	if (!len || len == bytes || bytes - len - 1 < 2 || bytes - len - 1 > DEBUG_ID_MAX)
		return false;
	*path = section;
	*id = (const uint8_t *)section + len + 1;
	*id_bytes = bytes - len - 1;
	return true;
}

/* ---- sections ------------------------------------------------------------------------------ */

struct sections {
	struct elf_image image;
	uint64_t names, names_bytes; /* in the file */
};

static bool read_header(const struct sections *sections, size_t index, Elf64_Shdr *header)
{
	return index < sections->image.n_sections &&
	       elf_image_read(&sections->image, sections->image.sections + index * sizeof(*header),
	                      header, sizeof(*header));
}

static bool open_sections(int fd, struct sections *sections)
{
	Elf64_Shdr names;
	Elf64_Ehdr head;

	if (elf_image_open(&sections->image, fd, "the file", NULL))
		return false;
	if (elf_image_read(&sections->image, 0, &head, sizeof(head)) &&
	    read_header(sections, head.e_shstrndx, &names)) {
		sections->names = names.sh_offset;
		sections->names_bytes = names.sh_size;
		return true;
	}
	elf_image_close(&sections->image);
	return false;
}

static bool is_named(const struct sections *sections, const Elf64_Shdr *header, const char *name)
{
	char found[NAME_BYTES] = "";
	size_t bytes = strlen(name) + 1;

	return header->sh_name < sections->names_bytes &&
	       bytes <= sections->names_bytes - header->sh_name &&
	       elf_image_read(&sections->image, sections->names + header->sh_name, found, bytes) &&
	       !memcmp(found, name, bytes);
}

/* Its contents, which the caller frees; NULL: there is no such section, or it is too large. */
static char *read_section(const struct sections *sections, const char *name, size_t *bytes)
{
	Elf64_Shdr header;
	char *contents;

	for (size_t i = 1; i < sections->image.n_sections && i < SECTIONS_MAX; i++) {
		if (!read_header(sections, i, &header))
			return NULL;
		if (header.sh_type == SHT_NOBITS || !is_named(sections, &header, name))
			continue;
		if (!header.sh_size || header.sh_size > DEBUG_LINK_BYTES)
			return NULL;
		*bytes = header.sh_size;
		contents = xmalloc(*bytes);
		if (elf_image_read(&sections->image, header.sh_offset, contents, *bytes))
			return contents;
		free(contents);
		return NULL;
	}
	return NULL;
}

/* ---- files --------------------------------------------------------------------------------- */

/* "..", which would lead out of the folder that a name is looked for in. */
static bool goes_up(const char *path)
{
	for (const char *at = path; (at = strstr(at, "..")); at++)
		if ((at == path || at[-1] == '/') && (!at[2] || at[2] == '/'))
			return true;
	return false;
}

/*
 * By path only. A program chooses the names, and the file is opened with root's rights. So it is a
 * regular one, as opening a device can do things, and one that everybody may read.
 */
static int open_roots(const char *path)
{
	int fd = goes_up(path) ? -1 : roots_path_open(path);
	struct stat st;

	if (fd >= 0 && (file_stat(fd, &st) || !S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH) ||
	                st.st_size <= 0)) {
		close(fd);
		return -1;
	}
	return fd < 0 ? -1 : fd;
}

bool debug_file_hex(const uint8_t *id, size_t bytes, char hex[2 * DEBUG_ID_MAX + 1])
{
	if (bytes < 2 || bytes > DEBUG_ID_MAX)
		return false;
	for (size_t i = 0; i < bytes; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	return true;
}

static int find_by_id(const uint8_t *id, size_t bytes)
{
	char hex[2 * DEBUG_ID_MAX + 1], *path;
	int fd;

	if (!debug_file_hex(id, bytes, hex))
		return -1;
	path = xasprintf(ROOT "/.build-id/%.2s/%s.debug", hex, hex + 2);
	fd = open_roots(path);
	free(path);
	return fd;
}

static char *home(void)
{
	struct passwd user, *found = NULL;
	const char *own = getenv("HOME");
	char room[4096];
	uid_t uid;
	gid_t gid;

	if (!folder_sudo_user(&uid, &gid))
		return own ? xstrdup(own) : NULL;
	getpwuid_r(uid, &user, room, sizeof(room), &found);
	return found ? xstrdup(found->pw_dir) : NULL;
}

/* Where debuginfod's client keeps what it has fetched, as debuginfod_find_debuginfo(3) has it. */
char *debug_file_cache(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS"), *folder = getenv("DEBUGINFOD_CACHE_PATH");
	char *of_user, *path;

	if (!urls || !*urls)
		return NULL;
	if (folder)
		return xstrdup(folder);
	folder = getenv("XDG_CACHE_HOME");
	if (folder)
		return xasprintf("%s/debuginfod_client", folder);
	of_user = home();
	path = of_user ? xasprintf("%s/.cache/debuginfod_client", of_user) : NULL;
	free(of_user);
	return path;
}

/* Of who runs cuscope or called sudo, and of nobody else; nothing is fetched. */
int debug_file_cached(const uint8_t *id, size_t bytes)
{
	char hex[2 * DEBUG_ID_MAX + 1], *folder = debug_file_cache(), *path, *name = NULL;
	int parent = -1, fd = -1;
	struct stat st;

	if (folder && debug_file_hex(id, bytes, hex)) {
		path = xasprintf("%s/%s/debuginfo", folder, hex);
		parent = folder_open(path, &name, NULL);
		free(path);
	}
	if (parent >= 0) {
		fd = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		close(parent);
	}
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode) || !folder_trusts(st.st_uid) ||
	                st.st_mode & (S_IWGRP | S_IWOTH))) {
		close(fd);
		fd = -1;
	}
	free(name);
	free(folder);
	return fd;
}

/* The file itself is no debug file of its own, whatever its link says. */
static int open_link(const char *path, const char *name)
{
	static const char *const folders[] = { "%.*s%s", "%.*s.debug/%s", ROOT "%.*s%s" };
	const char *slash = path[0] == '/' ? strrchr(path, '/') : NULL;
	int fd = -1;

	for (size_t i = 0; slash && fd < 0 && i < ARRAY_SIZE(folders); i++) {
		char *candidate = xasprintf(folders[i], (int)(slash + 1 - path), path, name);

		if (strcmp(candidate, path) != 0)
			fd = open_roots(candidate);
		free(candidate);
	}
	return fd;
}

static void find_debug(int fd, const char *path, struct debug_files *found)
{
	struct sections sections;
	const char *name;
	size_t bytes;
	char *link;

	if (!open_sections(fd, &sections))
		return;
	link = read_section(&sections, ".gnu_debuglink", &bytes);
	if (link && debug_link_read(link, bytes, &name, &found->crc))
		found->debug = open_link(path, name);
	free(link);
	elf_image_close(&sections.image);
}

static bool has_section(const struct sections *sections, const char *name)
{
	Elf64_Shdr header;

	for (size_t i = 1; i < sections->image.n_sections && i < SECTIONS_MAX; i++) {
		if (!read_header(sections, i, &header))
			return false;
		if (header.sh_type != SHT_NOBITS && is_named(sections, &header, name))
			return true;
	}
	return false;
}

static void find_own(int fd, struct debug_files *found)
{
	struct sections sections;

	if (!open_sections(fd, &sections)) /* nothing can be told of it in any case */
		return;
	found->lacking =
		!has_section(&sections, ".debug_info") && !has_section(&sections, ".zdebug_info");
	found->packed = found->lacking && has_section(&sections, ".gnu_debugdata");
	elf_image_close(&sections.image);
}

/* The debug file is root's, or the file that is mapped is looked into itself. */
static int find_alt(int fd, struct debug_files *found)
{
	struct sections sections;
	size_t bytes, id_bytes;
	const uint8_t *id;
	const char *path;
	int alt = -1;
	char *link;

	if (!open_sections(fd, &sections))
		return -1;
	link = read_section(&sections, ".gnu_debugaltlink", &bytes);
	if (link && debug_alt_link_read(link, bytes, &path, &id, &id_bytes)) {
		alt = find_by_id(id, id_bytes);
		if (alt < 0 && !strncmp(path, ROOT "/", sizeof(ROOT)))
			alt = open_roots(path);
		if (alt < 0)
			alt = debug_file_cached(id, id_bytes);
		found->alt_id_bytes = id_bytes;
		memcpy(found->alt_id, id, id_bytes);
	}
	free(link);
	elf_image_close(&sections.image);
	return alt;
}

/* Root's own file, to be read here. */
static int open_again(int path_fd)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	return open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

/* That may be a pipe or a device: opening these can wait, or do things. */
static int open_regular(int path_fd)
{
	struct stat st;

	return fstat(path_fd, &st) || !S_ISREG(st.st_mode) ? -1 : open_again(path_fd);
}

static int find_alt_of_root(int path_fd, struct debug_files *found)
{
	int fd = open_again(path_fd), alt = fd >= 0 ? find_alt(fd, found) : -1;

	if (fd >= 0)
		close(fd);
	return alt;
}

void debug_files_find(int fd, const uint8_t *id, size_t id_bytes, const char *path,
                      struct debug_files *found)
{
	*found = (struct debug_files){ .debug = find_by_id(id, id_bytes), .alt = -1 };
	if (found->debug < 0)
		find_debug(fd, path, found);
	if (found->debug < 0)
		found->debug = debug_file_cached(id, id_bytes);
	found->alt =
		found->debug >= 0 ? find_alt_of_root(found->debug, found) : find_alt(fd, found);
	if (found->debug < 0)
		find_own(fd, found);
}

void debug_files_take(struct debug_files *found, int debug)
{
	found->debug = debug;
	found->crc = 0;
	found->lacking = false;
	if (found->alt >= 0) /* of the file itself, whoever's that is */
		close(found->alt);
	found->alt_id_bytes = 0;
	found->alt = find_alt_of_root(debug, found);
}

static bool note_is_of(const char *notes, size_t bytes, const uint8_t *id, size_t id_bytes)
{
	struct elf_note note;

	return elf_note_next(&notes, &bytes, &note) && note.type == NT_GNU_BUILD_ID &&
	       elf_note_is_of(&note, "GNU") && note.bytes == id_bytes &&
	       !memcmp(note.content, id, id_bytes);
}

bool debug_file_is_of(int path_fd, const uint8_t *id, size_t id_bytes)
{
	int fd = open_regular(path_fd);
	struct sections sections;
	bool is = false;
	size_t bytes;
	char *note;

	if (fd >= 0 && open_sections(fd, &sections)) {
		note = read_section(&sections, ".note.gnu.build-id", &bytes);
		is = note && note_is_of(note, bytes, id, id_bytes);
		free(note);
		elf_image_close(&sections.image);
	}
	if (fd >= 0)
		close(fd);
	return is;
}

int debug_file_open(const uint8_t *id, size_t bytes)
{
	int path_fd = find_by_id(id, bytes), fd = path_fd >= 0 ? open_again(path_fd) : -1;

	if (path_fd >= 0)
		close(path_fd);
	return fd;
}
