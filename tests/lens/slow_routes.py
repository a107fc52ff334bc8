"""Routes written out: every term of every sum as a vector, by plain loops, and every path followed to its end."""

import torch


def near(part, whole):
    """max(0, ‖y‖₁ - ‖y - F‖₁)."""
    return max(0.0, float(whole.abs().sum() - (whole - part).abs().sum()))


def shares(parts, whole):
    """Of every term, by its name."""
    sizes = {name: near(part, whole) for name, part in parts.items()}
    return {name: size / sum(sizes.values()) for name, size in sizes.items()}


def kept(found, threshold):
    strong = {name: share for name, share in found.items() if share >= threshold and share > 0}
    return {name: share / sum(strong.values()) for name, share in strong.items()}


def attention_sum(weights, vectors, own, whole, query, along=lambda part, query: part):
    """Shares of (head, key) and "residual" in one sum. weights (head, tgt, src), vectors (head, src, model)."""
    parts = {"residual": own[query]}
    for head in range(weights.shape[0]):
        for key in range(weights.shape[2]):
            parts[head, key] = along(weights[head, query, key] * vectors[head, key], query)
    return shares(parts, whole[query])


def feedforward_sum(carried, added, query):
    return shares({"residual": carried[query], "feed-forward": added[query]}, carried[query] + added[query])


def followed(layers, position, threshold, *, beside=False):
    """How much of a position comes from each token: (shares of attention, of feed-forward) by query for each layer.

    A feed-forward block behind the attention reads the sum with it; one beside it what the layer reads.
    """
    if not layers:
        return {position: 1.0}
    attention, feedforward = layers[-1]
    ways = []
    for term, first in kept(feedforward[position], threshold).items():
        if term == "feed-forward" and beside:
            ways.append((first, position))
            continue
        for name, second in kept(attention[position], threshold).items():
            ways.append((first * second, position if name == "residual" else name[1]))
    total = {}
    for weight, below in ways:
        for token, part in followed(layers[:-1], below, threshold, beside=beside).items():
            total[token] = total.get(token, 0.0) + weight * part
    return total


def as_tensor(found, heads, count):
    """Shares of one layer as (head, tgt, src)."""
    table = torch.zeros(heads, len(found), count, dtype=torch.float64)
    for query, terms in enumerate(found):
        for name, share in terms.items():
            if name != "residual":
                table[name[0], query, name[1]] = share
    return table
