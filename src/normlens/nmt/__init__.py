"""Train a translation Transformer from raw parallel text, so that alignment starts from nothing.

Room: parallel text in, folders out that `transformers` loads.
"""

from normlens.nmt.finished import shipped as shipped
from normlens.nmt.folder import FolderError as FolderError
from normlens.nmt.model import load_translator as load_translator
from normlens.nmt.recipe import PRESETS as PRESETS
from normlens.nmt.recipe import Recipe as Recipe
from normlens.nmt.recipe import RecipeError as RecipeError
from normlens.nmt.recipe import tailored as tailored
from normlens.nmt.subwords import LibraryMissing as LibraryMissing
from normlens.nmt.text import Parallel as Parallel
from normlens.nmt.text import TextError as TextError
from normlens.nmt.text import parallel as parallel
from normlens.nmt.training import TrainingError as TrainingError
from normlens.nmt.training import Update as Update
from normlens.nmt.training import Watch as Watch
from normlens.nmt.training import train as train
from normlens.nmt.translate import Validation as Validation
from normlens.nmt.translate import translate as translate
