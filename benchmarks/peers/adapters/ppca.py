"""ppca-py: probabilistic PCA, told the rank, in front of LinUCB."""

from ppca import PPCA

from benchmarks.peers.filling import FillingPlayer

PACKAGES = ("ppca-py",)
TITLE = "ppca-py + LinUCB"
SEES = "some"
RANK = 3


class Player(FillingPlayer):
    def fit(self, rows) -> None:
        self.model = PPCA(n_components=RANK, random_state=0).fit(rows)

    def fill(self, rows):
        means, _ = self.model.impute_missing(rows)
        return means
