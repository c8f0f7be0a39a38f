# SPDX-License-Identifier: MIT
# make test-export         the golden traces in every format, read by other programs

test-export: $(B)/cuscope $(addprefix $(B)/tests/export/,bombs edges events profiles stacks)
	@tests/export/run --build $(B)

$(addprefix $(B)/tests/export/,bombs edges events profiles stacks): %: %.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

.PHONY: test-export
