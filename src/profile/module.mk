# SPDX-License-Identifier: MIT
# Style and script of flame graphs, as they stand in the program.

$(B)/src/profile/embedded.o: src/profile/embedded.S $(wildcard src/profile/*.css src/profile/*.js)
	@mkdir -p $(@D)
	$(CC) $(HARDEN) $(CFLAGS) -c -o $@ $<

CARRIED += $(B)/src/profile/embedded.o

objects: $(B)/src/profile/embedded.o
