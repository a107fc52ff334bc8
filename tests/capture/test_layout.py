"""Serial numbers that arrive tell where they came from, whatever the moves in between."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from normlens.capture.layout import LayoutError, read_layout, serial_numbers

sizes = st.integers(1, 5)


@given(batch=sizes, head=sizes, tgt=sizes, dim=sizes, start=st.integers(0, 1000))
def test_heads_merged_after_a_transpose(batch, head, tgt, dim, start):
    serial = serial_numbers(batch * head, tgt, dim, start=start, device=torch.device("cpu"))
    arrived = serial.view(batch, head, tgt, dim).transpose(1, 2).reshape(batch * tgt, head * dim)
    layout = read_layout(arrived, start=start, tgt=tgt, head_dim=dim)
    assert layout.lead.tolist() == torch.arange(batch * head).view(batch, head).tolist()
    assert layout.rows.tolist() == torch.arange(batch * tgt).view(batch, tgt).tolist()
    assert layout.channels.tolist() == torch.arange(head * dim).view(head, dim).tolist()


@given(batch=sizes, head=sizes, tgt=sizes, dim=sizes)
def test_head_major_products_and_position_major_rows(batch, head, tgt, dim):
    serial = serial_numbers(head * batch, tgt, dim, start=0, device=torch.device("cpu"))
    arrived = serial.view(head, batch, tgt, dim).permute(2, 1, 3, 0).reshape(tgt * batch, dim * head)
    layout = read_layout(arrived, start=0, tgt=tgt, head_dim=dim)
    assert layout.lead.tolist() == torch.arange(head * batch).view(head, batch).T.tolist()
    assert layout.rows.tolist() == torch.arange(tgt * batch).view(tgt, batch).T.tolist()
    assert layout.channels.tolist() == torch.arange(dim * head).view(dim, head).T.tolist()


def test_positions_that_never_arrive_are_left_out():
    serial = serial_numbers(2, 4, 3, start=0, device=torch.device("cpu"))
    layout = read_layout(serial[:, 1:3].transpose(0, 1).reshape(2, 6), start=0, tgt=4, head_dim=3)
    assert layout.tgt.tolist() == [[1, 2]]


def test_mixed_cells_are_refused():
    serial = serial_numbers(1, 4, 4, start=0, device=torch.device("cpu"))
    with pytest.raises(LayoutError, match="mixed"):
        read_layout(serial[0].roll(1, 0).where(torch.eye(4, dtype=torch.bool), serial[0]), start=0, tgt=4, head_dim=4)


def test_half_a_head_is_refused():
    serial = serial_numbers(2, 4, 4, start=0, device=torch.device("cpu"))
    with pytest.raises(LayoutError, match="incomplete"):
        read_layout(serial[:, :, :3].transpose(0, 1).reshape(4, 6), start=0, tgt=4, head_dim=4)
