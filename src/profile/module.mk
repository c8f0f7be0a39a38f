# SPDX-License-Identifier: MIT
# Style and script of flame graphs, as they stand in the program.

# As a page's policy names it (src/page/module.mk).
$(B)/src/profile/flame.js.hash: src/profile/flame.js
	@mkdir -p $(@D)
	sha256sum $< | cut -c1-64 | tr a-f A-F | basenc --base16 -d | base64 | tr -d '\n' >$@

$(B)/src/profile/embedded.o: src/profile/embedded.S src/profile/flame.css src/profile/flame.js $(B)/src/profile/flame.js.hash
	@mkdir -p $(@D)
	$(CC) $(HARDEN) $(CFLAGS) -Wa,-I$(@D) -c -o $@ $<

CARRIED += $(B)/src/profile/embedded.o

objects: $(B)/src/profile/embedded.o
