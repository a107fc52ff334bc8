"""Small models in folders, and real explorers on free ports of this computer."""

import threading
from pathlib import Path

import pytest
import torch
from talking import QUICK, Client
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

from normlens.exhibits import Article, Chapter, Document, Section, Table, as_json, write
from normlens.explorer import Settings, allowed
from normlens.explorer.start import prepared
from normlens.lens import load

WORDS = "<pad> <s> </s> <unk> the a cat dog sat ran on mat under tree and slept quietly big old".split()


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Models as `save_pretrained` writes them: one to read, one to translate, one that takes its time."""
    root = tmp_path_factory.mktemp("models")
    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    small = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2}
    small |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "vocab_size": len(WORDS)}
    bert = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    slow = {"n_embd": 48, "n_layer": 80, "n_head": 12, "vocab_size": len(WORDS), "n_positions": 1024}
    torch.manual_seed(0)
    built = {
        "reader": BertModel(BertConfig(**bert, vocab_size=len(WORDS), initializer_range=0.5)),
        "translator": BartForConditionalGeneration(BartConfig(**small, **ids, init_std=0.5)),
        "slow": GPT2LMHeadModel(GPT2Config(**slow, bos_token_id=1, eos_token_id=2)),
    }
    for name, model in built.items():
        model.eval().save_pretrained(root / name)
        tokenizer.save_pretrained(root / name)
    return {name: str(root / name) for name in built}


@pytest.fixture(scope="session")
def start():
    """Starts explorers in threads; all are stopped at the end, and none may leave a thread behind."""
    running = []

    def begin(*models: str, **settings) -> Client:
        links: list[str] = []
        ready = threading.Event()
        chosen = Settings(**({"models": allowed(models), "port": 0, "limits": QUICK} | settings))
        server, listening = prepared(chosen, lambda link: (links.append(link), ready.set()))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        assert ready.wait(20)
        running.append((server, thread))
        client = Client(links[0])
        client.link = links[0]
        return client

    yield begin
    for server, _ in running:
        server.handle_exit(2, None)
    for _, thread in running:
        thread.join(20)
        assert not thread.is_alive()


def small_report() -> Document:
    """Two studies, one of them the user's own, as `normlens report` would write them."""
    rows = [{"head": f"L0H{head}", "share": share} for head, share in enumerate((0.2, 0.5, 0.3))]
    chapters = [
        Chapter(
            name,
            title,
            (
                Article(
                    Section([f"{title} Yes."], [Table(name, "Share of every head", rows)]), "self", "Self-attention"
                ),
            ),
        )
        for name, title in (("first_study", "Is it first?"), ("own", "Is it the user's own?"))
    ]
    return Document("A report", "What was found.", (("model", "made"),), tuple(chapters), ("signature",))


def small_profile(folder: str) -> dict:
    """heads.json of the model in this folder, as `normlens heads` would write it."""
    head = {"says": "next token; diagonal by α, block by ‖αf(x)‖", "values": ["next token", "61 %", "<b>"]}
    columns = [["", "role"], ["targets", "next α"], ["own", "sharpness"]]
    model = f"somewhere/{Path(folder).name}@{load(folder).subject.revision}"
    return {"model": model, "corpus": "texts.txt", "kinds": {"self": {"columns": columns, "heads": {"L1H0": head}}}}


@pytest.fixture(scope="session")
def explorer(start, folders, tmp_path_factory):
    """One explorer with the three small models, a report, and the profile of the heads of the first."""
    report = tmp_path_factory.mktemp("report")
    write(small_report(), report, beside={"heads.json": as_json(small_profile(folders["reader"]))})
    return start(*folders.values(), report=report)
