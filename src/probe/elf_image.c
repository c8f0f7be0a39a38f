// SPDX-License-Identifier: MIT
#include "probe/elf_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "probe/helper.h"

#define SECTIONS_MAX  65536             /* that are searched for one by its name, */
#define SECTIONS_READ 64                /* so many at a time */
#define NAMES_MAX     ((size_t)1 << 20) /* bytes; the names of real files have some 1,000 */

#if defined(__aarch64__)
#define NATIVE_MACHINE EM_AARCH64
#else
#define NATIVE_MACHINE EM_X86_64
#endif

/* Real files have about ten segments; the field holds 65,535. Each of millions of symbols is looked
 * for in all of them. */
#define SEGMENTS_MAX 128

bool elf_image_read(const struct elf_image *image, uint64_t offset, void *to, size_t len)
{
	uint8_t *p = to;

	if (offset > image->bytes || len > image->bytes - offset)
		return false;
	while (len) {
		ssize_t got = helper_pread(image->fd, p, len, offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		p += got;
		offset += (uint64_t)got;
		len -= (size_t)got;
	}
	return true;
}

static int check_header(const Elf64_Ehdr *header, const char *what, struct err *err)
{
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return err_set(err, ENOEXEC, "%s is no ELF file", what);
	if (header->e_ident[EI_CLASS] == ELFCLASS32)
		return err_set(err, EPROTONOSUPPORT,
		               "%s is a 32-bit file, and only 64-bit programs can be traced", what);
	if (header->e_ident[EI_CLASS] != ELFCLASS64)
		return err_set(err, EBADMSG, "%s is damaged: its ELF class is %d", what,
		               header->e_ident[EI_CLASS]);
	if (header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_machine != NATIVE_MACHINE)
		return err_set(err, EPROTONOSUPPORT,
		               "%s is for another machine than this one (ELF machine %d)", what,
		               header->e_machine);
	if (header->e_type != ET_EXEC && header->e_type != ET_DYN)
		return err_set(err, ENOEXEC, "%s is neither a program nor a shared library", what);
	return 0;
}

static int read_segments(struct elf_image *image, const Elf64_Ehdr *header, const char *what,
                         struct err *err)
{
	size_t n = header->e_phnum;

	if (!n || n > SEGMENTS_MAX || header->e_phentsize != sizeof(Elf64_Phdr))
		return err_set(err, EBADMSG, "%s is damaged: it has no usable program headers",
		               what);
	image->segments = xcalloc(n, sizeof(*image->segments));
	image->n_segments = n;
	if (!elf_image_read(image, header->e_phoff, image->segments, n * sizeof(Elf64_Phdr)))
		return err_set(err, EBADMSG,
		               "%s is damaged or cut short: its program headers lie outside of it",
		               what);
	return 0;
}

/* Wrong section headers are no error: the loader does without them, and so must a module. */
static void find_sections(struct elf_image *image, const Elf64_Ehdr *header)
{
	Elf64_Shdr first;

	if (!header->e_shoff || header->e_shentsize != sizeof(Elf64_Shdr))
		return;
	image->sections = header->e_shoff;
	image->n_sections = header->e_shnum;
	/* 0xff00 sections and more are counted in the first header. */
	if (!header->e_shnum && elf_image_read(image, header->e_shoff, &first, sizeof(first)))
		image->n_sections = first.sh_size;
}

int elf_image_open(struct elf_image *image, int fd, const char *what, struct err *err)
{
	Elf64_Ehdr header;
	struct stat st;
	int rc;

	memset(image, 0, sizeof(*image));
	image->fd = -1;
	if (file_stat(fd, &st) < 0)
		return err_set(err, errno, "cannot examine %s: %s", what, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, ENOEXEC, "%s is no regular file", what);
	image->bytes = (uint64_t)st.st_size;
	image->fd = helper_dup(fd);
	if (image->fd < 0)
		return err_set(err, errno, "cannot keep %s open: %s", what, strerror(errno));

	if (!elf_image_read(image, 0, &header, sizeof(header)))
		rc = err_set(err, ENOEXEC, "%s is no ELF file, or cannot be read", what);
	else
		rc = check_header(&header, what, err);
	if (!rc)
		rc = read_segments(image, &header, what, err);
	if (!rc)
		find_sections(image, &header);
	else
		elf_image_close(image);
	return rc;
}

void elf_image_close(struct elf_image *image)
{
	if (image->fd >= 0)
		helper_close(image->fd);
	image->fd = -1;
	free(image->segments);
	image->segments = NULL;
	image->n_segments = 0;
}

const Elf64_Phdr *elf_image_segment(const struct elf_image *image, uint64_t address, uint64_t len)
{
	for (size_t i = 0; i < image->n_segments; i++) {
		const Elf64_Phdr *segment = &image->segments[i];
		uint64_t into = address - segment->p_vaddr;

		if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
		    into < segment->p_filesz && len <= segment->p_filesz - into &&
		    segment->p_offset <= UINT64_MAX - into)
			return segment;
	}
	return NULL;
}

uint64_t elf_image_offset(const struct elf_image *image, uint64_t address, uint64_t len, bool code)
{
	const Elf64_Phdr *segment = elf_image_segment(image, address, len);

	return segment && (!code || segment->p_flags & PF_X)
	               ? address - segment->p_vaddr + segment->p_offset
	               : 0;
}

bool elf_image_read_linked(const struct elf_image *image, uint64_t address, void *to, size_t len,
                           bool code)
{
	uint64_t offset = elf_image_offset(image, address, len, code);

	return offset && elf_image_read(image, offset, to, len);
}

/* ---- notes ----------------------------------------------------------------------------------- */

static size_t padded(size_t bytes)
{
	return (bytes + 3) & ~(size_t)3;
}

/* The last one may have nothing behind it. */
bool elf_note_next(const char **notes, size_t *bytes, struct elf_note *note)
{
	Elf64_Nhdr head;
	size_t owner, all;

	if (*bytes < sizeof(head))
		return false;
	memcpy(&head, *notes, sizeof(head));
	owner = sizeof(head) + padded(head.n_namesz);
	if (owner + head.n_descsz > *bytes)
		return false;
	*note = (struct elf_note){ .type = head.n_type,
		                   .owner = *notes + sizeof(head),
		                   .owner_bytes = head.n_namesz,
		                   .content = *notes + owner,
		                   .bytes = head.n_descsz };
	all = owner + padded(head.n_descsz);
	all = all < *bytes ? all : *bytes;
	*notes += all;
	*bytes -= all;
	return true;
}

bool elf_note_is_of(const struct elf_note *note, const char *owner)
{
	return note->owner_bytes == strlen(owner) + 1 &&
	       !memcmp(note->owner, owner, note->owner_bytes);
}

/* ---- sections ------------------------------------------------------------------------------- */

/* As many as there are at once: a file with 65,536 would be read in as many calls else. */
static bool sections_at(const struct elf_image *image, size_t index, Elf64_Shdr *sections, size_t n)
{
	return elf_image_read(image, image->sections + index * sizeof(*sections), sections,
	                      n * sizeof(*sections));
}

static bool section_is(const Elf64_Shdr *section, const char *names, uint64_t bytes,
                       const char *name)
{
	size_t len = strlen(name) + 1;

	return section->sh_name < bytes && bytes - section->sh_name >= len &&
	       !memcmp(names + section->sh_name, name, len);
}

static bool find_section(const struct elf_image *image, const char *names, uint64_t bytes,
                         const char *name, Elf64_Shdr *found)
{
	size_t n = image->n_sections < SECTIONS_MAX ? image->n_sections : SECTIONS_MAX, part;
	Elf64_Shdr sections[SECTIONS_READ];

	for (size_t at = 0; at < n; at += part) {
		part = n - at < SECTIONS_READ ? n - at : SECTIONS_READ;
		if (!sections_at(image, at, sections, part))
			return false;
		for (size_t i = 0; i < part; i++) {
			if (section_is(&sections[i], names, bytes, name)) {
				*found = sections[i];
				return true;
			}
		}
	}
	return false;
}

bool elf_image_section(const struct elf_image *image, const char *name, Elf64_Shdr *found)
{
	Elf64_Shdr names;
	Elf64_Ehdr header;
	uint64_t bytes, index;
	char *text;
	bool is_there;

	*found = (Elf64_Shdr){ 0 };
	if (!image->n_sections || !elf_image_read(image, 0, &header, sizeof(header)))
		return false;
	index = header.e_shstrndx;
	if (index == SHN_XINDEX && sections_at(image, 0, &names, 1))
		index = names.sh_link;
	if (index >= image->n_sections || !sections_at(image, index, &names, 1))
		return false;
	bytes = names.sh_size < NAMES_MAX ? names.sh_size : NAMES_MAX;
	text = xmalloc(bytes + 1);
	is_there = elf_image_read(image, names.sh_offset, text, bytes) &&
	           find_section(image, text, bytes, name, found);
	free(text);
	return is_there;
}
