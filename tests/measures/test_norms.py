"""Fields of one block, whatever the size and the sign of its numbers."""

import pytest
import torch

from normlens.capture import Attended
from normlens.lens import Block
from normlens.measures import DEFAULT, measured


def block(values, weights, fields):
    out_weight = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(1))
    output = torch.einsum("bhts,bhsd,hdm->btm", weights, values, out_weight)
    attended = Attended(0, "", "out", weights, values, out_weight, None, output)
    numbers = measured(attended, fields, None)
    return Block("self", 0, "", (0, 1), 0.0, "text", "text", numbers.kept, numbers.sizes)


@pytest.mark.parametrize("fields", [DEFAULT, ("weighted_norms",), ("weighted_norms", "summed_norms")], ids=str)
@pytest.mark.parametrize("size", [1e-25, 1.0, 1e25])
def test_norms_of_a_block_are_single_precision_never_below_zero_and_grow_with_its_values(fields, size):
    generator = torch.Generator().manual_seed(0)
    weights, values = torch.randn(1, 2, 3, 4, generator=generator), torch.randn(1, 2, 4, 5, generator=generator)
    small, plain = block(values * size, weights, fields), block(values, weights, fields)
    for name in set(fields) - {"weights"}:
        ours, expected = getattr(small, name), getattr(plain, name)
        assert ours.dtype == torch.float32
        assert (ours >= 0).all()
        torch.testing.assert_close(ours.double() / size, expected.double(), rtol=1e-5, atol=0)
