"""Train a translation Transformer from raw parallel text, so that alignment starts from nothing."""

from normlens.nmt.extra import LibraryMissing as LibraryMissing
from normlens.nmt.load import load_translator as load_translator
from normlens.nmt.loop import TrainingError as TrainingError
from normlens.nmt.loop import Update as Update
from normlens.nmt.loop import Watch as Watch
from normlens.nmt.plan import FolderError as FolderError
from normlens.nmt.recipe import PRESETS as PRESETS
from normlens.nmt.recipe import Recipe as Recipe
from normlens.nmt.recipe import RecipeError as RecipeError
from normlens.nmt.recipe import tailored as tailored
from normlens.nmt.ship import shipped as shipped
from normlens.nmt.text import Parallel as Parallel
from normlens.nmt.text import TextError as TextError
from normlens.nmt.text import parallel as parallel
from normlens.nmt.train import train as train
from normlens.nmt.translate import translate as translate
from normlens.nmt.validate import Validation as Validation
