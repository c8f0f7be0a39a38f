# SPDX-License-Identifier: MIT
# make test-export         the golden traces in every format, read by other programs
# make parquet-readers     gets those that read Parquet from npm, for the tests that otherwise say SKIP

test-export: $(B)/cuscope $(addprefix $(B)/tests/export/,bombs edges events hard profiles ranks stacks)
	@tests/export/run --build $(B)

$(addprefix $(B)/tests/export/,bombs edges events hard profiles ranks stacks): %: %.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

$(B)/tests/export/bombs: override LDFLAGS += -Wl,--wrap=packer_add

parquet-readers:
	@mkdir -p $(B)/readers
	cp tests/export/readers/package.json tests/export/readers/package-lock.json $(B)/readers/
	npm ci --prefix $(B)/readers --no-audit --no-fund --silent || { rm -rf $(B)/readers/node_modules; exit 1; }

.PHONY: test-export parquet-readers
