# SPDX-License-Identifier: MIT
# The completions of the shells, as they stand in the program.

$(B)/src/cli/embedded.o: src/cli/embedded.S $(wildcard src/cli/completion/*)
	@mkdir -p $(@D)
	$(CC) $(HARDEN) $(CFLAGS) -c -o $@ $<

CLI_OBJ += $(B)/src/cli/embedded.o
