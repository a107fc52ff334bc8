"""What Kobayashi et al. printed in 2020, digit for digit.

Room: data. Nothing is measured or judged here.

Every figure is printed in arXiv 2004.10102v1: Table 1 (Section 4.1), Figure 3 and Table 2 (4.2), two correlations in
Section 4.3, Table 4 and Figure 9 (appendix). The body of v2, the EMNLP version, was not at hand. Figures are kept as
text, because their last digit says how far they can be trusted. Layers and heads are counted from 1, as printed.

Not printed, but derived from the pairs of Table 2, which are pairs of all 144 heads: `DATA`. Pairs of [CLS] over 144
heads are the tokens, since every token looks once at the one [CLS] of its sequence; those of [SEP] are exactly twice as
many, so that every sequence has two; all four together are Σ n². The 992 sequences are printed.

Not printed in numbers: Figure 3. Its curves carry no labels; the text says of [CLS], [SEP] and punctuation that they
"gain remarkably large attention weights" (a) and that their contributions "are generally small" (b). What can be held
against a measurement is read off the drawing, as weakly as possible: [SEP] draws more than half of the weight in the
two layers in the middle, and in more than half of the layers all other tokens contribute more than those three.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MODEL = {  # bert-base-uncased, by its configuration
    "model_type": "bert",
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "hidden_size": 768,
    "vocab_size": 30522,
}
LAYERS, HEADS, HEAD_DIM = 12, 12, 64
LENGTH = 128  # tokens a sequence has at most
CLS, SEP, STOPS, OTHER = "[CLS]", "[SEP]", "comma & period", "other"

DATA = {
    "sequences": 992,
    "tokens": 121_134,
    "Σ n² over sequences": 15_139_560,
    "[CLS] tokens": 992,
    "[SEP] tokens": 1_984,
    "pairs per head, [CLS]": 121_134,
    "pairs per head, [SEP]": 242_268,
    "pairs per head, comma & period": 1_269_712,
    "pairs per head, other": 13_506_446,
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table of lengths."""

    of: Literal["largest CV", "smallest CV", "average"]
    at: tuple[int, ...]  # layer and head, or layer, from 1; nothing for the average
    figures: tuple[str, ...]  # in the order of FIELDS; the average has no largest and smallest


FIELDS = ("mean", "deviation", "variation", "high", "low")  # of normlens.studies.Spread
TABLE_1 = (  # ‖f(x)‖; the average is over the 144 heads: of the means, of the deviations, of the CVs
    Line("largest CV", (2, 4), ("4.26", "1.59", "0.37", "12.66", "0.96")),
    Line("smallest CV", (2, 7), ("4.00", "0.50", "0.12", "6.15", "1.35")),
    Line("average", (), ("5.15", "1.17", "0.22")),
)
TABLE_4 = (  # ‖x‖; the average is over the 12 layers
    Line("largest CV", (12,), ("20.49", "4.62", "0.23", "32.84", "4.13")),
    Line("smallest CV", (7,), ("21.64", "1.40", "0.06", "23.03", "11.87")),
    Line("average", (), ("19.93", "2.39", "0.12")),
)
TABLE_2 = {  # category: pairs of all heads, Spearman's ρ(α, ‖f(x)‖)
    CLS: ("17443296", "-0.34"),
    SEP: ("34886592", "-0.69"),
    STOPS: ("182838528", "-0.25"),
    OTHER: ("1944928224", "-0.06"),
}
SECTION_4_3 = {"rho_weight": "-0.08", "rho_norm": "0.75"}  # Spearman's ρ(rank, α) and ρ(rank, ‖f(x)‖)
RANKS = "vocabulary order"  # the ranks of Section 4.3 by their footnote, as normlens.corpora.frequency names them
FIGURE_3 = "more than half, as drawn", "most layers, as drawn"
FIGURE_9 = "1.8"  # largest over smallest singular value of f, at least, in each of the heads shown
