"""scikit-learn: IterativeImputer in front of LinUCB."""

import warnings

from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from benchmarks.peers.filling import FillingPlayer

PACKAGES = ("scikit-learn",)
TITLE = "scikit-learn IterativeImputer + LinUCB"
SEES = "some"


class Player(FillingPlayer):
    def fit(self, rows) -> None:
        self.imputer = IterativeImputer(random_state=0, keep_empty_features=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.imputer.fit(rows)

    def fill(self, rows):
        return self.imputer.transform(rows)
