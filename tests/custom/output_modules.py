"""Modules that must be exact: f(x) is followed through all that is linear, up to the sum with the residual."""

import torch
from textbook import Textbook, merged
from torch import nn


class TwoMatrices(Textbook):
    """Two matrices in a row are one, and the bias of the first passes through the second."""

    def build(self):
        self.second = nn.Linear(self.width, self.width)

    def close(self, context, x):
        return self.second(super().close(context, x))

    def matrix(self):
        return self.second.weight @ self.out.weight

    def constant(self):
        return self.second.weight @ self.out.bias + self.second.bias


class LowRankOutput(TwoMatrices):
    """A bottleneck of two, then the full width: norms are those of the full width."""

    def build(self):
        self.out, self.second = nn.Linear(self.width, 2, bias=False), nn.Linear(2, self.width)

    def constant(self):
        return self.second.bias


class SameMatrixTwice(TwoMatrices):
    """W_O is applied to its own result."""

    def build(self):
        self.second = self.out


class ThreeMatricesMovedBetween(TwoMatrices):
    """Three matrices, the heads cut apart and joined again between them, dropout that is off."""

    def build(self):
        super().build()
        self.third, self.off = nn.Linear(self.width, self.width, bias=False), nn.Dropout(0.5)

    def close(self, context, x):
        first = self.off(self.out(merged(context)))
        return self.off(self.third(merged(self.split(self.second(first.mT.contiguous().mT)))))

    def matrix(self):
        return self.third.weight @ super().matrix()

    def constant(self):
        return self.third.weight @ super().constant()


class ScaleAfterOutput(Textbook):
    """A learned factor for each channel stands between W_O and the residual: f(x) ends at the matrix."""

    rebuilds = False

    def build(self):
        self.scale = nn.Parameter(torch.rand(self.width) + 0.5)

    def close(self, context, x):
        return super().close(context, x) * self.scale


class PointwiseConvolution(Textbook):
    """W_O is a convolution of width one."""

    def build(self):
        self.out = nn.Conv1d(self.width, self.width, 1)

    def close(self, context, x):
        return self.out(merged(context).mT).mT

    def matrix(self):
        return self.out.weight[:, :, 0]


class EinsumWithHeads(Textbook):
    """W_O takes the heads as they are."""

    def build(self):
        self.cube = nn.Parameter(torch.randn(self.heads, self.dim, self.width))

    def close(self, context, x):
        return torch.einsum("bhid,hdm->bim", context, self.cube)

    def matrix(self):
        return self.cube.flatten(0, 1).T

    def constant(self):
        return 0.0


class ResidualInAddmm(Textbook):
    """The residual is what addmm calls its bias; it is no bias."""

    def forward(self, x):
        return self.attend(x)

    def close(self, context, x):
        joined = torch.addmm(x.flatten(0, 1), merged(context).flatten(0, 1), self.out.weight.T)
        return joined.view(x.shape)

    def constant(self):
        return 0.0


class ResidualInPlace(Textbook):
    """The residual is added into the output itself."""

    def forward(self, x):
        return self.attend(x).add_(x)


class TypeOfTheOutput(Textbook):
    """`x.type_as(context)` is x, whatever becomes of it."""

    def build(self):
        self.extra = nn.Linear(self.width, self.width)

    def close(self, context, x):
        return super().close(context, x) + 0 * self.extra(x.type_as(context))


class ShapeOfTheOutput(TypeOfTheOutput):
    """`x.view_as(context)` is x in another shape."""

    def close(self, context, x):
        joined = merged(context)
        return self.out(joined) + 0 * self.extra((x + 1).reshape(-1).view_as(joined))


class ZerosLikeTheOutput(TypeOfTheOutput):
    """`zeros_like(context)` and `context.new_ones` hold nothing of the attention."""

    def close(self, context, x):
        joined = merged(context)
        return self.out(joined) + 0 * self.extra(torch.zeros_like(joined) + joined.new_ones(self.width))


class RouterBeside(Textbook):
    """Attention, then a choice among experts: the choice is no attention."""

    rebuilds = False

    def build(self):
        self.router, self.experts = nn.Linear(self.width, 3), nn.Parameter(torch.randn(3, self.width, self.width))

    def forward(self, x):
        x = super().forward(x)
        choice = torch.softmax(self.router(x), -1)
        return x + torch.einsum("bie,biem->bim", choice, torch.einsum("bid,edm->biem", x, self.experts))


class TwoLayers(Textbook):
    """The same layer twice, with its own W_O or not: two blocks, the second reads what the first left."""

    def layers(self):
        return [self, self]

    def forward(self, x):
        for layer in self.layers():
            x = x + layer.attend(x)
        return x

    def loops(self, x):
        blocks = []
        for layer in self.layers():
            (block,) = Textbook.loops(layer, x)
            blocks, x = [*blocks, block], x + block.output()
        return blocks


class TwoLayersOneOutputMatrix(TwoLayers):
    """Two layers that share nothing but W_O."""

    def build(self):
        self.above = Textbook(self.heads, self.dim, seed=7)
        self.above.out = self.out

    def layers(self):
        return [self, self.above]


class TwoLayersOneOfTwoMatrices(TwoLayers):
    """Two layers, the second with W_O in two pieces."""

    def build(self):
        self.above = TwoMatrices(self.heads, self.dim, seed=7)

    def layers(self):
        return [self, self.above]


class TwoAttentionsBesideEachOther(TwoLayers):
    """Two attentions read the same x and are added to it together."""

    def build(self):
        self.other = Textbook(self.heads, self.dim, seed=7)

    def forward(self, x):
        return x + (self.attend(x) + self.other.attend(x))

    def loops(self, x):
        return [block for layer in (self, self.other) for block in Textbook.loops(layer, x)]
