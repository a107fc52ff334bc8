"""The names users type. A change here is a change of a promise."""

import inspect

import normlens as nl

NAMES = {
    "Aligned", "Block", "InputError", "Lens", "LoadError", "NormlensError", "ReconstructionError", "Report", "Trace",
    "align", "load", "open", "report",
}  # fmt: skip


def test_the_map_is_small_and_complete():
    public = {name for name in vars(nl) if not name.startswith("_") and not inspect.ismodule(getattr(nl, name))}
    assert public == NAMES


def test_everything_public_says_what_it_is():
    for name in NAMES:
        assert getattr(nl, name).__doc__, name
    for owner in (nl.Aligned, nl.Lens, nl.Trace, nl.Block, nl.Report):
        for name, member in vars(owner).items():
            if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                plain = name in {"encoder_attention", "decoder_attention", "words", "target_words", "label"}
                assert member.__doc__ or plain, f"{owner.__name__}.{name}"


def test_importing_normlens_imports_no_optional_library():
    import subprocess
    import sys

    job = "import sys, normlens; print([m for m in ('pandas', 'matplotlib', 'IPython') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", job], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
