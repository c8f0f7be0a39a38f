# SPDX-License-Identifier: MIT
# make install, make uninstall   program, manual pages, completions; PREFIX= and DESTDIR= are respected
# make man                       manual pages alone, in build/man
# make deb                       packages of Debian: cuscope and cuscope-agent
# make dist                      one static program with all that belongs to it

DIST_NAME := cuscope-$(VERSION)-$(ARCH)

# -lzstd: for elfutils 0.189 and later. A static glibc is sure to find only the users of /etc/passwd (--user NAME).
# libdw.a wants what it unpacks sections with. Where that is not there as static libraries, the static program has no lines of
# native code, and `doctor` says so.
STATIC_LIBDW = $(if $(LIBDW),$(shell echo 'int main(void) { return !dwfl_version(0); }' | $(CC) -static -include elfutils/libdwfl.h \
                 -x c - -o /dev/null -ldw -lelf -llzma -lbz2 -lz -lzstd 2>/dev/null && echo -ldw -lelf -llzma -lbz2))
# GnuTLS, of libmicrohttpd; see without_p11_kit.c.
STATIC_TLS := -lmicrohttpd -lgnutls -lhogweed -lnettle -ltasn1 -lidn2 -lunistring -lgmp
STATIC_LIBS = $(STATIC_LIBDW) $(STATIC_TLS) $(B)/static/libinih.a -lbpf -lelf $(LIBZYDIS_A) -lsqlite3 -lncursesw -ltinfo -lz -lzstd -liberty -lstdc++ -lm -ldl -pthread
ifeq ($(ARCH),x86_64)
LIBZYDIS_A ?= $(B)/static/libZydis.a
endif

# Of the last change, where nobody says otherwise: the same sources make the same packages.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || date -r README.md +%s)
export SOURCE_DATE_EPOCH

# Manual pages want pandoc. Without it the program is installed all the same.
PANDOC := $(shell command -v pandoc)

man: $(B)/man/cuscope.1

$(B)/man/cuscope.1: $(B)/cuscope $(wildcard packaging/manual/*) README.md $(wildcard docs/*.md)
	packaging/manual/build $(B)/cuscope $(B)/man

install: $(B)/cuscope $(B)/agent/embedded.so $(if $(PANDOC),$(B)/man/cuscope.1)
	$(if $(PANDOC),,@echo 'install: without manual pages, since pandoc is not here')
	B='$(B)' DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' packaging/files install $(B)/cuscope

deb: $(B)/cuscope $(B)/agent/embedded.so $(B)/man/cuscope.1
	B='$(B)' packaging/deb/build $(VERSION) dist

uninstall:
	B='$(B)' DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' packaging/files uninstall

dist: dist/$(DIST_NAME).tar.gz

# As it is installed: bin, lib, share.
dist/$(DIST_NAME).tar.gz: dist/cuscope $(B)/agent/embedded.so $(B)/man/cuscope.1 $(wildcard packaging/* packaging/*/* docs/*) README.md LICENSE
	rm -rf $(B)/dist
	B='$(B)' DESTDIR='$(B)/dist/$(DIST_NAME)' PREFIX= RUN_PREFIX=/usr/local packaging/files install dist/cuscope
	install -d $(B)/dist/$(DIST_NAME)/share/doc/cuscope/licenses
	packaging/licenses $(B)/dist/$(DIST_NAME)/share/doc/cuscope/licenses
	tar -c -f - -C $(B)/dist --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$(SOURCE_DATE_EPOCH) $(DIST_NAME) | \
		gzip -n -9 >$@
	@ls -l dist/cuscope $@

dist/cuscope: $(CLI_OBJ) $(B)/libcuscope.a $(LIBZYDIS_A) $(B)/static/without_libdw.o $(B)/packaging/without_p11_kit.o \
		$(B)/static/libinih.a
	@mkdir -p dist
	$(CC) $(CFLAGS) -static-pie $(HARDEN_LDFLAGS) $(LDFLAGS) -Wl,--gc-sections -o $@ $(CLI_OBJ) \
		$(if $(STATIC_LIBDW),,$(B)/static/without_libdw.o) $(B)/libcuscope.a $(STATIC_LIBS) $(B)/packaging/without_p11_kit.o
	strip $@

# GnuTLS has a copy of libinih inside, of which the static archive hides nothing: ours gets other names for what both have.
$(B)/static/libinih.a:
	@mkdir -p $(@D)
	objcopy --redefine-sym ini_parse_file=inih_parse_file --redefine-sym ini_parse_stream=inih_parse_stream \
		--redefine-sym ini_parse=inih_parse "$$($(CC) -print-file-name=libinih.a)" $@

# In place of the archive's own.
$(B)/static/without_libdw.o: src/stack/lines/debug_info.c Makefile
	@mkdir -p $(@D)
	$(CC) $(HARDEN) -fPIE $(CFLAGS) -UCUSCOPE_LIBDW -c -o $@ $<

$(B)/static/libZydis.a:
	@mkdir -p $(@D)
	CC='$(CC)' CFLAGS='$(HARDEN) -fPIE' packaging/zydis-static $@

.PHONY: install uninstall man deb dist
