"""The studies once more, slow and obvious: one sequence at a time, loops over heads, queries and keys, and scipy."""

from collections import defaultdict

import numpy as np
import torch
from scipy.stats import spearmanr


def traces(lens, items):
    """One trace per item, and the norms of the hidden states that go into each layer."""
    for item in items:
        if lens.subject.is_seq2seq:
            yield lens.trace(source=item[0], target=item[1]), None
            continue
        trace = lens.trace(item)
        inputs = lens.subject.tokenizer(*item, return_tensors="pt")
        with torch.no_grad():
            hidden = lens.subject.model(**inputs, output_hidden_states=True).hidden_states
        yield trace, [state[0].norm(dim=-1).tolist() for state in hidden[:-1]]


def study(lens, items, category_of, rank_of):
    """Everything, as dictionaries of plain numbers. `category_of` takes a token, `rank_of` an id."""
    lengths, inputs = defaultdict(list), defaultdict(list)
    drawn, given, long = defaultdict(list), defaultdict(list), defaultdict(list)
    pairs = defaultdict(list)
    occurrences = defaultdict(list)
    for trace, hidden in traces(lens, items):
        for layer, norms in enumerate(hidden or []):
            inputs[layer] += norms
        received, counted = defaultdict(lambda: defaultdict(list)), {}
        for block in trace.blocks:
            kind, layer = block.kind, block.layer
            side = (trace.targets if block.src == "target" else trace.sides)[0]
            counted[kind] = side
            kinds = [category_of(token) for token in side.tokens]
            visible = (block.weights[0] > 0).any(dim=0).tolist()
            for head in range(block.weights.shape[1]):
                alpha, norm = (part[0, head].double().numpy() for part in (block.weights, block.transformed_norms))
                queries, keys = alpha.shape
                alpha, norm = alpha.tolist(), norm.tolist()
                lengths[kind, layer, head] += norm
                for category in set(kinds) | {"[CLS]", "[SEP]", "comma & period", "other"}:
                    members = [j for j in range(keys) if kinds[j] == category]
                    cell = kind, category, layer, head
                    drawn[cell].append(np.mean([sum(alpha[i][j] for j in members) for i in range(queries)]))
                    given[cell].append(np.mean([sum(alpha[i][j] * norm[j] for j in members) for i in range(queries)]))
                    if members:
                        long[cell].append(np.mean([norm[j] for j in members]))
                for j in range(keys):
                    seen = [i for i in range(queries) if visible[i][j]]
                    for i in seen:
                        pairs[kind, kinds[j], layer, head].append((alpha[i][j], norm[j]))
                    received[kind][j].append((np.mean([alpha[i][j] for i in seen]), norm[j]))
        for kind, side in counted.items():
            for j, token_id in enumerate(side.ids):
                weight, norm = np.mean(received[kind][j], axis=0)
                occurrences[kind].append((rank_of(token_id), weight, norm, token_id, side.special[j]))
    return lengths, inputs, drawn, given, long, pairs, occurrences


def rho(pairs):
    return spearmanr(*np.array(pairs, dtype=np.float32).T).statistic
