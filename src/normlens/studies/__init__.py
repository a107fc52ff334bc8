"""Named questions asked of a whole corpus."""

from normlens.studies.questions import study as study
from normlens.studies.results import Categories as Categories
from normlens.studies.results import Correlation as Correlation
from normlens.studies.results import Dispersion as Dispersion
from normlens.studies.results import Findings as Findings
from normlens.studies.results import Frequency as Frequency
from normlens.studies.results import Spread as Spread
from normlens.studies.setting import STUDIES as STUDIES
from normlens.studies.setting import StudyError as StudyError
