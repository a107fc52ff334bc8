"""A small BERT made by hand: heads 0 and 1 park on the first token, head 0 with f(x) = 0 there, and head 2 spreads."""

import torch
from transformers import BertConfig, BertModel

import normlens as nl

HEADS = {"no-op": 0, "broadcast": 1, "spread": 2}
WIDTH, DIM = 12, 4  # of the model and of a head


def parking_lens(tokenizer):
    """Coordinate 0 marks the first token; every other token has what its word puts into coordinates 1 to 11.

    Scores depend on the key's coordinate 0 alone, so all queries of heads 0 and 1 attend to the first token.
    """
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30522, hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=3, intermediate_size=8,
        max_position_embeddings=64,
    )  # fmt: skip
    model = BertModel(config).eval()
    attention = model.encoder.layer[0].attention
    with torch.no_grad():
        embeddings = model.embeddings
        embeddings.word_embeddings.weight[:, 0] = 0
        embeddings.word_embeddings.weight[:, 1:].normal_()
        embeddings.word_embeddings.weight[tokenizer.cls_token_id].zero_()
        embeddings.position_embeddings.weight.zero_()
        embeddings.token_type_embeddings.weight.zero_()
        embeddings.position_embeddings.weight[0, 0] = 100.0
        for part in (attention.self.query, attention.self.key, attention.self.value, attention.output.dense):
            part.weight.zero_()
            part.bias.zero_()
        first = float(embeddings(torch.tensor([[tokenizer.cls_token_id]]))[0, 0, 0])  # its coordinate 0 after the norm
        attention.self.query.bias.fill_(1.0)
        attention.self.key.weight[: 2 * DIM, 0] = 1.5  # heads 0 and 1; head 2 gives all keys the same score
        value = attention.self.value
        value.weight[0, 0], value.bias[0] = 1.0, -first  # head 0: nothing where coordinate 0 is that of the first token
        value.weight[DIM, 0] = 1.0  # head 1: the mark itself
        value.weight[2 * DIM : 3 * DIM, 1 : 1 + DIM] = torch.eye(DIM)  # head 2: what the word is
        attention.output.dense.weight.copy_(torch.eye(WIDTH))
    return nl.load(model, tokenizer)
