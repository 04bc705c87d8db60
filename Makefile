# SPDX-License-Identifier: MIT OR GPL-2.0-only
# netnice: everything a user or developer runs. `make` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
VENV := .venv
PYTHON ?= python3
PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export PATH

# The same cases of property tests each time: what a run finds is not chance. Others: PROPTEST_RNG_SEED=2 make ...
export PROPTEST_RNG_SEED ?= 1

# Debian's and Ubuntu's packages: to build.
BUILD_PACKAGES := clang llvm libclang-dev libbpf-dev libelf-dev zlib1g-dev pkg-config gcc make

# To run the lab, and to test.
LAB_PACKAGES := qemu-system-x86 bpftool kmod iproute2 iputils-ping ethtool rsync tcpdump iperf3 \
	python3-venv shellcheck systemd libclang-rt-14-dev busybox-static file util-linux zstd man-db zsh fish

# To test the C library: callers in C++ and Python, and its ABI.
LIB_PACKAGES := g++ pkg-config binutils abigail-tools python3-cffi

# What only packages need: to write them, to test them, and to compile libelf and zlib for musl.
DIST_PACKAGES := dpkg-dev lintian rpm musl-tools autoconf automake autopoint gettext libtool flex bison gawk \
	debootstrap libpam-systemd dbus-user-session udev
CARGO_DEB := 3.8.0
CARGO_GENERATE_RPM := 0.21.1

# What only the tests on this machine need; the packages of sshd and nginx may start a server.
TEST_PACKAGES := openssh-server openssh-client procps nginx-light crun curl

# The programs of docs/recipes and docs/background.md, which only `make soak` runs; the packages of servers may start them.
RECIPE_PACKAGES := rsync restic borgbackup rclone duplicity python3-paramiko podman skopeo docker-registry postgresql \
	nginx-light apt-mirror wget dpkg-dev syncthing crun docker.io containerd runc python3-grpcio aria2 git fcgiwrap \
	python3-pip golang-go

# What only comparisons with ns-3 need.
NS3_PACKAGES := g++ libns3-dev

# An origin for the proxy, with which it is also compared, load, and a browser with a certificate to trust;
# the package of nginx may start it. Ubuntu has no such package of Chromium.
BENCH_PACKAGES := nginx-light wrk chromium-headless-shell openssl

.PHONY: help deps build demo test test-unit test-host test-lab lint bench fuzz golden mutants clean \
	reproduce validate soak soak-list install uninstall package lib install-lib uninstall-lib
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/make \1|\2/' | column -t -s'|'

deps: build/deps $(VENV)/done ## install what is needed (apt packages, Python environment)

build/build-deps: WANTED := $(BUILD_PACKAGES)
build/deps: WANTED := $(BUILD_PACKAGES) $(LAB_PACKAGES) $(LIB_PACKAGES)
build/dist-deps: WANTED := $(DIST_PACKAGES)
build/test-deps: WANTED := $(TEST_PACKAGES)
build/recipe-deps: WANTED := $(RECIPE_PACKAGES)
build/ns3-deps: WANTED := $(NS3_PACKAGES)
build/bench-deps: WANTED := $(BENCH_PACKAGES)
build/build-deps build/deps build/dist-deps build/test-deps build/recipe-deps build/ns3-deps build/bench-deps: Makefile
	@command -v cargo >/dev/null || { echo "netnice needs Rust 1.87 or later: https://rustup.rs" >&2; exit 1; }
	@missing=$$(for p in $(WANTED); do dpkg -s $$p >/dev/null 2>&1 || echo $$p; done); \
	if [ -n "$$missing" ]; then \
		sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
		$$sudo apt-get update -qq; \
		DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends $$missing; \
	fi
	@mkdir -p $(@D) && touch $@

$(VENV)/done: lab/pyproject.toml | build/deps
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "the lab needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -e 'lab[dev]'
	@touch $@

# `release` compiles fast, `dist` is what packages have: smaller, and faster.
PROFILE := release

build: build/build-deps ## build what is in target/release/: netnice, netnice-load and others; PROFILE=dist
	cargo build --profile $(PROFILE) --locked --bins --examples

lib: build/build-deps ## the core as a C library, in build/lib/
	$(MAKE) --no-print-directory -C libnetnice

install-lib: ## install what `make lib` built: PREFIX=/usr/local DESTDIR=
	@[ -e build/lib/libnetnice.a ] || { echo "there is no build/lib/libnetnice.a yet: make lib" >&2; exit 1; }
	$(MAKE) --no-print-directory -C libnetnice install

uninstall-lib: ## remove what `make install-lib` installed
	$(MAKE) --no-print-directory -C libnetnice uninstall

# What is built in BIN goes below DESTDIR and PREFIX. It builds nothing: so root needs no compiler of its own.
BIN ?= target/dist
PREFIX ?= /usr/local
PLACE = $(DESTDIR)$(PREFIX)
SHARE = $(PLACE)/share
UNITS = $(notdir $(wildcard packaging/systemd/*))
UNIT_DIR = lib/systemd/system
HOOK = share/containers/oci/hooks.d/netnice.json
PROGRAMS := netnice netnice-prefetch
PAGES := $(addprefix docs/,$(addsuffix .md,install classes background daemon kubernetes sockets hold downloads top shares replicate probe told manners prefetch))

install: ## install what `make build PROFILE=dist` built: PREFIX=/usr/local DESTDIR=
	@[ -x $(BIN)/netnice ] || { echo "there is no $(BIN)/netnice yet: make build PROFILE=dist" >&2; exit 1; }
	install -D -t $(PLACE)/bin $(addprefix $(BIN)/,$(PROGRAMS))
	for program in $(PROGRAMS); do $(BIN)/$$program manual $(PLACE); done
	install -d $(PLACE)/$(UNIT_DIR) $(PLACE)/$(dir $(HOOK))
	for unit in $(UNITS); do sed 's|/usr/bin/|$(PREFIX)/bin/|' packaging/systemd/$$unit >$(PLACE)/$(UNIT_DIR)/$$unit; done
	sed 's|/usr/bin/|$(PREFIX)/bin/|' packaging/containers/netnice.json >$(PLACE)/$(HOOK)
	install -Dm644 -t $(SHARE)/doc/netnice README.md packaging/copyright $(PAGES)
	install -Dm644 -t $(SHARE)/doc/netnice/examples packaging/examples/*

uninstall: ## undo what netnice does to this system, and remove what was installed
	[ -n "$(DESTDIR)" ] || PATH=$(PREFIX)/bin:$$PATH packaging/scripts/prerm remove
	rm -f $(addprefix $(PLACE)/bin/,$(PROGRAMS)) $(addprefix $(PLACE)/$(UNIT_DIR)/,$(UNITS)) $(PLACE)/$(HOOK) $(SHARE)/man/man1/netnice.1 \
		$(SHARE)/man/man1/netnice-*.1 $(addprefix $(SHARE)/bash-completion/completions/,$(PROGRAMS)) \
		$(addprefix $(SHARE)/zsh/site-functions/_,$(PROGRAMS)) \
		$(addsuffix .fish,$(addprefix $(SHARE)/fish/vendor_completions.d/,$(PROGRAMS)))
	rm -rf $(SHARE)/doc/netnice

package: build/build-deps build/dist-deps build/tools/cargo-deb build/tools/cargo-generate-rpm ## a .deb, an .rpm and an archive, in build/package/
	packaging/package

# A Debian without a compiler, for tests of the .deb.
build/bare: | build/dist-deps
	debootstrap --variant=minbase --include=libelf1,iproute2,rsync bookworm $@
	rm -rf $@/var/lib/apt/lists/*

build/tools/cargo-deb: VERSION := $(CARGO_DEB)
build/tools/cargo-generate-rpm: VERSION := $(CARGO_GENERATE_RPM)
build/tools/cargo-deb build/tools/cargo-generate-rpm:
	cargo install --locked --version $(VERSION) --root $@ $(@F)

demo: build $(VENV)/done ## replicate a directory beside web users, four ways; a few minutes
	netnice-lab demo

# build/test-times keeps what each part took; every test that writes a report there is in the list.
# A report has the whole name of its target, as test-core/lab and test-lab/lab end alike, and what
# it is of where a target has several.
TIMES := build/test-times
# those that take longest begin first
IN_VMS := test-lab/6.1 test-lab/duels test-lab/lab
PYTEST = pytest --junitxml=$(TIMES)/$(subst /,-,$@).xml

test: build/root ## every test; needs root, and half an hour on two cores
	@rm -rf $(TIMES)
	@tests/times.py wall build $(MAKE) --no-print-directory build-tests
	@tests/times.py wall test $(MAKE) --no-print-directory test-built || { tests/times.py report; exit 1; }
	@tests/times.py report

.PHONY: build-tests test-built test-others
build-tests: build $(VENV)/done build/test-deps
	cargo test --release --locked --workspace --no-run
	$(CLIPPY)

# The tests on the running kernel mostly wait, and need the processors when they want them: what is
# beside them stands back. A virtual machine takes what is idle; where that is little, its programs
# take long to begin and its traffic goes on meanwhile, which costs more than it saves.
test-built:
	$(MAKE) --no-print-directory -j2 -Oline test-host test-others
test-others:
	tests/times.py wall core nice $(MAKE) --no-print-directory -j2 -Otarget test-core lint
	tests/times.py wall machines $(MAKE) --no-print-directory -j2 -Oline $(IN_VMS)

# What it lints it compiles in a way of its own: that is a part of building.
CLIPPY := cargo clippy --release --workspace --all-targets --locked -- -D warnings

lint: build/deps $(VENV)/done ## formatting and static checks of every language
	cargo fmt --all --check
	$(CLIPPY)
	ruff check --extension adding-an-algorithm:python lab tests
	ruff format --check lab tests
	cd lab && mypy netnice_lab
	cd tests && mypy times.py mutants kernel proxy bench duels ns3 records soak packaging library/test_library.py && mypy house
	shellcheck .ci/run tests/golden/run tests/golden/record tests/fuzz/run libnetnice/record-abi packaging/compile packaging/package \
		packaging/scripts/*

.PHONY: test-core/rust test-core/lab test-core/fuzz
test-core: test-core/rust test-core/lab test-core/fuzz ## the algorithms, the simulator, the traffic tool and the lab
test-core/rust: build
	@mkdir -p $(TIMES)
	NN_FUZZ_S=5 cargo test --release --workspace --locked 2>&1 | tee $(TIMES)/rust.cargo
test-core/lab: build $(VENV)/done
	$(PYTEST) lab -m 'not vm'
	$(PYTEST:.xml=-others.xml) tests/records tests/house tests/packaging/test_manual.py tests/packaging/test_chart.py
	$(PYTEST:.xml=-library.xml) tests/library
test-core/fuzz: build/deps
	tests/mutants/run.py --check
	tests/fuzz/run 10000x

test-host: build $(VENV)/done build/test-deps build/root ## netnice on the running kernel
	tests/times.py wall host $(PYTEST) tests/kernel/anywhere tests/proxy

test-lab: build $(VENV)/done ## netnice on Debian's kernel in virtual time, and the duels
	$(MAKE) --no-print-directory -j2 -Oline $(IN_VMS)

# Each takes one core and one virtual machine; in virtual time a busy machine changes no result.
IN_VM = --timeout 4500 -- $(CURDIR)/$(VENV)/bin/python -m pytest --durations=5
.PHONY: $(IN_VMS)
$(IN_VMS): build $(VENV)/done # as test-host: what is ready first begins first
test-lab/6.1:
	tests/times.py wall 6.1 netnice-lab vm $(IN_VM) tests/kernel/in_vm tests/kernel/anywhere/test_verifier.py
test-lab/lab:
	tests/times.py wall lab $(PYTEST) lab -m vm
test-lab/duels:
	tests/times.py wall duels $(PYTEST) tests/duels

.PHONY: build/root
build/root:
	@[ "$$(id -u)" = 0 ] || { echo "this part loads programs into the kernel: sudo make $(MAKECMDGOALS)" >&2; exit 1; }

golden: build/deps ## record the golden traces, after changing an algorithm on purpose
	tests/golden/record

fuzz: build/deps ## fuzz each algorithm, the path, and what the proxy reads, for a minute
	tests/fuzz/run 60

mutants: build/deps ## which property of the fuzzer finds which mistake in the core
	tests/mutants/run.py

bench: PROFILE := dist
bench: export NETNICE_PROFILE := dist
bench: build $(VENV)/done build/ns3-deps build/bench-deps build/root ## speed, as `name value unit`
	python tests/bench/cpu_per_gb.py
	target/dist/examples/instructions
	target/dist/examples/cpu 9 300
	target/dist/examples/cpu 15 60 8
	python tests/bench/run_start.py
	python tests/bench/daemon_cpu.py
	python tests/bench/replicate_wall.py
	python tests/bench/prefetch_learn.py
	python tests/bench/install_size.py
	python tests/bench/prefetch_rps.py
	python tests/ns3/speed.py

reproduce: build $(VENV)/done build/bench-deps ## the papers' claims, in the simulator and on the kernel; an hour or more
	netnice-lab reproduce nice
	netnice-lab reproduce imtcp-bg
	netnice-lab reproduce fairbat
	netnice-lab reproduce mpat
	netnice-lab reproduce replication
	netnice-lab reproduce prefetch

validate: build $(VENV)/done build/ns3-deps ## the simulator against the kernel's results and against ns-3
	python tests/ns3/run.py --markdown docs/data/validation/ns3.md
	netnice-lab validate

soak: build $(VENV)/done build/test-deps build/recipe-deps build/bench-deps build/ns3-deps build/root ## what is too long for test; hours; ONLY=unit
	python tests/soak/run_units.py $(addprefix --only ,$(ONLY))

soak-list: build $(VENV)/done ## what soak has, and when it was run
	@python tests/soak/run_units.py --list

clean: ## remove what was built
	cargo clean
	rm -rf build $(VENV)
